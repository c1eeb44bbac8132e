package upstream

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/tidwall/redcon"

	"streamproxy/internal/redistest"
)

func newControl(t *testing.T, d *Dialer) *Control {
	t.Helper()
	c, err := NewControl(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// awaitPing asks until the server answers, as the proxy's own back-off would.
func awaitPing(t *testing.T, c *Control) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(10 * time.Second)
	for {
		err := c.Ping(t.Context())
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("still no answer: %v", err)
		}
	}
}

func TestFacts(t *testing.T) {
	s := redistest.Start(t, redistest.WithArgs("--databases", "7", "--proto-max-bulk-len", "64mb"))
	for _, url := range []string{s.URL() + "/3", "unix://" + s.Socket()} {
		f, err := newControl(t, dialerFor(t, url)).Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.RunID != s.Info("server", "run_id") || f.MaxBulk != 64<<20 || f.Databases != 7 {
			t.Errorf("run %q, bulk %d, databases %d", f.RunID, f.MaxBulk, f.Databases)
		}
		if f.Server == "" || f.Version == "" {
			t.Errorf("server %q, version %q", f.Server, f.Version)
		}
		checkCommands(t, f.Commands)
	}
}

func checkCommands(t *testing.T, commands []CommandInfo) {
	t.Helper()
	byName := map[string]CommandInfo{}
	for _, c := range commands {
		byName[c.Name] = c
	}
	get := byName["get"]
	if get.Arity != 2 || !get.Flag("readonly") || get.FirstKey != 1 || get.LastKey != 1 || get.Step != 1 || get.Module {
		t.Errorf("get: %+v", get)
	}
	if mget := byName["mget"]; mget.Arity != -2 || mget.LastKey != -1 {
		t.Errorf("mget: %+v", mget)
	}
	if !byName["blpop"].Flag("blocking") || byName["ping"].FirstKey != 0 {
		t.Errorf("blpop: %+v, ping: %+v", byName["blpop"], byName["ping"])
	}
	var names []string
	for _, c := range byName["client"].Subcommands {
		names = append(names, c.Name)
	}
	if !strings.Contains(strings.Join(names, " "), "client|unblock") {
		t.Errorf("client has subcommands %v", names)
	}
}

func TestFactsDenied(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "low", "on", ">p", "+ping")
	f, err := newControl(t, dialerFor(t, "redis://low:p@"+s.Addr())).Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := newControl(t, dialerFor(t, "redis://low:p@"+s.Addr())).RunID(t.Context()); id != "" || err != nil {
		t.Errorf("run %q, %v", id, err)
	}
	if f.RunID != "" || f.Server != "" || f.MaxBulk != DefaultMaxBulk || f.Databases != 16 || len(f.Commands) != 0 {
		t.Errorf("%+v", f)
	}
}

