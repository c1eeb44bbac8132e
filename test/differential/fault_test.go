package differential

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

const (
	// faultScripts is how many random scripts a planted fault may survive.
	faultScripts = 150
	// faultSeed begins them: the same for every build, so that the fault is all they differ in.
	faultSeed = 77
	// faultTimeout is shorter than in other runs: a dropped reply costs all of it.
	faultTimeout = 4 * time.Second
)

// TestPlantedFaults proves that these tests would notice: it builds the proxy with a fault in its
// data path (batcher/fault_*.go) and wants a difference; and without one it wants none.
func TestPlantedFaults(t *testing.T) {
	folder := t.TempDir()
	p := newServers(t)
	g := newGenerator(readGrammar(t, p.direct))
	tests := []struct {
		tag   string
		found bool
	}{{"no_fault", false}, {"fault_swap", true}, {"fault_resend", true}, {"fault_drop", true}}
	if testing.Short() {
		tests = tests[1:2]
	}
	for _, tt := range tests {
		t.Run(tt.tag, func(t *testing.T) {
			p.front = startBinary(t, buildBinary(t, folder, tt.tag), p.behind)
			scripts := faultScripts
			if !tt.found {
				scripts /= 15
			}
			for n := range scripts {
				err := p.run(g.script(faultSeed+uint64(n), perScript), faultTimeout)
				switch {
				case err != nil && tt.found:
					t.Logf("noticed in script %d: %v", n+1, err)
					return
				case err != nil:
					t.Fatalf("script %d: %v", n+1, err)
				}
			}
			if tt.found {
				t.Errorf("%d scripts did not notice the fault", scripts)
			}
		})
	}
}

// buildBinary builds the shipped program with a tag.
func buildBinary(t *testing.T, folder, tag string) string {
	t.Helper()
	path := filepath.Join(folder, tag)
	cmd := exec.Command("go", "build", "-tags", tag, "-o", path, "streamproxy/cmd/streamproxy")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with %s: %v\n%s", tag, err, text)
	}
	return path
}

// startBinary runs the program before a server and returns the socket that it listens on.
func startBinary(t *testing.T, binary string, server *redistest.Server) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "fault") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	var log bytes.Buffer
	cmd := exec.Command(binary, "--listen", "unix://"+socket, "--upstream", server.URL(), "--telemetry-listen", "off")
	cmd.Env = append(os.Environ(), "STREAMPROXY_RECLAIM=off") // see newPair
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = os.RemoveAll(folder)
		if t.Failed() {
			t.Logf("the proxy said:\n%s", &log)
		}
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		c, err := redistest.Dial(socket)
		if err != nil {
			continue
		}
		reply, err := c.Do("PING")
		_ = c.Close()
		if reply == "+PONG\r\n" && err == nil {
			return socket
		}
	}
	t.Fatal("the proxy does not answer")
	return ""
}
