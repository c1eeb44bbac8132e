package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout bounds how long a server may take to answer its first PING.
const startTimeout = 15 * time.Second

// startAttempts bounds how many ports Start tries.
const startAttempts = 5

// Option adds to a server's configuration.
type Option func(*settings)

type settings struct {
	binary   string // "" for the one that Binary finds
	args     []string
	password string
	secure   []string // arguments of TLS, without the port
}

// WithArgs appends command line arguments, such as "--maxclients", "2". They
// override what Start sets.
func WithArgs(args ...string) Option {
	return func(s *settings) { s.args = append(s.args, args...) }
}

// WithBinary runs another server than the one that Binary finds.
func WithBinary(path string) Option {
	return func(s *settings) { s.binary = path }
}

// WithPassword sets requirepass; the server's own helpers then use it.
func WithPassword(password string) Option {
	return func(s *settings) {
		s.password = password
		s.args = append(s.args, "--requirepass", password)
	}
}

// Server is a running redis-server. Its methods fail the test on errors.
type Server struct {
	t        testing.TB
	dir      string
	port     int
	tlsPort  int // 0: no TLS
	settings settings

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	log  *bytes.Buffer
}

// Start runs a server on a free loopback port and on a unix socket in a
// directory of its own, without persistence, waits until it answers and kills
// it when the test ends.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, port: FreePort(t)}
	for _, o := range opts {
		o(&s.settings)
	}
	// A socket's path is bounded at some 100 bytes, and t.TempDir spells out the
	// test's name.
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(func() {
		s.Kill()
		_ = os.RemoveAll(dir)
	})
	s.pickTLSPort()
	// A port that was free may be taken by another test before the server has it.
	for range startAttempts {
		if s.start() {
			return s
		}
		s.port = FreePort(t)
		s.pickTLSPort()
	}
	t.Fatalf("no free port for redis:\n%s", s.log)
	return nil
}

// Binary finds the server to run, or fails or skips the test.
func Binary(t testing.TB) string {
	t.Helper()
	name := os.Getenv("REDIS_SERVER")
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("ALLOW_SKIP") == "1" {
		t.Skipf("no Redis server: %v", err)
	}
	t.Fatalf("no Redis server: %v; install redis-server, name one in REDIS_SERVER, or set ALLOW_SKIP=1", err)
	return ""
}

// FreePort returns a loopback TCP port that nobody listened on a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// start runs the server and waits until it answers; false means that its port
// was taken.
func (s *Server) start() bool {
	s.t.Helper()
	args := slices.Concat([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--unixsocket", s.Socket(),
		"--dir", s.dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, s.tlsArgs(), s.settings.args)
	binary := s.settings.binary
	if binary == "" {
		binary = Binary(s.t) // may end the test, whose cleanup takes the lock
	}
	s.mu.Lock()
	s.log = new(bytes.Buffer)
	s.cmd = exec.Command(binary, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	err := s.cmd.Start()
	s.done = make(chan struct{})
	cmd, done := s.cmd, s.done
	s.mu.Unlock()
	if err != nil {
		s.t.Fatalf("start redis: %v", err)
	}
	go func() { // ends with the process, which Kill or cleanup ends
		_ = cmd.Wait()
		close(done)
	}()
	return s.awaitReady(done)
}

// awaitReady polls, because a server says in no other way that it is ready; a
// LOADING server is not. The process id tells ours from another at that port.
func (s *Server) awaitReady(done chan struct{}) bool {
	s.t.Helper()
	ours := fmt.Sprintf("\nprocess_id:%d\r\n", s.Pid())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(startTimeout)
	for {
		if reply, err := s.try("PING"); err == nil && reply == "+PONG\r\n" {
			if info, err := s.try("INFO", "server"); err == nil && strings.Contains(info, ours) {
				return true
			}
		}
		select {
		case <-tick.C:
		case <-done:
			if strings.Contains(s.log.String(), "Address already in use") {
				return false
			}
			s.t.Fatalf("redis ended while starting:\n%s", s.log)
		case <-timeout:
			s.Kill()
			s.t.Fatalf("redis does not answer after %v:\n%s", startTimeout, s.log)
		}
	}
}

// Addr is the server's host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Port is the server's TCP port.
func (s *Server) Port() int { return s.port }

// Socket is the path of the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Dir is the server's working directory, removed at the end of the test.
func (s *Server) Dir() string { return s.dir }

// URL names the server as redis://host:port, with its password if it has one.
func (s *Server) URL() string {
	if s.settings.password == "" {
		return "redis://" + s.Addr()
	}
	return fmt.Sprintf("redis://:%s@%s", s.settings.password, s.Addr())
}

// Client connects a raw client over TCP, authenticated, and closes it when the
// test ends.
func (s *Server) Client() *Client {
	s.t.Helper()
	c, err := s.dial()
	if err != nil {
		s.t.Fatalf("connect to redis: %v", err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Server) dial() (*Client, error) {
	c, err := Dial(s.Addr())
	if err != nil || s.settings.password == "" {
		return c, err
	}
	reply, err := c.Do("AUTH", s.settings.password)
	if err == nil && reply != "+OK\r\n" {
		err = fmt.Errorf("AUTH: %s", reply)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Do runs one command over a connection of its own and returns the raw reply.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	reply, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("redis: %s: %v", strings.Join(args, " "), err)
	}
	return reply
}

func (s *Server) try(args ...string) (string, error) {
	c, err := s.dial()
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	return c.Do(args...)
}

// Info returns one value of INFO's section, and fails the test if it is not there.
func (s *Server) Info(section, key string) string {
	s.t.Helper()
	for line := range strings.Lines(s.Do("INFO", section)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimRight(value, "\r\n")
		}
	}
	s.t.Fatalf("redis: INFO %s has no %s", section, key)
	return ""
}

// Kill ends the server at once, as a crash would, and waits until it is gone.
// It may be called again.
func (s *Server) Kill() {
	s.mu.Lock()
	cmd, done := s.cmd, s.done
	s.mu.Unlock()
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-done
}

// Restart kills the server and starts another run of it, with the same
// configuration at the same addresses; only what was persisted is still there.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if !s.start() {
		s.t.Fatalf("redis: another process took port %d", s.port)
	}
}

// Stop freezes the server (SIGSTOP): connections stay, nothing is answered.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets a stopped server go on (SIGCONT).
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redis: %v: %v", sig, err)
	}
}

// Pid is the server's process id.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// CPU is the processor time the server has used, user and system, to 10 ms.
func (s *Server) CPU() time.Duration {
	s.t.Helper()
	d, err := ProcessCPU(s.Pid())
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}
