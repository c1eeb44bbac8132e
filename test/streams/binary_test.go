//go:build streams

package streams

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// build makes the shipped binary once for all tests that have to kill it.
var build = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../.cache/streams/streamproxy")
	if err != nil {
		return "", err
	}
	return path, exec.Command("go", "build", "-o", path, "streamproxy/cmd/streamproxy").Run()
})

// process is a proxy that runs by itself.
type process struct {
	t    testing.TB
	addr string
	cmd  *exec.Cmd
	once sync.Once
}

// startProcess runs the shipped binary in front of a server, and kills it when the test ends.
func startProcess(t testing.TB, upstream string) *process {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("go build: %v", err)
	}
	p := &process{t: t, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))}
	p.cmd = exec.Command(path, "--listen", p.addr, "--upstream", "redis://"+upstream, "--telemetry-listen", "off",
		"--reclaim-interval", interval.String())
	var log bytes.Buffer
	p.cmd.Stderr = &log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("a proxy's log:\n%s", log.String())
		}
	})
	eventually(t, "the proxy listens", func() bool {
		c, err := redistest.Dial(p.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		r, err := c.Do("PING")
		return err == nil && r == "+PONG\r\n"
	})
	return p
}

// kill ends it at once (SIGKILL).
func (p *process) kill() {
	p.once.Do(func() {
		p.signal(syscall.SIGKILL)
		_ = p.cmd.Wait()
	})
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%v: %v", s, err)
	}
}

// leads reports whether it holds a lease, by the column of PROXY STREAMS.
func (p *process) leads() bool {
	c := connect(p.t, p.addr)
	defer c.Close()
	return bytes.Contains([]byte(c.ask("PROXY", "STREAMS")), []byte("  ours  "))
}
