package proxytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// Patience bounds every wait for what must happen, however busy the machine.
const Patience = 30 * time.Second

// build makes the binary, in a folder that is named after the package under test: packages are
// tested at the same time, and what runs cannot be overwritten.
var build = sync.OnceValues(func() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := here
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("no go.mod above %s", here)
		}
		root = filepath.Dir(root)
	}
	path := filepath.Join(root, ".cache", "proxytest", filepath.Base(here), "streamproxy")
	out, err := exec.Command("go", "build", "-o", path, "streamproxy/cmd/streamproxy").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// Process is a proxy that runs by itself. Its methods fail the test on errors.
type Process struct {
	// Addr is where clients connect, Pages the URL of telemetry.
	Addr, Pages string

	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// Start runs the binary before the server at a URL, with whatever other arguments, waits until it
// listens, and kills it when the test ends. It does not wait for the server.
func Start(t testing.TB, upstream string, args ...string) *Process {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, done: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{"--listen=127.0.0.1:0", "--telemetry-listen=127.0.0.1:0",
		"--log-format=json", "--upstream=" + upstream}, args...)...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	go func() { // ends with the process, which the cleanup ends
		p.follow(stderr, started)
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", p.Log())
		}
	})
	select {
	case <-started:
	case <-p.done:
		t.Fatalf("the proxy ended at once:\n%s", p.Log())
	case <-time.After(Patience):
		t.Fatalf("the proxy does not start:\n%s", p.Log())
	}
	return p
}

// follow collects the log. The line that tells of the start has the addresses.
func (p *Process) follow(stderr io.Reader, started chan<- struct{}) {
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.log.Write(line)
		p.mu.Unlock()
		var start struct {
			Msg               string
			Listen, Telemetry []string
		}
		if json.Unmarshal(line, &start) == nil && start.Msg == "started" {
			p.Addr = start.Listen[0]
			if len(start.Telemetry) > 0 {
				p.Pages = "http://" + start.Telemetry[0]
			}
			close(started)
		}
		if err != nil {
			return
		}
	}
}

// Log is what it has logged so far, one JSON object a line.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Page asks telemetry for a page, and returns code 0 where nobody answers.
func (p *Process) Page(path string) (code int, body string) {
	client := http.Client{Timeout: Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(p.Pages + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body) // what is missing shows
	return resp.StatusCode, string(text)
}

// Ready waits until the proxy has a server behind it.
func (p *Process) Ready() *Process {
	p.t.Helper()
	Eventually(p.t, "the proxy is ready", func() bool {
		code, _ := p.Page("/readyz")
		return code == http.StatusOK
	})
	return p
}

// Metric is the present value of a metric, given with its labels as they are written.
func (p *Process) Metric(name string) float64 {
	p.t.Helper()
	_, page := p.Page("/metrics")
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return v
		}
	}
	p.t.Fatalf("no metric %s", name)
	return 0
}

// Client connects a raw client and closes it when the test ends.
func (p *Process) Client() *redistest.Client {
	p.t.Helper()
	c, err := redistest.Dial(p.Addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%v: %v", s, err)
	}
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Exit waits for the end of the process and returns its code.
func (p *Process) Exit() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * Patience):
		p.t.Fatalf("still there after %v:\n%s", 2*Patience, p.Log())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Eventually polls until ok, and fails the test when that takes too long.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}
