//go:build clients

package clients

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"streamproxy/internal/redistest"
)

// rueidisChecks are the checks of rueidis, each with keys of its own.
var rueidisChecks = []struct {
	name  string
	check func(t *testing.T, c rueidis.Client, key string)
}{
	{"strings", rueidisStrings},
	{"pipeline", rueidisPipeline},
	{"transaction", rueidisTransaction},
	{"optimistic lock", rueidisOptimisticLock},
	{"script", rueidisScript},
	{"functions", rueidisFunctions},
	{"blocking pop", rueidisBlockingPop},
	{"publish", rueidisPublish},
	{"streams", rueidisStreams},
	{"errors", rueidisErrors},
}

// checkRueidis checks the library that pipelines by itself, with its own defaults, which track what
// was read on every connection, and with the older protocol, which it can only speak without a cache.
func (l *lab) checkRueidis(t *testing.T) {
	is("rueidis", rueidis.LibVer)
	for name, option := range map[string]rueidis.ClientOption{"default": {}, "resp2": {AlwaysRESP2: true, DisableCache: true}} {
		t.Run(name, func(t *testing.T) {
			option.InitAddress = []string{l.addr}
			c, err := rueidis.NewClient(option)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if name == "default" {
				l.check(t, "rueidis", "default connect", func(t *testing.T) { rueidisStrings(t, c, "rueidis:plain") })
			}
			prefix := fmt.Sprintf("rueidis:%s:%d:", name, time.Now().UnixNano())
			for _, tt := range rueidisChecks {
				l.check(t, "rueidis", tt.name, func(t *testing.T) { tt.check(t, c, prefix+tt.name) })
			}
			caching := func(key string) func(*testing.T) {
				return func(t *testing.T) { rueidisCaching(t, c, l.redis, prefix+key) }
			}
			l.check(t, "rueidis", "databases", func(t *testing.T) { rueidisDatabases(t, c, option, prefix+"databases") })
			if !option.DisableCache {
				l.check(t, "rueidis", "caching", caching("caching"))
			}
			l.check(t, "rueidis", "restart", func(t *testing.T) {
				if option.DisableCache {
					rueidisRestart(t, c, l, prefix+"restart")
					return
				}
				// Speaking the older protocol it never listens again once its subscriber's connection has
				// ended alone, as it does behind a CLIENT KILL TYPE pubsub.
				heard, stop := rueidisSubscribe(t, c, prefix+"heard")
				defer stop()
				rueidisHears(t, c, heard, prefix+"heard", "before")
				rueidisRestart(t, c, l, prefix+"restart")
				rueidisHears(t, c, heard, prefix+"heard", "again")
				caching("caching after restart")(t)
			})
		})
	}
}

func rueidisStrings(t *testing.T, c rueidis.Client, key string) {
	const value = "\x00\r\n\xff"
	same(t, "OK")(anyOf(c.Do(t.Context(), c.B().Set().Key(key).Value(value).Build()).ToString()))
	same(t, value)(anyOf(c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString()))
	if err := c.Do(t.Context(), c.B().Get().Key(key+"none").Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("no key: %v", err)
	}
}

// rueidisPipeline sends many commands in one call, and from many callers that the library merges.
func rueidisPipeline(t *testing.T, c rueidis.Client, key string) {
	const n = 500
	var commands rueidis.Commands
	for i := range n {
		name := fmt.Sprint(key, i)
		commands = append(commands, c.B().Set().Key(name).Value(name).Build(), c.B().Get().Key(name).Build())
	}
	for i, reply := range c.DoMulti(t.Context(), commands...) {
		if want := fmt.Sprint(key, i/2); i%2 == 1 {
			same(t, want)(anyOf(reply.ToString()))
		}
	}
	faults := make(chan error, n)
	for i := range n {
		go func() {
			want := fmt.Sprint(key, i)
			got, err := c.Do(context.Background(), c.B().Get().Key(want).Build()).ToString()
			if err == nil && got != want {
				err = fmt.Errorf("got %q, want %q", got, want)
			}
			faults <- err
		}()
	}
	for range n {
		if err := <-faults; err != nil {
			t.Error(err)
		}
	}
}

func rueidisTransaction(t *testing.T, c rueidis.Client, key string) {
	replies := c.DoMulti(t.Context(), c.B().Multi().Build(), c.B().Incr().Key(key).Build(), c.B().Incr().Key(key).Build(), c.B().Exec().Build())
	same(t, []int64{1, 2})(anyOf(replies[3].AsIntSlice()))
}

// rueidisOptimisticLock loses a race once and wins it then, on a connection that it keeps to itself.
func rueidisOptimisticLock(t *testing.T, c rueidis.Client, key string) {
	err := c.Dedicated(func(d rueidis.DedicatedClient) error {
		try := func(other bool) error {
			if err := d.Do(t.Context(), d.B().Watch().Key(key).Build()).Error(); err != nil {
				return err
			}
			if other {
				same(t, "OK")(anyOf(c.Do(t.Context(), c.B().Set().Key(key).Value("2").Build()).ToString()))
			}
			replies := d.DoMulti(t.Context(), d.B().Multi().Build(), d.B().Set().Key(key).Value("3").Build(), d.B().Exec().Build())
			return replies[2].Error()
		}
		if err := try(true); !rueidis.IsRedisNil(err) {
			t.Errorf("a lost WATCH: %v", err)
		}
		same(t, "2")(anyOf(c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString()))
		return try(false)
	})
	same(t, "3")(anyOf(c.Do(t.Context(), c.B().Get().Key(key).Build()).ToString()))
	if err != nil {
		t.Error(err)
	}
}

