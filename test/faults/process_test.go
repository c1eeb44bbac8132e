//go:build faults

package faults

import (
	"bytes"
	"fmt"
	"io"
	"net"
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

// process is a running proxy: the shipped binary.
type process struct {
	line      []string // its command line
	cmd       *exec.Cmd
	addr      string // TCP
	socket    string // unix
	telemetry string
	log       syncBuffer
	ended     chan struct{}
	err       error // of Wait, valid once ended is closed
}

// syncBuffer may be written by a process while it is read.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var builds struct {
	sync.Mutex
	paths map[string]string
}

// binary builds the program with flags of the go command, once for each set of them in a test run.
func binary(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	key := strings.Join(flags, " ")
	if path := builds.paths[key]; path != "" {
		return path
	}
	path := filepath.Join(folder, "streamproxy"+strconv.Itoa(len(builds.paths)))
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), "streamproxy/cmd/streamproxy")...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", key, err, text)
	}
	if builds.paths == nil {
		builds.paths = make(map[string]string)
	}
	builds.paths[key] = path
	return path
}

// startProcess runs the program until the test ends, in a network of its own if there is one.
func startProcess(t testing.TB, path, upstream string, space *network, args []string) *process {
	t.Helper()
	folder, err := os.MkdirTemp("", "faults") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	host := "127.0.0.1"
	var wrap []string
	if space != nil {
		host, wrap = space.proxy, []string{"ip", "netns", "exec", space.space}
	}
	p := &process{
		addr:      net.JoinHostPort(host, strconv.Itoa(redistest.FreePort(t))),
		telemetry: net.JoinHostPort(host, strconv.Itoa(redistest.FreePort(t))),
		socket:    filepath.Join(folder, "s"),
	}
	p.line = append(append(wrap, path, "--listen", p.addr, "--listen", "unix://"+p.socket,
		"--upstream", upstream, "--telemetry-listen", p.telemetry), args...)
	t.Cleanup(func() {
		p.kill()
		_ = os.RemoveAll(folder)
	})
	p.launch(t)
	p.awaitReady(t)
	return p
}

// launch starts the program, or starts it again after its end.
func (p *process) launch(t testing.TB) {
	t.Helper()
	cmd, ended := exec.Command(p.line[0], p.line[1:]...), make(chan struct{})
	cmd.Env = append(os.Environ(), "GORACE=halt_on_error=0 exitcode=66")
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	// A test that is killed must not leave a proxy behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd, p.ended = cmd, ended
	go func() { // ends with the process
		p.err = cmd.Wait()
		close(ended)
	}()
}

func (p *process) awaitReady(t testing.TB) {
	t.Helper()
	poll(t, "the proxy answers", func() bool {
		if !p.alive() {
			t.Fatalf("the proxy ended: %v\n%s", p.err, p.log.String())
		}
		c, err := redistest.Dial(p.socket)
		if err != nil {
			return false
		}
		defer c.Close()
		reply, err := c.Do("PING")
		return err == nil && reply == "+PONG\r\n"
	})
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.ended
}

// terminate asks the process to drain, and returns its exit code.
func (p *process) terminate() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		p.kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

// metrics reads the proxy's own figures, by name with labels.
func (p *process) metrics() (map[string]float64, error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + p.telemetry + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	values := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = v
		}
	}
	return values, nil
}

// rss is the process's resident memory in bytes.
func (p *process) rss() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm: %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// descriptors is how many the process has open.
func (p *process) descriptors() (int, error) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(list), err
}

// patience bounds what must come, however busy the machine is.
const patience = 60 * time.Second

// poll waits for a condition.
func poll(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
