package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// secured is a proxy with TLS on both sides and the files it was given.
type secured struct {
	*running
	server              *redistest.Server
	authority           *redistest.Authority
	upstreamDir, ownDir string
	addr                string
}

func startSecured(t *testing.T) *secured {
	t.Helper()
	a := redistest.NewAuthority(t)
	s := &secured{authority: a, upstreamDir: t.TempDir(), ownDir: t.TempDir()}
	s.server = redistest.Start(t, redistest.WithTLS(t, a))
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
	upCA := a.Write(t, s.upstreamDir)
	upCert, upKey := a.Issue(t, "client.example").Write(t, s.upstreamDir)
	ca := a.Write(t, s.ownDir)
	cert, key := a.Issue(t, "127.0.0.1", "localhost").Write(t, s.ownDir)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.server.Do("CONFIG", "SET", "requirepass", "first"); out != "+OK\r\n" {
		t.Fatal(out)
	}
	s.running = startProxy(t, "rediss://"+s.server.TLSAddr(),
		"--listen=tls://"+s.addr, "--log-format=json", "--upstream-password-file="+password,
		"--upstream-ca-file="+upCA, "--upstream-cert-file="+upCert, "--upstream-key-file="+upKey,
		"--tls-cert-file="+cert, "--tls-key-file="+key, "--tls-client-ca-file="+ca, "--drain-idle=1ms")
	return s
}

// password is where startSecured has put the server's.
func (s *secured) setPassword(text string) {
	s.t.Helper()
	for _, arg := range s.cmd.Args {
		if path, ok := strings.CutPrefix(arg, "--upstream-password-file="); ok {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// dial connects with a certificate of a, and trusts a alone.
func (s *secured) dial(a *redistest.Authority) (*redistest.Client, error) {
	id := a.Issue(s.t, "client.example")
	pair, err := tls.X509KeyPair(id.Cert, id.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM)
	nc, err := tls.Dial("tcp", s.addr, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { _ = nc.Close() })
	return redistest.NewClient(nc), nil
}

func (s *secured) mustDial(a *redistest.Authority) *redistest.Client {
	s.t.Helper()
	c, err := s.dial(a)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// hangup sends SIGHUP and waits until so many lines more than before have been logged.
func (r *running) hangup(lines int) {
	r.t.Helper()
	const metric = "streamproxy_log_messages_total{level=\"info\"} "
	_, text, _ := strings.Cut(r.page("/metrics"), metric)
	text, _, _ = strings.Cut(text, "\n")
	before, err := strconv.Atoi(text)
	if err != nil {
		r.t.Fatal(err)
	}
	r.signal(syscall.SIGHUP)
	r.await("/metrics", fmt.Sprintf("%s%d\n", metric, before+lines))
}

func TestRedisCLIOverTLS(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	cert, key := s.authority.Issue(t, "client.example").Write(t, t.TempDir())
	host, port, _ := net.SplitHostPort(s.addr)
	cli := func(args ...string) (string, error) {
		args = append([]string{"-h", host, "-p", port, "--tls", "--cacert", filepath.Join(s.ownDir, redistest.CAFile)}, args...)
		out, err := exec.Command("redis-cli", args...).CombinedOutput()
		return string(out), err
	}
	own := []string{"--cert", cert, "--key", key}
	if out, err := cli(append(own, "SET", "greeting", "hello")...); err != nil || out != "OK\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := cli(append(own, "-3", "HGETALL", "none")...); err != nil || out != "\n" {
		t.Errorf("%q, %v", out, err)
	}
	if out, _ := cli("GET", "greeting"); strings.Contains(out, "hello") {
		t.Errorf("served without a certificate: %q", out)
	}
	if out, err := exec.Command("redis-cli", "-h", host, "-p", port, "GET", "greeting").CombinedOutput(); strings.Contains(string(out), "hello") {
		t.Errorf("served without TLS: %q, %v", out, err)
	}
	s.signal(syscall.SIGTERM)
	s.exit(exitOK)
	if text := s.stderr.String(); strings.Contains(text, "first") || strings.Contains(text, "PRIVATE") {
		t.Errorf("a secret in\n%s", text)
	}
}

// Certificates and password change under a running proxy: its next connections have
// the new ones, and its clients notice nothing.
func TestCertificatesAndPasswordAreRenewed(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	old := s.mustDial(s.authority)
	expect := func(c *redistest.Client, want string, args ...string) {
		t.Helper()
		if got, err := c.Do(args...); err != nil || got != want {
			t.Fatalf("%s: %q, %v; want %q\n%s", args, got, err, want, s.stderr.String())
		}
	}
	expect(old, ":1\r\n", "INCR", "n")

	next := redistest.NewAuthority(t)
	serverDir := t.TempDir()
	cert, key := next.Issue(t, "127.0.0.1").Write(t, serverDir)
	next.Write(t, s.upstreamDir)
	next.Issue(t, "client.example").Write(t, s.upstreamDir)
	next.Write(t, s.ownDir)
	next.Issue(t, "127.0.0.1").Write(t, s.ownDir)
	s.setPassword("second")
	// Over the proxy's own connection, which stays authenticated; its password is
	// the last thing to change.
	expect(old, "+OK\r\n", "CONFIG", "SET", "tls-ca-cert-file", next.Write(t, serverDir), "tls-cert-file", cert, "tls-key-file", key, "requirepass", "second")
	s.hangup(3)
	if reply, err := old.Do("CLIENT", "KILL", "TYPE", "normal"); err != nil || reply[0] != ':' {
		t.Fatalf("%q, %v", reply, err)
	}
	renewed := s.mustDial(next)
	expect(renewed, ":2\r\n", "INCR", "n")
	expect(old, ":3\r\n", "INCR", "n")
	if _, err := s.dial(s.authority); err == nil {
		t.Error("the old certificate is still shown")
	}
	s.signal(syscall.SIGTERM)
	s.exit(exitOK)
	text := s.stderr.String()
	for _, side := range []string{"upstream", "clients"} {
		if !strings.Contains(text, `"msg":"certificates read again","side":"`+side+`"`) {
			t.Errorf("%s: not said to be read again\n%s", side, text)
		}
	}
	if strings.Contains(text, `"second"`) || strings.Contains(text, "PRIVATE") {
		t.Errorf("a secret in\n%s", text)
	}
}

func TestBadCertificateAfterHangupIsReported(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	if err := os.WriteFile(filepath.Join(s.ownDir, redistest.KeyFile), []byte("geheim"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	s.await("/metrics", "streamproxy_log_messages_total{level=\"error\"} 1\n")
	c := s.mustDial(s.authority)
	if got, err := c.Do("PING"); err != nil || got != "+PONG\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	s.signal(syscall.SIGTERM)
	s.exit(exitOK)
	text := s.stderr.String()
	if n := strings.Count(text, "certificates cannot be used"); n != 1 || strings.Contains(text, "geheim") {
		t.Errorf("%d complaints in\n%s", n, text)
	}
}

// A hangup is no reason to end for a proxy without TLS.
func TestHangupWithoutTLS(t *testing.T) {
	t.Parallel()
	r := startProxy(t, redistest.Start(t).URL(), "--drain-idle=1ms")
	r.hangup(1)
	if got, err := r.client().Do("PING"); err != nil || got != "+PONG\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
}
