//go:build clients

package clients

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// found is what this run has seen so far.
var found struct {
	sync.Mutex
	*Matrix
}

// lab is one server of the matrix with a proxy before it.
type lab struct {
	server string // its name in the matrix
	redis  *redistest.Server
	addr   string // the proxy's
}

// newLab starts both and notes the server's version.
func newLab(t *testing.T, server, proxy string, opts ...redistest.Option) *lab {
	t.Helper()
	redis := redistest.Start(t, opts...)
	found.Lock()
	defer found.Unlock()
	found.Servers[server] = versionOf(redis)
	return &lab{server, redis, startProxy(t, proxy, redis.Addr())}
}

// outage is how long a restart takes: longer than the proxy lets commands wait, so that clients which
// connect meanwhile are told.
const outage = 1500 * time.Millisecond

// restart ends the server and starts it again, empty, some time later.
func (l *lab) restart(t *testing.T) {
	t.Helper()
	l.redis.Kill()
	select {
	case <-time.After(outage):
	case <-t.Context().Done():
	}
	l.redis.Restart()
}

// check runs one check of a client as a subtest and books it.
func (l *lab) check(t *testing.T, client, name string, f func(t *testing.T)) {
	t.Helper()
	ok := t.Run(name, f)
	found.Lock()
	defer found.Unlock()
	found.Add(l.server, client, name, ok)
}

// is notes which version of a client was run.
func is(client, version string) {
	found.Lock()
	defer found.Unlock()
	found.Clients[client] = version
}

// versionOf is a server's own name and version.
func versionOf(s *redistest.Server) string {
	if strings.Contains(s.Do("INFO", "server"), "\nvalkey_version:") {
		return "Valkey " + s.Info("server", "valkey_version")
	}
	return "Redis " + s.Info("server", "redis_version")
}

// finish holds the run against what is declared, if all of it was run, and writes it down if that is
// wanted. What was run takes the place of what the matrix had of the same server and client, so the
// matrix can be written in parts.
func finish(t *testing.T) {
	t.Helper()
	if run := flag.Lookup("test.run").Value.String(); !strings.Contains(run, "/") {
		for _, fault := range found.Faults() {
			t.Error(fault)
		}
	}
	if os.Getenv("WRITE_MATRIX") != "1" || t.Failed() {
		return
	}
	m := readMatrix(t)
	m.Merge(found.Matrix)
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{committed: append(text, '\n'), page: []byte(withTables(t, string(doc), m))} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
