//go:build cases

package cases

import (
	"net"
	"strconv"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Many clients share few connections: 150 ordinary ones live on the default four (lane, control,
// control plane, one in reserve) and the spares; each that blocks costs one more, and within five
// seconds of leaving none.
func TestManyClientsOnFewConnections(t *testing.T) {
	const ordinary, blocked, few = 150, 50, 4 + 2
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	watch := connect(t, s.Addr())
	watch.gets("+PONG\r\n", "PING")
	connections := func() int { // less the one that watches
		n, err := strconv.Atoi(s.Info("clients", "connected_clients"))
		if err != nil {
			t.Fatal(err)
		}
		return n - 2 // and the one that asked
	}
	for range ordinary {
		c := f.client()
		c.gets("+OK\r\n", "SET", "k", "v")
	}
	if n := connections(); n > few {
		t.Errorf("%d clients use %d connections, want at most %d", ordinary, n, few)
	}
	var parked []*client
	for range blocked {
		c := f.client()
		c.sends(redistest.Command("BLPOP", "nothing", "0"))
		parked = append(parked, c)
	}
	blockedClients(t, watch, strconv.Itoa(blocked))
	if n := connections(); n > few+blocked {
		t.Errorf("with %d blocked clients there are %d connections, want at most %d", blocked, n, few+blocked)
	}
	for _, c := range parked {
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	left := time.Now()
	eventually(t, "back to few connections", func() bool { return connections() <= few })
	if took := time.Since(left); took > 5*time.Second {
		t.Errorf("it took %v, want at most 5s", took)
	}
}
