package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// Ids are unique, above a server's, and exact in JavaScript.
func TestIDs(t *testing.T) {
	var r registry
	seen := map[int64]bool{}
	for i := range 3 {
		s := &session{}
		if !r.add(s, 3) {
			t.Fatalf("session %d is refused", i)
		}
		if s.id < firstID || s.id >= 1<<53 || seen[s.id] {
			t.Errorf("id %d", s.id)
		}
		seen[s.id] = true
		if r.find(s.id) != s {
			t.Errorf("session %d is not found", s.id)
		}
	}
	if r.add(&session{}, 3) {
		t.Error("one session too many")
	}
	for _, s := range r.all() {
		r.remove(s)
		if r.find(s.id) != nil {
			t.Error("a session that has gone is found")
		}
	}
	late := &session{}
	if !r.add(late, 3) || seen[late.id] || r.len() != 1 {
		t.Error("an id was given twice")
	}
}

// Through the proxy: CLIENT ID is the session's own, CLIENT KILL and UNBLOCK reach the
// session that is meant, and nobody else.
func TestIDsOverTheWire(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	a, b := p.client(), p.client()
	idA, err := a.Do("CLIENT", "ID")
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	fmt.Sscanf(idA, ":%d\r\n", &id)
	if id < firstID {
		t.Errorf("CLIENT ID is %q", idA)
	}
	if idB, _ := b.Do("CLIENT", "ID"); idB == idA {
		t.Error("two clients have one id")
	}
	own := fmt.Sprint(id)
	expect(t, b, ":0\r\n", "CLIENT", "UNBLOCK", own)
	a.SendCommand("BLPOP", "k", "0")
	f.await(t, "BLPOP", 1)
	expect(t, b, ":1\r\n", "CLIENT", "UNBLOCK", own)
	if got, err := a.ReadReply(); err != nil || got != "*-1\r\n" {
		t.Errorf("the unblocked client got %q, %v", got, err)
	}
	expect(t, a, ":0\r\n", "CLIENT", "KILL", "ID", own) // oneself is skipped
	expect(t, b, ":0\r\n", "CLIENT", "KILL", "ID", fmt.Sprint(int64(firstID)+1000))
	expect(t, b, ":1\r\n", "CLIENT", "KILL", "ID", own)
	expectEnd(t, a)
	expect(t, b, bulkReply("k"), "GET", "k")
}

// Several ids in one CLIENT KILL, as Valkey takes them, count each client once. An id that is
// not the proxy's among them makes the command the server's.
func TestKillSeveral(t *testing.T) {
	f := startFake(t)
	p := startProxy(t, f, nil)
	killer := p.client()
	var clients []*redistest.Client
	args := []string{"CLIENT", "KILL", "SKIPME", "no", "ID"}
	for range 3 {
		c := p.client()
		got, err := c.Do("CLIENT", "ID")
		if err != nil {
			t.Fatal(err)
		}
		id := strings.Trim(got, ":\r\n")
		clients, args = append(clients, c), append(args, id, id)
	}
	expect(t, killer, ":1\r\n", append(slices.Clone(args[:6]), "SKIPME", "yes")...)
	expect(t, killer, ":2\r\n", args...)
	for _, c := range clients {
		expectEnd(t, c)
	}
	f.script(func(_ *fakeConn, args []string) (string, bool) { return ":7\r\n", slices.Contains(args, "KILL") })
	expect(t, killer, ":7\r\n", append(args, "3")...)
}
