//go:build cases

package cases

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"streamproxy/internal/redistest"
)

// binary builds the command once for all tests: as it is shipped, without the race detector, for
// what depends on a process of its own, such as its memory.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "streamproxy"); err != nil {
		return "", err
	}
	path := filepath.Join(binaryDir, "streamproxy")
	if text, err := exec.Command("go", "build", "-o", path, "streamproxy/cmd/streamproxy").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
})

// binaryDir is where it lies, if a test has asked for it; TestMain removes it.
var binaryDir string

// process is a proxy in a process of its own.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string // of clients
	log  logBuffer

	ended chan struct{} // closed when the process is gone
}

// startProcess runs the command before the server at addr, and kills it when the test ends.
func startProcess(t testing.TB, addr string, flags ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, addr: "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t)), ended: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{"--listen=" + p.addr, "--upstream=redis://" + addr, "--telemetry-listen=off"}, flags...)...)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process, which the cleanup kills
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", p.log.String())
		}
	})
	eventually(t, "the process serves", func() bool {
		c, err := redistest.Dial(p.addr)
		if err != nil {
			return false
		}
		defer c.Close()
		got, err := c.Do("PING")
		return err == nil && got == "+PONG\r\n"
	})
	return p
}

func (p *process) client() *client {
	p.t.Helper()
	return connect(p.t, p.addr)
}

// alive fails the test if the process has ended.
func (p *process) alive() {
	p.t.Helper()
	select {
	case <-p.ended:
		p.t.Fatalf("the proxy has ended: %v", p.cmd.ProcessState)
	default:
	}
}

// resident is the process's resident memory in bytes.
func (p *process) resident() int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
