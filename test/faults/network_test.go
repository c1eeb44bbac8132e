//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// network is a namespace of its own for the proxy, with one cable to the lab, on which packets can
// be lost, and a name server that can fail.
type network struct {
	t     testing.TB
	space string // the namespace's name
	cable string // the lab's end
	lab   string // addresses
	proxy string
	mood  atomic.Int32 // of the name server
}

// hostName is how the proxy knows the lab.
const hostName = "redis.faults.test"

// Moods of the name server: it answers, with an address, that it cannot, that there is no such name,
// or not at all.
const (
	answers int32 = iota
	fails
	denies
	silent
	numMoods
)

// newNetwork needs root and the ip and tc commands; without them it returns nil, and says so.
func newNetwork(t testing.TB) *network {
	t.Helper()
	n := &network{t: t}
	id := rand.IntN(1 << 14)
	n.space, n.cable = fmt.Sprint("faults", id), fmt.Sprint("flt", id)
	n.lab = fmt.Sprintf("10.%d.%d.1", 192+id>>8, id&0xff)
	n.proxy = strings.TrimSuffix(n.lab, "1") + "2"
	if err := command("ip", "netns", "add", n.space); err != nil {
		t.Logf("no network namespace here, so that no packet and no name will be lost: %v", err)
		return nil
	}
	t.Cleanup(func() {
		_ = command("ip", "netns", "del", n.space) // and the cable with it
		_ = os.RemoveAll(filepath.Join("/etc/netns", n.space))
	})
	for _, line := range []string{
		"ip link add " + n.cable + " type veth peer name eth0 netns " + n.space,
		"ip addr add " + n.lab + "/30 dev " + n.cable,
		"ip link set " + n.cable + " up",
		"ip -n " + n.space + " addr add " + n.proxy + "/30 dev eth0",
		"ip -n " + n.space + " link set eth0 up",
		"ip -n " + n.space + " link set lo up",
		"tc qdisc add dev " + n.cable + " clsact",
	} {
		if err := command(strings.Fields(line)...); err != nil {
			t.Logf("no network of its own for the proxy here, so that no packet and no name will be lost: %v", err)
			return nil
		}
	}
	n.serveNames()
	return n
}

func command(args ...string) error {
	if text, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, text)
	}
	return nil
}

// lose drops a part of all packets in both directions, 0 for none and 1 for every one. The kernel's
// own filter does it: a random number below the bound drops the packet (2), any other lets it
// pass (0).
func (n *network) lose(part float64) {
	n.t.Helper()
	for _, direction := range []string{"ingress", "egress"} {
		_ = command("tc", "filter", "del", "dev", n.cable, direction) // there may be none
		if part == 0 {
			continue
		}
		program := fmt.Sprintf("4,32 0 0 4294963256,53 0 1 %d,6 0 0 0,6 0 0 2,", int64(part*(1<<32-1)))
		if part == 1 {
			program = "1,6 0 0 2,"
		}
		if err := command("tc", "filter", "add", "dev", n.cable, direction, "bpf", "da", "bytecode", program); err != nil {
			n.t.Error(err)
		}
	}
}

// serveNames answers the proxy's questions for names until the test ends.
func (n *network) serveNames() {
	n.t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(n.lab, "53"))
	if err != nil {
		n.t.Fatal(err)
	}
	folder := filepath.Join("/etc/netns", n.space) // ip netns exec puts it in /etc's place
	if err := os.MkdirAll(folder, 0o755); err != nil {
		n.t.Fatal(err)
	}
	config := "nameserver " + n.lab + "\noptions timeout:1 attempts:2\n"
	if err := os.WriteFile(filepath.Join(folder, "resolv.conf"), []byte(config), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	go func() { // ends with the socket
		question := make([]byte, 512)
		for {
			size, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			if reply := n.answer(question[:size]); reply != nil {
				_, _ = conn.WriteTo(reply, from) // who asks will ask again
			}
		}
	}()
}

// answer writes a reply in the format of RFC 1035: the question's header and name, and for an
// address (type 1) the lab's.
func (n *network) answer(question []byte) []byte {
	mood := n.mood.Load()
	end := 12
	for end < len(question) && question[end] != 0 {
		end += int(question[end]) + 1
	}
	if end += 5; end > len(question) || mood == silent {
		return nil
	}
	code := map[int32]byte{answers: 0, fails: 2, denies: 3}[mood]
	reply := append([]byte{question[0], question[1], 0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0}, question[12:end]...)
	if code == 0 && question[end-3] == 1 {
		reply[7] = 1
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, net.ParseIP(n.lab).To4()...)
	}
	return reply
}
