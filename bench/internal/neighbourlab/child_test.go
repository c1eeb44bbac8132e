package neighbourlab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// child runs one within the test. line returns the next that it says, tell tells it one.
func child(t *testing.T, args ...string) (line func() string, tell func(string), ended <-chan error) {
	t.Helper()
	in, told := io.Pipe()
	said, out := io.Pipe()
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		err := Child(ctx, args, in, out)
		out.CloseWithError(io.EOF)
		done <- err
	}()
	t.Cleanup(func() { stop(); told.Close(); said.Close() })
	r := bufio.NewReader(said)
	line = func() string { text, _ := r.ReadString('\n'); return text }
	return line, func(text string) { fmt.Fprintln(told, text) }, done
}

// TestChildrenAgainstAServer has neighbours and attackers meet at a real one.
func TestChildrenAgainstAServer(t *testing.T) {
	server := redistest.Start(t)
	attack, err := Find("kills-and-unblocks")
	if err != nil {
		t.Fatal(err)
	}
	if err := prepare(server.Addr(), attack); err != nil {
		t.Fatal(err)
	}
	heard, tellNeighbours, _ := child(t, "neighbours", server.Addr(), "0s")
	force, tellAttackers, _ := child(t, "attackers", attack.Name, server.Addr())
	for _, line := range []func() string{heard, force} {
		if got := line(); got != saysReady+"\n" {
			t.Fatalf("not ready: %q", got)
		}
	}
	for _, tell := range []func(string){tellNeighbours, tellAttackers} {
		tell(tellAttack)
	}
	if got := force(); got != saysCame+"\n" {
		t.Fatalf("nobody came: %q", got)
	}
	rest(t.Context(), 500*ms)
	tellAttackers(tellRelieve)
	tellNeighbours(tellRelieve)
	rest(t.Context(), 500*ms)
	tellNeighbours(tellEnd)
	var h Heard
	var f Force
	if err := json.Unmarshal([]byte(heard()), &h); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(force()), &f); err != nil {
		t.Fatal(err)
	}
	if err := h.check(); err != nil || f.Connections == 0 {
		t.Errorf("%v; %+v", err, f)
	}
	for name, w := range h.Under {
		if w.Errors > 0 || w.P50 <= 0 || w.P50 > w.P99 || w.P99 > w.Max {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// TestPreparations has every attack's be accepted by a real server.
func TestPreparations(t *testing.T) {
	server := redistest.Start(t)
	for _, a := range Attacks() {
		if a.Prepare == nil {
			continue
		}
		if err := prepare(server.Addr(), &a); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
	if got := server.Do("GET", valueKey); !strings.Contains(got, value) {
		t.Errorf("the neighbours' value is %q", got)
	}
}

func TestChildrenEndWhenLeftAlone(t *testing.T) {
	if err := Child(t.Context(), []string{"attackers", "pings", "127.0.0.1:1"}, strings.NewReader(""), io.Discard); err != nil {
		t.Error(err)
	}
	server := redistest.Start(t)
	if err := prepare(server.Addr(), nil); err != nil {
		t.Fatal(err)
	}
	if err := Child(t.Context(), []string{"neighbours", server.Addr(), "0s"}, strings.NewReader(""), io.Discard); err != nil {
		t.Error(err)
	}
}

func TestChildrenThatCannotBegin(t *testing.T) {
	for _, args := range [][]string{nil, {"others"}, {"attackers", "nothing", "127.0.0.1:1"}, {"neighbours", "127.0.0.1:1", "0s"}, {"neighbours", "127.0.0.1:1", "far"}} {
		if err := Child(t.Context(), args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q began", args)
		}
	}
}
