// Package proc starts the servers that a benchmark measures and reads what they cost.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a server may take to leave after SIGTERM before it is killed.
const stopGrace = 5 * time.Second

// Process is a server under measurement. It ends with Stop, or with the benchmark itself.
type Process struct {
	Name string   // what it is called in errors
	Args []string // the command line, for the report

	cmd   *exec.Cmd
	said  *tail
	ended chan struct{}
	err   error // of Wait, valid once ended is closed
}

// Start runs a command with the environment of the benchmark and no standard input. What it
// prints is kept, the last 8 KiB of it, for the errors.
func Start(name, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, Args: append([]string{path}, args...), said: &tail{}, ended: make(chan struct{})}
	p.cmd = exec.Command(path, args...)
	p.cmd.Stdout, p.cmd.Stderr = p.said, p.said
	// A benchmark that is killed must not leave servers behind.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Pid returns the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stop ends the process and waits until it is gone.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-p.ended:
	case <-time.After(stopGrace):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.ended
}

// Err returns nil while the process lives, and then why it ended and what it last said.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended (%v); it said:\n%s", p.Name, p.err, p.said.String())
	default:
		return nil
	}
}

// WaitReady waits until a read through the address is answered, at most for the given time.
func (p *Process) WaitReady(addr string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		err := probe(addr)
		if err == nil {
			return nil
		}
		if ended := p.Err(); ended != nil {
			return ended
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not answer on %s after %v: %w; it said:\n%s", p.Name, addr, limit, err, p.said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// probe sends a GET rather than a PING: old proxies do not know PING, and a
// proxy that answers PING by itself has not shown that it reaches its server.
func probe(addr string) error {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("*2\r\n$3\r\nGET\r\n$5\r\nready\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if err != nil {
		return err
	}
	if reply[0] != '$' && reply[0] != '_' {
		return fmt.Errorf("not ready: %q", reply[:n])
	}
	return nil
}

// FreeAddr returns a loopback address with a port that was free a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// Find returns the path of a program on PATH or in one of the folders, or an error that wraps
// exec.ErrNotFound.
func Find(name string, folders ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, folder := range folders {
		candidate := folder + "/" + name
		if info, statErr := os.Stat(candidate); statErr == nil && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
	}
	return "", err
}

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 8 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
