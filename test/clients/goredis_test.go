//go:build clients

package clients

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// goChecks are the checks of go-redis, each with keys of its own.
var goChecks = []struct {
	name  string
	check func(t *testing.T, c *redis.Client, key string)
}{
	{"strings", goStrings},
	{"pipeline", goPipeline},
	{"transaction", goTransaction},
	{"optimistic lock", goOptimisticLock},
	{"script", goScript},
	{"functions", goFunctions},
	{"blocking pop", goBlockingPop},
	{"publish", goPublish},
	{"streams", goStreams},
	{"errors", goErrors},
	{"databases", goDatabases},
}

// checkGoRedis checks the library that most Go programs use, with its own defaults and
// with the older protocol.
func (l *lab) checkGoRedis(t *testing.T) {
	is("go-redis", redis.Version())
	l.check(t, "go-redis", "default connect", func(t *testing.T) {
		c := redis.NewClient(&redis.Options{Addr: l.addr})
		defer c.Close()
		goStrings(t, c, fmt.Sprintf("go:plain:%d", time.Now().UnixNano()))
	})
	for _, protocol := range []int{0, 2} { // 0 is the library's choice
		name := map[int]string{0: "default", 2: "resp2"}[protocol]
		t.Run(name, func(t *testing.T) {
			c := redis.NewClient(&redis.Options{Addr: l.addr, Protocol: protocol})
			defer c.Close()
			for _, tt := range goChecks {
				l.check(t, "go-redis", tt.name, func(t *testing.T) {
					tt.check(t, c, fmt.Sprintf("go:%s:%s:%d:", name, tt.name, time.Now().UnixNano()))
				})
			}
			l.check(t, "go-redis", "restart", func(t *testing.T) { goRestart(t, c, l) })
		})
	}
}

// same fails the test unless a call returned what was wanted.
func same(t *testing.T, want any) func(got any, err error) {
	t.Helper()
	return func(got any, err error) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
}

func goStrings(t *testing.T, c *redis.Client, key string) {
	const value = "\x00\r\n\xff"
	same(t, "OK")(anyOf(c.Set(t.Context(), key, value, 0).Result()))
	same(t, value)(anyOf(c.Get(t.Context(), key).Result()))
	if _, err := c.Get(t.Context(), key+"none").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("no key: %v", err)
	}
}

// anyOf forgets the type of a result.
func anyOf[T any](v T, err error) (any, error) { return v, err }

func goPipeline(t *testing.T, c *redis.Client, key string) {
	const n = 500
	got := make([]*redis.StringCmd, n)
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range n {
			p.Set(t.Context(), fmt.Sprint(key, i), i, 0)
			got[i] = p.Get(t.Context(), fmt.Sprint(key, i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		same(t, fmt.Sprint(i))(anyOf(got[i].Result()))
	}
}

func goTransaction(t *testing.T, c *redis.Client, key string) {
	var first, second *redis.IntCmd
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		first, second = p.Incr(t.Context(), key), p.Incr(t.Context(), key)
		return nil
	})
	if err != nil || first.Val() != 1 || second.Val() != 2 {
		t.Errorf("%d, %d, %v", first.Val(), second.Val(), err)
	}
}

func goOptimisticLock(t *testing.T, c *redis.Client, key string) {
	err := c.Watch(t.Context(), func(tx *redis.Tx) error {
		if err := c.Set(t.Context(), key, 2, 0).Err(); err != nil {
			return err
		}
		_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Set(t.Context(), key, 3, 0)
			return nil
		})
		return err
	}, key)
	if !errors.Is(err, redis.TxFailedErr) {
		t.Errorf("a lost WATCH: %v", err)
	}
	same(t, "2")(anyOf(c.Get(t.Context(), key).Result()))
}

func goScript(t *testing.T, c *redis.Client, key string) {
	twice := redis.NewScript("return ARGV[1] * 2 -- " + key)
	for range 2 { // by text, then by hash
		same(t, int64(42))(twice.Run(t.Context(), c, []string{key}, 21).Result())
	}
}

