package demo

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// near is a worker on an embedded server without distance, where a pass takes little.
func near(t *testing.T, l *ledger) (*worker, *talk, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	talks := make([]*talk, 3)
	for i := range talks {
		conn, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		talks[i] = newTalk(conn)
	}
	w, err := newWorker(talks[0], talks[1], "p", l)
	if err != nil {
		t.Fatal(err)
	}
	return w, talks[2], server
}

func TestWorkerTakesAndAcks(t *testing.T) {
	var l ledger
	w, post, _ := near(t, &l)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	for i := range 3 {
		if _, err := post.do("XADD", w.streams[50*i], "*", "n", string('0'+rune(l.post()))); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(patience)
	for {
		pending := 0
		for i := range 3 {
			v, err := post.do("XPENDING", w.streams[50*i], w.group)
			if err != nil {
				t.Fatal(err)
			}
			if string(v.Elems[0].Text) != "0" {
				pending++
			}
		}
		if d := l.delays(); d.waiting == 0 && d.pass > 0 && pending == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d streams pending, %+v", pending, l.delays())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestPassLeavesNoLocksAndSkipsHeldOnes(t *testing.T) {
	var l ledger
	w, post, server := near(t, &l)
	if _, err := post.do("SET", w.lock(w.streams[3]), "another's"); err != nil {
		t.Fatal(err)
	}
	if err := w.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	var locks []string
	for _, key := range server.Keys() {
		if strings.HasPrefix(key, "autoclaim:") {
			locks = append(locks, key)
		}
	}
	if len(locks) != 1 || locks[0] != w.lock(w.streams[3]) {
		t.Errorf("locks left: %q", locks)
	}
	if err := w.remove(post); err != nil || len(server.Keys()) > 0 {
		t.Errorf("left behind: %q, %v", server.Keys(), err)
	}
}

func TestStrangeMessageIsAFault(t *testing.T) {
	var l ledger
	w, post, _ := near(t, &l)
	if _, err := post.do("XADD", w.streams[0], "*", "n", "5"); err != nil {
		t.Fatal(err)
	}
	if err := w.run(t.Context()); err == nil || !strings.Contains(err.Error(), `"5" was not sent`) {
		t.Errorf("error %v", err)
	}
}
