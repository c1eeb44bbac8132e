package neighbourlab

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// serve accepts connections and hands each to fn until the test ends.
func serve(t *testing.T, fn func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fn(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func attackOf(r Role) *Attack { return &Attack{Name: "test", Roles: []Role{r}} }

func TestConnectionsEndAsTheyAreTo(t *testing.T) {
	for ending, want := range map[Ending]error{Resets: syscall.ECONNRESET, Finishes: nil} {
		ctx, stop := context.WithCancel(t.Context())
		seen := make(chan error, 100)
		addr := serve(t, func(conn net.Conn) {
			_, err := io.Copy(io.Discard, conn)
			seen <- err
		})
		done := make(chan Force)
		go func() {
			done <- newAttackers(addr).run(ctx, attackOf(Role{Connections: 2, Once: lines("PING"), Lives: 5 * ms, Ends: ending}))
		}()
		for range 4 { // each is followed by another
			if err := <-seen; !errors.Is(err, want) {
				t.Errorf("ending %d was seen as %v", ending, err)
			}
		}
		stop()
		if force := <-done; force.Connections < 4 || force.Bytes < 4*int64(len(encode("PING"))) || force.Refused != 0 {
			t.Errorf("%+v", force)
		}
	}
}

func TestWhoWaitsRepeatsOnlyWhenAnswered(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var commands atomic.Int64
	addr := serve(t, func(conn net.Conn) {
		b := make([]byte, 100)
		for range 3 { // twice it answers
			n, err := conn.Read(b)
			if err != nil || string(b[:n]) != string(encode("PING")) {
				t.Errorf("%q, %v", b[:n], err)
			}
			if commands.Add(1); commands.Load() < 3 {
				_, _ = io.WriteString(conn, "+PONG\r\n")
			}
		}
		stop()
		_, _ = conn.Read(b) // the reset
	})
	force := newAttackers(addr).run(ctx, attackOf(Role{Connections: 1, Repeat: lines("PING"), Await: true}))
	if force.Connections != 1 || force.Bytes != 3*int64(len(encode("PING"))) || commands.Load() != 3 {
		t.Errorf("%d commands, %+v", commands.Load(), force)
	}
}

func TestWhomTheServerEndsComesBack(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var came atomic.Int64
	addr := serve(t, func(net.Conn) {
		if came.Add(1) == 4 { // the last one's end need not be seen
			stop()
		}
	})
	if force := newAttackers(addr).run(ctx, attackOf(Role{Connections: 1, Once: lines("PING")})); force.Connections < 3 {
		t.Errorf("%+v", force)
	}
}

func TestRefusedConnectionsAreCounted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, stop := context.WithTimeout(t.Context(), 30*ms)
	defer stop()
	if force := newAttackers(l.Addr().String()).run(ctx, attackOf(Role{Connections: 1})); force.Connections != 0 || force.Refused == 0 {
		t.Errorf("%+v", force)
	}
}
