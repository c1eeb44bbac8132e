package proxy

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// lateConn is a connection whose Write has handed everything over long before it returns.
type lateConn struct {
	net.Conn // nil: nothing else is called
	release  chan struct{}
	err      error
}

func (c *lateConn) Write(b []byte) (int, error) {
	<-c.release
	if c.err != nil {
		return 0, c.err
	}
	return len(b), nil
}

func (c *lateConn) Close() error { return nil }

// tellingParcel counts what it is told.
type tellingParcel struct{ written, dropped atomic.Int32 }

func (t *tellingParcel) Written() { t.written.Add(1) }
func (t *tellingParcel) Drop()    { t.dropped.Add(1) }

// A client may have got its entries and left before their writer is told that they went:
// they are not given back then. If the write has failed they are.
func TestLeftBeforeItsWriterKnew(t *testing.T) {
	for _, failed := range []error{nil, errors.New("reset")} {
		synctest.Test(t, func(t *testing.T) {
			conn := &lateConn{release: make(chan struct{}), err: failed}
			s := &session{p: new(Proxy), nc: conn}
			s.cond.L = &s.mu
			s.handouts = []handout{{0, new(tellingParcel)}}
			parcel := s.handouts[0].h.(*tellingParcel)
			s.mu.Lock()
			s.append([]byte("*1\r\n"))
			out := s.takeOutput()
			s.mu.Unlock()
			go s.writeOut(out, 0)
			synctest.Wait()
			s.mu.Lock()
			s.seal()
			s.mu.Unlock()
			go s.dropHandouts()
			synctest.Wait()
			close(conn.release)
			synctest.Wait()
			want := [2]int32{1, 0}
			if failed != nil {
				want = [2]int32{0, 1}
			}
			if got := [2]int32{parcel.written.Load(), parcel.dropped.Load()}; got != want {
				t.Errorf("write error %v: written and dropped %v, want %v", failed, got, want)
			}
		})
	}
}
