//go:build operations

package operations

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/proxytest"
)

// door is the address of a server that can be away: closed, it hangs up on whoever dials, and
// keeps a book of when that was. A port that refuses could not be counted at.
type door struct {
	addr   string
	server string
	l      net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	dials  []time.Time
	conns  map[net.Conn]struct{}
}

// openDoor stands before a server until the test ends.
func openDoor(t *testing.T, server string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{addr: l.Addr().String(), server: server, l: l, conns: map[net.Conn]struct{}{}}
	d.wg.Go(d.accept)
	t.Cleanup(func() {
		_ = l.Close()
		d.close()
		d.wg.Wait()
	})
	return d
}

func (d *door) accept() {
	for {
		c, err := d.l.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.dials = append(d.dials, time.Now())
		closed := d.closed
		d.mu.Unlock()
		if closed {
			_ = c.Close()
			continue
		}
		up, err := net.Dial("tcp", d.server)
		if err != nil {
			_ = c.Close()
			continue
		}
		d.wg.Go(func() { d.pass(c, up) })
		d.wg.Go(func() { d.pass(up, c) })
	}
}

// pass copies until one end is gone, and closes both.
func (d *door) pass(from, to net.Conn) {
	d.mu.Lock()
	late := d.closed
	d.conns[from] = struct{}{}
	d.mu.Unlock()
	if !late {
		_, _ = io.Copy(to, from)
	}
	_, _ = from.Close(), to.Close()
	d.mu.Lock()
	delete(d.conns, from)
	d.mu.Unlock()
}

// close cuts every connection and lets none through.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c := range d.conns {
		_ = c.Close()
	}
}

// open lets connections through again and returns when that was.
func (d *door) open() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
	return time.Now()
}

// between counts the dials of a time.
func (d *door) between(from, to time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range d.dials {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// peak is the largest number of dials in any stretch of that length between two times.
func (d *door) peak(stretch time.Duration, from, to time.Time) (most int) {
	d.mu.Lock()
	at := slices.Clone(d.dials)
	d.mu.Unlock()
	first := 0
	for i := range at {
		if at[i].Before(from) || !at[i].Before(to) {
			first = i + 1
			continue
		}
		for at[i].Sub(at[first]) >= stretch {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// knockEvery is how often a proxy that was given no password connects once to see whether the server
// lets strangers in.
const knockEvery = 15 * time.Second

// settle waits until nobody has dialled for a second, but for the knocks of so many proxies.
func (d *door) settle(t *testing.T, proxies int) {
	t.Helper()
	knocks := int(2 * time.Duration(proxies) * time.Second / knockEvery) // they do not come evenly
	proxytest.Eventually(t, "no more dials", func() bool {
		now := time.Now()
		return d.between(now.Add(-time.Second), now) <= knocks
	})
}