func goFunctions(t *testing.T, c *redis.Client, key string) {
	library, text := functionLibrary()
	same(t, library)(anyOf(c.FunctionLoad(t.Context(), text).Result()))
	same(t, []string{key, "a"})(anyOf(c.FCall(t.Context(), library, []string{key}, "a").StringSlice()))
	same(t, "OK")(anyOf(c.FunctionDelete(t.Context(), library).Result()))
}

// functionLibrary is a library with a function of the same name, which no other test uses: it
// returns its first key and argument.
func functionLibrary() (name, text string) {
	name = fmt.Sprintf("lib%d", time.Now().UnixNano())
	return name, "#!lua name=" + name + "\nredis.register_function('" + name + "', function(k, a) return {k[1], a[1]} end)"
}

func goBlockingPop(t *testing.T, c *redis.Client, key string) {
	timer := time.AfterFunc(100*time.Millisecond, func() { c.RPush(context.Background(), key, "x") })
	defer timer.Stop()
	same(t, []string{key, "x"})(anyOf(c.BLPop(t.Context(), 15*time.Second, key).Result()))
	if _, err := c.BLPop(t.Context(), time.Second, key).Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("nothing to pop: %v", err)
	}
}

func goPublish(t *testing.T, c *redis.Client, key string) {
	s := c.Subscribe(t.Context(), key)
	defer s.Close()
	if _, err := s.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, int64(1))(anyOf(c.Publish(t.Context(), key, "hello").Result()))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	if m, err := s.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Errorf("%v, %v", m, err)
	}
}

func goStreams(t *testing.T, c *redis.Client, key string) {
	same(t, "OK")(anyOf(c.XGroupCreateMkStream(t.Context(), key, "g", "0").Result()))
	id, err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []string{"a", "1"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{key, ">"}, Count: 5, Block: time.Second}).Result()
	if err != nil || len(got) != 1 || got[0].Messages[0].ID != id {
		t.Fatalf("%v, %v; want %s", got, err, id)
	}
	same(t, int64(1))(anyOf(c.XAck(t.Context(), key, "g", id).Result()))
	if p, err := c.XPending(t.Context(), key, "g").Result(); err != nil || p.Count != 0 {
		t.Errorf("%v, %v", p, err)
	}
}

func goErrors(t *testing.T, c *redis.Client, key string) {
	c.Set(t.Context(), key, "text", 0)
	if err := c.Incr(t.Context(), key).Err(); err == nil || err.Error() != "ERR value is not an integer or out of range" {
		t.Errorf("INCR of a text: %v", err)
	}
}

func goDatabases(t *testing.T, c *redis.Client, key string) {
	o := *c.Options()
	o.DB = 3
	three := redis.NewClient(&o)
	defer three.Close()
	same(t, "OK")(anyOf(three.Set(t.Context(), key, "three", 0).Result()))
	same(t, "three")(anyOf(three.Get(t.Context(), key).Result()))
	same(t, int64(0))(anyOf(c.Exists(t.Context(), key).Result()))
}

// goRestart restarts the server: the client goes on by itself, and so does a subscriber.
func goRestart(t *testing.T, c *redis.Client, l *lab) {
	s := c.Subscribe(t.Context(), "go:restart")
	defer s.Close()
	if _, err := s.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := s.Channel() // reads from now on, and so notices
	l.restart(t)
	awaitOK(t, func() error { return c.Set(t.Context(), "go:back", 1, 0).Err() })
	goBlockingPop(t, c, "go:restart:list")
	awaitOK(t, func() error {
		if n, err := c.Publish(t.Context(), "go:restart", "again").Result(); err != nil || n == 0 {
			return fmt.Errorf("%d hear it, %v", n, err)
		}
		return nil
	})
	select {
	case m := <-messages:
		same(t, "again")(m.Payload, nil)
	case <-time.After(15 * time.Second):
		t.Error("the subscriber hears nothing after the restart")
	}
}

// awaitOK calls f until it succeeds.
func awaitOK(t *testing.T, f func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(15 * time.Second)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}