func rueidisScript(t *testing.T, c rueidis.Client, key string) {
	twice := rueidis.NewLuaScript("return ARGV[1] * 2 -- " + key)
	for range 2 { // by text, then by hash
		same(t, int64(42))(anyOf(twice.Exec(t.Context(), c, []string{key}, []string{"21"}).ToInt64()))
	}
}

func rueidisFunctions(t *testing.T, c rueidis.Client, key string) {
	library, text := functionLibrary()
	same(t, library)(anyOf(c.Do(t.Context(), c.B().FunctionLoad().FunctionCode(text).Build()).ToString()))
	same(t, []string{key, "a"})(anyOf(c.Do(t.Context(), c.B().Fcall().Function(library).Numkeys(1).Key(key).Arg("a").Build()).AsStrSlice()))
	same(t, "OK")(anyOf(c.Do(t.Context(), c.B().FunctionDelete().LibraryName(library).Build()).ToString()))
}

func rueidisBlockingPop(t *testing.T, c rueidis.Client, key string) {
	timer := time.AfterFunc(100*time.Millisecond, func() {
		c.Do(context.Background(), c.B().Rpush().Key(key).Element("x").Build())
	})
	defer timer.Stop()
	same(t, []string{key, "x"})(anyOf(c.Do(t.Context(), c.B().Blpop().Key(key).Timeout(15).Build()).AsStrSlice()))
	if err := c.Do(t.Context(), c.B().Blpop().Key(key).Timeout(0.1).Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("nothing to pop: %v", err)
	}
}

// rueidisPublish hears a message on a connection that carries other commands too.
func rueidisPublish(t *testing.T, c rueidis.Client, key string) {
	heard, stop := rueidisSubscribe(t, c, key)
	defer stop()
	rueidisHears(t, c, heard, key, "hello")
	rueidisStrings(t, c, key)
}

// rueidisSubscribe listens until it is stopped. The library subscribes anew after a loss, but not after
// an error, such as that the server is loading.
func rueidisSubscribe(t *testing.T, c rueidis.Client, channel string) (heard chan string, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	heard = make(chan string, 1000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = c.Receive(ctx, c.B().Subscribe().Channel(channel).Build(), func(m rueidis.PubSubMessage) { heard <- m.Message })
		}
	}()
	return heard, func() {
		cancel()
		<-ended
	}
}

// rueidisHears publishes until somebody hears it, who must be this subscriber.
func rueidisHears(t *testing.T, c rueidis.Client, heard <-chan string, channel, message string) {
	t.Helper()
	awaitOK(t, func() error {
		if n, err := c.Do(t.Context(), c.B().Publish().Channel(channel).Message(message).Build()).AsInt64(); err != nil || n == 0 {
			return fmt.Errorf("%d hear it, %v", n, err)
		}
		return nil
	})
	select {
	case got := <-heard:
		same(t, message)(got, nil)
	case <-time.After(15 * time.Second):
		t.Errorf("%q was not heard", message)
	}
}

func rueidisStreams(t *testing.T, c rueidis.Client, key string) {
	same(t, "OK")(anyOf(c.Do(t.Context(), c.B().XgroupCreate().Key(key).Group("g").Id("0").Mkstream().Build()).ToString()))
	id, err := c.Do(t.Context(), c.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("a", "1").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	read := c.B().Xreadgroup().Group("g", "c").Count(5).Block(1000).Streams().Key(key).Id(">").Build()
	got, err := c.Do(t.Context(), read).AsXRead()
	if err != nil || len(got[key]) != 1 || got[key][0].ID != id {
		t.Fatalf("%v, %v; want %s", got, err, id)
	}
	same(t, int64(1))(anyOf(c.Do(t.Context(), c.B().Xack().Key(key).Group("g").Id(id).Build()).ToInt64()))
}

func rueidisErrors(t *testing.T, c rueidis.Client, key string) {
	c.Do(t.Context(), c.B().Set().Key(key).Value("text").Build())
	err := c.Do(t.Context(), c.B().Incr().Key(key).Build()).Error()
	if fault, ok := rueidis.IsRedisErr(err); !ok || fault.Error() != "value is not an integer or out of range" {
		t.Errorf("INCR of a text: %v", err)
	}
}

func rueidisDatabases(t *testing.T, c rueidis.Client, option rueidis.ClientOption, key string) {
	option.SelectDB = 3
	three, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	same(t, "OK")(anyOf(three.Do(t.Context(), three.B().Set().Key(key).Value("three").Build()).ToString()))
	same(t, "three")(anyOf(three.Do(t.Context(), three.B().Get().Key(key).Build()).ToString()))
	same(t, int64(0))(anyOf(c.Do(t.Context(), c.B().Exists().Key(key).Build()).ToInt64()))
}

// rueidisCaching answers from the client's memory until another client, directly connected, changes
// the value.
func rueidisCaching(t *testing.T, c rueidis.Client, server *redistest.Server, key string) {
	get := func() rueidis.RedisResult {
		return c.DoCache(t.Context(), c.B().Get().Key(key).Cache(), time.Hour)
	}
	server.Do("SET", key, "1")
	same(t, "1")(anyOf(get().ToString()))
	if again := get(); !again.IsCacheHit() {
		t.Errorf("the second read was no hit: %v", again)
	}
	server.Do("SET", key, "2")
	awaitOK(t, func() error {
		if got, err := get().ToString(); err != nil || got != "2" {
			return fmt.Errorf("%q, %v after another client's SET", got, err)
		}
		return nil
	})
}

// rueidisRestart restarts the server: the client goes on by itself.
func rueidisRestart(t *testing.T, c rueidis.Client, l *lab, key string) {
	l.restart(t)
	awaitOK(t, func() error { return c.Do(t.Context(), c.B().Set().Key(key).Value("back").Build()).Error() })
	rueidisBlockingPop(t, c, key+"list")
}
