//go:build cases

package cases

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// laneIDs finds the connections of lanes in CLIENT LIST, by the server's ids.
var laneIDs = regexp.MustCompile(`(?m)^id=(\d+) .* name=streamproxy:\S*:lane `)

// lost returns the ids of lanes that the first CLIENT LIST has and the second has not.
func lost(before, after string) (gone []string) {
	for _, m := range laneIDs.FindAllStringSubmatch(before, -1) {
		if !strings.Contains(after, "id="+m[1]+" ") {
			gone = append(gone, m[1])
		}
	}
	return gone
}

// limit is how long a neighbour's GET may take while giants pass: the server itself is busy
// with a giant for a while, and a command already behind a giant reply waits for it. Without
// care it would wait for as long as the giant's client pleases, which here is ten seconds.
const limit = 8 * time.Second

// A client that sends 64 MB, slowly, holds up nobody.
func TestCase16HugeValue(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	c, neighbour := f.client(), f.client()
	neighbour.gets("+OK\r\n", "SET", "k", "v")
	const size = 64 << 20
	c.sends(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n", size))
	piece := strings.Repeat("x", 1<<20)
	for sent := 0; sent < size; sent += len(piece) {
		c.sends(piece)
		if took := sample(t, neighbour, 20, bulk("v"), "GET", "k"); took[19] > limit {
			t.Fatalf("a neighbour's GET took %v", took[19])
		}
	}
	c.sends("\r\n")
	c.replies("+OK\r\n")
	neighbour.gets(fmt.Sprintf(":%d\r\n", size), "STRLEN", "big")
}

// giantList fills a list with a million elements and returns the length of the reply that lists
// them.
func giantList(t *testing.T, s *redistest.Server) int {
	t.Helper()
	const n, element = 1_000_000, "element of the giant list, 40 bytes long"
	script := fmt.Sprintf("local t = {} for i = 1, 1000 do t[i] = '%s' end for i = 1, %d do redis.call('RPUSH', 'list', unpack(t)) end", element, n/1000)
	if got := s.Do("EVAL", script, "0"); got != "$-1\r\n" {
		t.Fatalf("fill the list: %q", got)
	}
	return len(fmt.Sprintf("*%d\r\n", n)) + n*len(bulk(element))
}

// A client that asks for a million elements and reads them at once, and then one that reads nothing
// of them for a while: its neighbours' GETs go on. The slow one gets all of it in the end or, if
// somebody waited behind it, the end of its connection, and never anything else.
func TestCase16GiantReply(t *testing.T) {
	s := redistest.Start(t)
	f := startProxy(t, s.Addr())
	size := giantList(t, s)
	neighbours := []*client{f.client(), f.client(), f.client()}
	neighbours[0].gets("+OK\r\n", "SET", "k", "v")
	for _, reads := range []bool{true, false} {
		c := f.client()
		c.sends(redistest.Command("LRANGE", "list", "0", "-1"))
		got := make(chan int64, 1)
		read := func() {
			n, err := io.CopyN(io.Discard, c.Conn, int64(size))
			if err != nil && err != io.EOF {
				t.Logf("after %d bytes: %v", n, err)
			}
			got <- n
		}
		if reads {
			go read() // ends with the reply or the connection
		}
		var all []time.Duration
		for start := time.Now(); time.Since(start) < 2*time.Second || len(all) < 20; {
			for _, n := range neighbours {
				n.sends(redistest.Command("GET", "k")) // all of them at once, so that some stand behind the giant
			}
			at := time.Now()
			for _, n := range neighbours {
				n.replies(bulk("v"))
			}
			all = append(all, time.Since(at))
		}
		slices.Sort(all)
		t.Logf("reading at once: %v; %d rounds, p50 %v, p99 %v, slowest %v", reads, len(all), percentile(all, .5), percentile(all, .99), percentile(all, 1))
		if slowest := percentile(all, 1); slowest > limit || percentile(all, .5) > limit/10 {
			t.Errorf("the neighbours waited up to %v, half of them %v", slowest, percentile(all, .5))
		}
		if !reads {
			_ = c.Conn.(*net.TCPConn).SetReadDeadline(time.Now().Add(patience))
			go read() // ends with the reply or the connection
		}
		if n := <-got; n != int64(size) && reads {
			t.Errorf("the reader got %d bytes of %d", n, size)
		}
		_ = c.Close()
	}
}
