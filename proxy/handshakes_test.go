package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"
)

// Nothing is signed for a client that has reset its connection, neither when it has said hello nor
// when its turn comes; and the turn is the next one's.
func TestHandshakesOfTheDeparted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	h := NewHandshakes()
	if err := h.Look(nc); err != nil {
		t.Fatalf("a client that is there: %v", err)
	}
	leave, err := h.Enter(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	_ = client.(*net.TCPConn).SetLinger(0)
	_ = client.Close()
	until(t, "the reset", func() bool { return h.Look(nc) != nil })
	if _, err := h.Enter(t.Context(), nc); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	if !h.turns.TryAcquire(int64(runtime.GOMAXPROCS(0))) {
		t.Error("a turn is not given back")
	}
}

// busyGate tells of who waits.
type busyGate struct {
	*Handshakes
	waits chan struct{}
}

func (g busyGate) Enter(ctx context.Context, client net.Conn) (leave func(), err error) {
	g.waits <- struct{}{}
	return g.Handshakes.Enter(ctx, client)
}

// Clients that reset their connections while others' handshakes keep the threads busy leave the
// queue at once, and count among the clients no more. Who stays is served.
func TestResetEndsTheWaitForAHandshake(t *testing.T) {
	const crowd = 20
	gate := busyGate{NewHandshakes(), make(chan struct{}, 2*crowd)}
	s := startSecureBehind(t, gate, nil)
	busy := int64(runtime.GOMAXPROCS(0))
	if err := gate.turns.Acquire(t.Context(), busy); err != nil {
		t.Fatal(err)
	}
	config := s.identity(s.authority)
	config.ServerName = "127.0.0.1"
	for range crowd {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = tls.Client(nc, config).Handshake() }() // ends with the connection
		<-gate.waits
		_ = nc.(*net.TCPConn).SetLinger(0)
		_ = nc.Close()
		began := time.Now()
		s.await("the session ends", func() bool { return s.Stats().Clients == 0 })
		if took := time.Since(began); took > secureTime/2 {
			t.Fatalf("it took %v", took)
		}
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if nc, err := tls.Dial("tcp", s.addr, config); err != nil {
			t.Error(err)
		} else {
			_ = nc.Close()
		}
	}()
	<-gate.waits
	gate.turns.Release(busy)
	<-served
}
