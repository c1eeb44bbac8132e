package proxy

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
)

// One client too many gets Redis's own error and the end; when one leaves there is
// room again.
func TestMaxClients(t *testing.T) {
	f := startFake(t)
	var mu sync.Mutex
	results := map[string]int{}
	p := startProxy(t, f, func(c *Config) {
		c.MaxClients = 1
		c.Events.Accepted = func(r string) { mu.Lock(); results[r]++; mu.Unlock() }
	})
	first := p.client()
	expect(t, first, bulkReply("a"), "GET", "a")
	for range 4 {
		c := p.client()
		if got, err := c.ReadReply(); err != nil || got != "-ERR max number of clients reached\r\n" {
			t.Errorf("got %q, %v", got, err)
		}
		expectEnd(t, c)
	}
	expect(t, first, bulkReply("b"), "GET", "b")
	first.Close()
	until(t, "room", func() bool { return p.sessions.len() == 0 })
	expect(t, p.client(), bulkReply("c"), "GET", "c")
	mu.Lock()
	defer mu.Unlock()
	if results["ok"] != 2 || results["maxclients"] != 4 {
		t.Errorf("accepted %v", results)
	}
}

// brokenListener fails a few times before it accepts.
type brokenListener struct {
	net.Listener
	failures int
}

func (l *brokenListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

// Errors of accept are counted and survived.
func TestAcceptErrors(t *testing.T) {
	f := startFake(t)
	var mu sync.Mutex
	var results []string
	p := startProxy(t, f, func(c *Config) {
		c.Events.Accepted = func(r string) { mu.Lock(); results = append(results, r); mu.Unlock() }
	})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(&brokenListener{l, 2}) }()
	p.addr = l.Addr().String()
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	mu.Lock()
	if !slices.Equal(results, []string{"error", "error", "ok"}) {
		t.Errorf("accepted %v", results)
	}
	mu.Unlock()
	p.Close()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// A listener that fails for good does not hold up the end.
func TestAcceptErrorsUntilTheEnd(t *testing.T) {
	f := startFake(t)
	failed := make(chan struct{}, 100)
	p := startProxy(t, f, func(c *Config) {
		c.Events.Accepted = func(r string) { failed <- struct{}{} }
	})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve(&brokenListener{l, 1 << 30}) }()
	for range 5 {
		<-failed
	}
	p.Close()
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// What comes after the end is closed: listeners and clients.
func TestServeAfterClose(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	p.Close()
	p.Close()
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Serve(l); err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is open")
	}
	near, far := net.Pipe()
	p.accept(near)
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("a client was accepted")
	}
	if p.sessions.len() != 0 {
		t.Error("a session is listed")
	}
}
