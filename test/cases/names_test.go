//go:build cases

package cases

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// nameserver answers every question for an IPv4 address with the present one, and every other
// question with nothing.
type nameserver struct {
	conn    net.PacketConn
	present atomic.Pointer[net.IP]
	asked   atomic.Int64
}

// startNameserver makes this process's resolver ask it until the test ends.
func startNameserver(t *testing.T) *nameserver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameserver{conn: conn}
	done := make(chan struct{})
	go func() { // ends with the connection, which the cleanup closes
		defer close(done)
		n.serve()
	}()
	before := net.DefaultResolver
	// DialUDP asks no resolver: a Dialer would read the variable, at a time of its own.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
		<-done
	})
	return n
}

func (n *nameserver) serve() {
	packet := make([]byte, 512)
	for {
		size, from, err := n.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		if reply := n.reply(packet[:size]); reply != nil {
			_, _ = n.conn.WriteTo(reply, from) // who has left asks again
		}
	}
}

// reply answers a question as RFC 1035 lays it out: the header, the question as it came, and one
// record whose name points to the question's and which may be kept for no time.
func (n *nameserver) reply(query []byte) []byte {
	const header = 12
	end := header
	for end < len(query) && query[end] != 0 { // the labels of the name
		end += int(query[end]) + 1
	}
	end += 1 + 4 // the root label; type and class
	if end > len(query) {
		return nil
	}
	n.asked.Add(1)
	question := query[header:end]
	reply := []byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}
	reply = append(reply, question...)
	if address := question[len(question)-3] == 1; address {
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, n.present.Load().To4()...)
	}
	return reply
}

// move changes the name's address.
func (n *nameserver) move(to string) {
	ip := net.ParseIP(to)
	n.present.Store(&ip)
}

// houses are two servers' links at one port of two addresses, between which a name moves.
func houses(t *testing.T) (port string, addrs [2]string, links [2]*netlab.Link, servers [2]*redistest.Server) {
	t.Helper()
	addrs = [2]string{"127.0.0.2", "127.0.0.3"}
	port = strconv.Itoa(redistest.FreePort(t))
	for i, addr := range addrs {
		servers[i] = redistest.Start(t)
		servers[i].Do("SET", "who", addr)
		link, err := netlab.Start(netlab.Options{Upstream: servers[i].Addr(), Listen: net.JoinHostPort(addr, port)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		links[i] = link
	}
	return port, addrs, links, servers
}

// die ends a server as seen from outside.
func die(t *testing.T, l *netlab.Link) {
	t.Helper()
	if err := l.Refuse(); err != nil {
		t.Fatal(err)
	}
	l.Reset()
}

// The name of the server was resolved once, at the start. Here its address changes and the old
// server dies: the next connection goes to the new one.
func TestCase40NameMoves(t *testing.T) {
	dns := startNameserver(t)
	port, addrs, links, _ := houses(t)
	dns.move(addrs[0])
	f := startProxy(t, net.JoinHostPort("redis.test", port))
	c := f.client()
	c.gets(bulk(addrs[0]), "GET", "who")
	dns.move(addrs[1])
	die(t, links[0])
	eventually(t, "the new server answers", func() bool { return c.ask("GET", "who") == bulk(addrs[1]) })
	if dns.asked.Load() < 2 {
		t.Error("the name was not asked for again")
	}
}

// The server's address changes again and again, each time with connections of every kind: nothing
// of the old ones stays. The long form changes it 1,000 times.
func TestCase35AddressChanges(t *testing.T) {
	dns := startNameserver(t)
	port, addrs, links, servers := houses(t)
	dns.move(addrs[0])
	f := startProxy(t, net.JoinHostPort("redis.test", port))
	c, blocked := f.client(), f.client()
	c.Timeout, blocked.Timeout = time.Minute, time.Minute
	c.gets(bulk(addrs[0]), "GET", "who")
	changes := 30
	if long() {
		changes = 1000
	}
	before := atRest(t, f)
	for i := range changes {
		blocked.sends(redistest.Command("BLPOP", "nothing", "0"))
		eventually(t, "a client is blocked", func() bool { return servers[i%2].Info("clients", "blocked_clients") == "1" })
		if err := links[(i+1)%2].Admit(); i > 0 && err != nil {
			t.Fatal(err)
		}
		dns.move(addrs[(i+1)%2])
		die(t, links[i%2])
		if got := blocked.reply(); got != unknownOutcome && got != notSent { // it was not written yet
			t.Fatalf("the blocked client got %q", got)
		}
		within(t, time.Minute, "the other server answers", func() bool {
			links[i%2].Reset() // a connection that was being accepted as it died
			return c.ask("GET", "who") == bulk(addrs[(i+1)%2])
		})
	}
	before.returns(t, f)
}

// Clients connect, ask for much and reset in the middle of the reply: connections, goroutines and
// descriptors are as before. The long form does it 100,000 times.
func TestCase35ResetsInMidReply(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	f.client().gets("+OK\r\n", "SET", "k", string(make([]byte, 300_000)))
	rounds := 1000
	if long() {
		rounds = 100_000
	}
	before := atRest(t, f)
	for i := range rounds {
		c, err := redistest.Dial([]string{f.tcp, f.unix}[i%2])
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SendCommand("GET", "k"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Conn.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		reset(c.Conn)
	}
	before.returns(t, f)
}
