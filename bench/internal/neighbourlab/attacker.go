package neighbourlab

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// redial is the rest before a connection is tried again that was refused or ended by the server.
	redial = 10 * time.Millisecond
	// readSize is small, as there are thousands of readers.
	readSize = 16 << 10
)

// Force says what attackers did, so that an attack that did not take place is not taken for one
// that nobody felt.
type Force struct {
	Connections int64 `json:"connections"` // that came about
	Refused     int64 `json:"refused"`
	Bytes       int64 `json:"bytes"` // written
}

// attackers are one attack under way.
type attackers struct {
	addr                        string
	connections, refused, bytes atomic.Int64

	first sync.Once
	came  chan struct{} // closed when the first connection is there, or was refused
}

func newAttackers(addr string) *attackers {
	return &attackers{addr: addr, came: make(chan struct{})}
}

// run attacks until ctx ends.
func (a *attackers) run(ctx context.Context, attack *Attack) Force {
	var all sync.WaitGroup
	for i := range attack.Roles {
		role, turns := &attack.Roles[i], new(atomic.Int64)
		for number := range role.Connections {
			all.Go(func() {
				for ctx.Err() == nil {
					a.live(ctx, role, number, turns)
				}
			})
		}
	}
	all.Wait()
	return Force{a.connections.Load(), a.refused.Load(), a.bytes.Load()}
}

// live is one connection's life.
func (a *attackers) live(ctx context.Context, role *Role, number int, turns *atomic.Int64) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network(a.addr), a.addr)
	if err != nil && ctx.Err() != nil {
		return
	}
	a.first.Do(func() { close(a.came) })
	if err != nil {
		a.refused.Add(1)
		rest(ctx, redial)
		return
	}
	a.connections.Add(1)
	life, end := context.WithCancel(ctx)
	if role.Lives > 0 {
		life, end = context.WithTimeout(ctx, role.Lives)
	}
	var ended sync.WaitGroup
	ended.Add(1)
	context.AfterFunc(life, func() { // it interrupts whoever reads or writes
		leave(conn, role.Ends)
		ended.Done()
	})
	heard := make(chan struct{}, 1)
	if !role.Deaf {
		ended.Go(func() {
			listen(conn, heard)
			end() // by the server, unless it was ended
		})
	}
	if a.talk(life, conn, role, number, turns, heard) != nil {
		end()
	}
	<-life.Done()
	early := errors.Is(life.Err(), context.Canceled)
	end()
	ended.Wait()
	if early {
		rest(ctx, redial)
	}
}

// talk sends what the role says, until the connection ends or there is nothing more to be said.
func (a *attackers) talk(life context.Context, conn net.Conn, role *Role, number int, turns *atomic.Int64, heard <-chan struct{}) error {
	send := func(p Payload) error {
		n, err := conn.Write(p(number, int(turns.Add(1)-1)))
		a.bytes.Add(int64(n))
		return err
	}
	if role.Once != nil {
		if err := send(role.Once); err != nil {
			return err
		}
	}
	for role.Repeat != nil && life.Err() == nil {
		if err := send(role.Repeat); err != nil {
			return err
		}
		if role.Await {
			select {
			case <-heard:
			case <-life.Done():
			}
		}
		rest(life, role.Pause)
	}
	return nil
}

// listen reads to the end, and says so when something has come.
func listen(conn net.Conn, heard chan<- struct{}) {
	for b := make([]byte, readSize); ; {
		if _, err := conn.Read(b); err != nil {
			return
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	}
}

// leave ends a connection. Errors say that the server was faster.
func leave(conn net.Conn, how Ending) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if how == Finishes {
			_ = tcp.CloseWrite() // Close alone sends a reset where something has not been read
		} else {
			_ = tcp.SetLinger(0)
		}
	}
	_ = conn.Close()
}

// rest sleeps unless ctx ends.
func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
