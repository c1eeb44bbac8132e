package differential

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
	"streamproxy/proxy"
	"streamproxy/reclaim"
)

// pair is two equal servers: one is spoken to directly, the other through the proxy.
type pair struct {
	direct, behind *redistest.Server
	front          string    // the proxy's address
	covered        *coverage // of what was played; nil: not asked
}

// serverArgs makes the servers tell as little as possible that only depends on time.
var serverArgs = redistest.WithArgs(
	"--enable-debug-command", "yes", "--slowlog-log-slower-than", "-1", "--hz", "100",
	"--loglevel", "warning", "--maxmemory", "0")

// newPair starts two servers, and the proxy within this process.
func newPair(t testing.TB) *pair {
	t.Helper()
	p := newServers(t)
	target, err := upstream.Parse(p.behind.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := proxy.DefaultConfig()
	cfg.Upstream = target
	cfg.Reclaim.Mode = reclaim.Off // its lease would be a key that only one of the servers has
	// A busy machine is no difference. Shorter than what a reply may take: so long WAIT looks for the connection
	// that somebody else has got.
	cfg.UpstreamWait = 8 * time.Second
	px, err := proxy.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- px.Serve(l) }() // ends with the proxy's Close
	t.Cleanup(func() {
		px.Close()
		if err := <-served; err != nil {
			t.Errorf("the proxy's listener: %v", err)
		}
	})
	p.front = l.Addr().String()
	return p
}

// newServers starts the servers alone: front is for the caller to fill in.
func newServers(t testing.TB) *pair {
	t.Helper()
	p := &pair{direct: redistest.Start(t, serverArgs), behind: redistest.Start(t, serverArgs)}
	addUsers(p.direct)
	addUsers(p.behind)
	return p
}

// run plays a script from an empty server on both sides and returns the first difference of the
// replies or, if there is none, of the data that is left.
func (p *pair) run(s script, timeout time.Duration) error {
	for _, server := range []*redistest.Server{p.direct, p.behind} {
		empty(server)
	}
	sides := [2]*player{
		newPlayer(p.direct.Addr(), p.direct, timeout),
		newPlayer(p.front, p.behind, timeout),
	}
	var heard [2][]outcome
	done := make(chan struct{})
	go func() {
		defer close(done)
		heard[1] = sides[1].play(s)
	}()
	heard[0] = sides[0].play(s)
	<-done
	if p.covered != nil {
		p.covered.heard(heard[0])
	}
	if d := compare(heard[0], heard[1]); d != nil {
		return d
	}
	if err := p.settle(); err != nil {
		return err
	}
	if a, b := p.direct.Do("DEBUG", "DIGEST"), p.behind.Do("DEBUG", "DIGEST"); a != b {
		return fmt.Errorf("all replies are equal, the data that is left is not: %q, %q", a, b)
	}
	return nil
}

// settleTime is how long the proxy may take to call back a command whose client has left.
const settleTime = 5 * time.Second

// settle waits until nothing blocks any more on either side: what still did would take what the
// next script brings.
func (p *pair) settle() error {
	for _, s := range []*redistest.Server{p.direct, p.behind} {
		s.Do("CLIENT", "UNPAUSE") // which a script that has been shrunk may not say
		for end := time.Now().Add(settleTime); !strings.Contains(s.Do("INFO", "clients"), "blocked_clients:0\r\n"); {
			if time.Now().After(end) {
				return fmt.Errorf("a command blocks %v after its client has left: %s", settleTime, s.Do("CLIENT", "LIST"))
			}
		}
	}
	return nil
}

// empty puts a server into the state in which every script begins.
func empty(s *redistest.Server) {
	for _, line := range []string{"REPLICAOF NO ONE", "CONFIG SET maxmemory 0", "CLIENT UNPAUSE", "FLUSHALL SYNC", "SCRIPT FLUSH", "FUNCTION FLUSH", "ACL LOG RESET", "ACL DELUSER temp1 temp2"} {
		s.Do(strings.Fields(line)...)
	}
}