// One connection however many callers, and a new one after a restart.
func TestControlConnections(t *testing.T) {
	s := redistest.Start(t)
	control := newControl(t, dialerFor(t, s.URL()))
	done := make(chan error)
	for range 20 {
		go func() { done <- control.Ping(t.Context()) }()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	list := s.Do("CLIENT", "LIST")
	if n := strings.Count(list, "name=streamproxy:a_host:control"); n != 1 {
		t.Errorf("%d control connections:\n%s", n, list)
	}
	before := s.Info("server", "run_id")
	if id, err := control.RunID(t.Context()); id != before || err != nil {
		t.Errorf("run %q, %v; want %q", id, err, before)
	}
	s.Restart()
	awaitPing(t, control)
	f, err := control.Facts(t.Context())
	if err != nil || f.RunID == before {
		t.Errorf("run %q after %q, %v", f.RunID, before, err)
	}
}

// Renewed, it asks over another connection, and closes the one before; after its end no more.
func TestControlRenew(t *testing.T) {
	s := redistest.Start(t)
	control := newControl(t, dialerFor(t, s.URL()))
	for n := int64(1); n < 4; n++ {
		for range 2 {
			awaitPing(t, control)
		}
		if got := control.Connections(); got != n {
			t.Errorf("%d connections, want %d", got, n)
		}
		if err := control.Renew(); err != nil {
			t.Fatal(err)
		}
	}
	control.Close()
	if err := control.Renew(); err != nil || control.Ping(t.Context()) == nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestControlStartsBeforeTheServer(t *testing.T) {
	s := redistest.Start(t)
	s.Kill()
	control := newControl(t, dialerFor(t, s.URL()))
	if err := control.Ping(t.Context()); !Unavailable(err) {
		t.Errorf("server down: %v", err)
	}
	if _, err := control.Facts(t.Context()); !Unavailable(err) {
		t.Errorf("server down: %v", err)
	}
	s.Restart()
	awaitPing(t, control)
}

// NewControl must not wait for a server that accepts and is silent.
func TestControlStartsBesideSilence(t *testing.T) {
	s := redistest.Start(t)
	s.Stop()
	defer s.Cont()
	control := newControl(t, dialerFor(t, s.URL()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := control.Ping(ctx); !Unavailable(err) {
		t.Errorf("silent server: %v", err)
	}
}

func TestControlNotReady(t *testing.T) {
	s := redistest.Start(t)
	control := newControl(t, dialerFor(t, s.URL()))
	s.Do("CONFIG", "SET", "replica-serve-stale-data", "no")
	s.Do("REPLICAOF", "127.0.0.1", "1")
	if err := control.Ping(t.Context()); !NotReady(err) || Unavailable(err) {
		t.Errorf("replica without master: %v", err)
	}
	if _, g := mustDial(t, dialerFor(t, s.URL()), Key{Proto: 2}); !strings.HasPrefix(g.NotReady, "MASTERDOWN") {
		t.Errorf("greeting %+v", g)
	}
}

func TestControlMaxClients(t *testing.T) {
	s := redistest.Start(t, redistest.WithArgs("--maxclients", "1"))
	mustDial(t, dialerFor(t, s.URL()), Key{Proto: 2})
	if err := newControl(t, dialerFor(t, s.URL())).Ping(t.Context()); !Unavailable(err) {
		t.Errorf("error %v", err)
	}
}

func TestControlOnMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	d := dialerFor(t, "redis://"+m.Addr())
	control := newControl(t, d)
	if err := control.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	f, err := control.Facts(t.Context())
	if err != nil || f.RunID != "" || f.MaxBulk != DefaultMaxBulk || f.Databases != 16 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, proto := range []int{2, 3} {
		c, g := mustDial(t, d, Key{Proto: proto, DB: 1})
		expect(t, c, "+PONG\r\n", "PING")
		if g.NotReady != "" {
			t.Errorf("greeting %+v", g)
		}
	}
}

// A server that answers each question of the control plane with an error that
// asks for patience must not be taken for one without facts.
func TestFactsOfALoadingServer(t *testing.T) {
	s := redcon.NewServer("127.0.0.1:0", func(c redcon.Conn, cmd redcon.Command) {
		switch strings.ToUpper(string(cmd.Args[0])) {
		case "HELLO":
			c.WriteRaw([]byte("%1\r\n$5\r\nproto\r\n:3\r\n"))
		default:
			c.WriteError("LOADING Redis is loading the dataset in memory")
		}
	}, nil, nil)
	ready := make(chan error)
	go func() { _ = s.ListenServeAndSignal(ready) }()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	control := newControl(t, dialerFor(t, "redis://"+s.Addr().String()))
	if _, err := control.Facts(t.Context()); !NotReady(err) {
		t.Errorf("error %v", err)
	}
	if err := control.Ping(t.Context()); !NotReady(err) {
		t.Errorf("error %v", err)
	}
}

func TestControlLeavesNothingBehind(t *testing.T) {
	s := redistest.Start(t)
	before := runtime.NumGoroutine()
	for range 10 {
		c, err := NewControl(dialerFor(t, s.URL()))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		c.Close()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+2 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}
