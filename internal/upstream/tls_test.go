package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/certs"
	"streamproxy/internal/redistest"
)

// secureDialer dials s over TLS with the files of a client of a.
func secureDialer(t *testing.T, s *redistest.Server, c certs.Client) *Dialer {
	t.Helper()
	d := dialerFor(t, "rediss://"+s.TLSAddr())
	d.Target.TLS = certs.ForClient(c)
	return d
}

func clientFiles(t *testing.T, a *redistest.Authority) certs.Files {
	t.Helper()
	ca, cert, key := redistest.ClientFiles(t, a)
	return certs.Files{CA: ca, Cert: cert, Key: key}
}

func TestDialTLS(t *testing.T) {
	a := redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.WithTLS(t, a), redistest.WithPassword("p"))
	d := secureDialer(t, s, certs.Client{Files: clientFiles(t, a)})
	d.Target.Password = func() (string, error) { return "p", nil }
	for _, k := range []Key{{Proto: 2}, {Proto: 3, DB: 3}} {
		c, g := mustDial(t, d, k)
		expect(t, c, "$2\r\nhi\r\n", "ECHO", "hi")
		if g.ID == 0 {
			t.Errorf("greeting %+v", g)
		}
		if v := c.Conn.(*tls.Conn).ConnectionState().Version; v < tls.VersionTLS12 {
			t.Errorf("version %x", v)
		}
	}
	control, err := NewControl(d)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if err := control.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if f, err := control.Facts(t.Context()); err != nil || f.RunID == "" || len(f.Commands) < 100 {
		t.Errorf("%d commands, %v", len(f.Commands), err)
	}
}

// A second connection resumes the first one's session.
func TestDialTLSResumes(t *testing.T) {
	a := redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.WithTLS(t, a))
	d := secureDialer(t, s, certs.Client{Files: clientFiles(t, a)})
	for _, resumed := range []bool{false, true} {
		c, _ := mustDial(t, d, Key{Proto: 2})
		expect(t, c, "$2\r\nhi\r\n", "ECHO", "hi")
		if got := c.Conn.(*tls.Conn).ConnectionState().DidResume; got != resumed {
			t.Errorf("resumed: %v, want %v", got, resumed)
		}
	}
}

func TestDialTLSVerifies(t *testing.T) {
	a, stranger := redistest.NewAuthority(t), redistest.NewAuthority(t)
	good := redistest.Start(t, redistest.WithTLS(t, a))
	elsewhere := redistest.Start(t, redistest.WithTLSIdentity(t, a, a.Issue(t, "redis.example")))
	expired := redistest.Start(t, redistest.WithTLSIdentity(t, a, a.IssueExpired(t, "127.0.0.1")))
	old := redistest.Start(t, redistest.WithTLS(t, a), redistest.WithArgs("--tls-protocols", "TLSv1.1 TLSv1"))
	mine, strange := clientFiles(t, a), clientFiles(t, stranger)
	with := func(ca, own certs.Files) certs.Files { return certs.Files{CA: ca.CA, Cert: own.Cert, Key: own.Key} }
	lastDir := t.TempDir()
	cert, key := a.IssueExpired(t, "client.example").Write(t, lastDir)
	for _, tt := range []struct {
		name   string
		server *redistest.Server
		client certs.Client
		says   string // of the error; empty: none
	}{
		{"all well", good, certs.Client{Files: mine}, ""},
		{"another name, expected", elsewhere, certs.Client{Files: mine, ServerName: "redis.example"}, ""},
		{"another name", elsewhere, certs.Client{Files: mine}, "127.0.0.1"},
		{"wrong expectation", good, certs.Client{Files: mine, ServerName: "redis.example"}, "redis.example"},
		{"unknown authority", good, certs.Client{Files: with(strange, mine)}, "unknown authority"},
		{"the system's authorities", good, certs.Client{Files: certs.Files{Cert: mine.Cert, Key: mine.Key}}, "unknown authority"},
		{"expired", expired, certs.Client{Files: mine}, "expired"},
		{"no certificate of our own", good, certs.Client{Files: certs.Files{CA: mine.CA}}, "certificate required"},
		{"another's certificate", good, certs.Client{Files: with(mine, strange)}, "unknown certificate authority"},
		{"our own expired", good, certs.Client{Files: certs.Files{CA: mine.CA, Cert: cert, Key: key}}, "expired"},
		{"an old version", old, certs.Client{Files: mine}, "protocol version"},
		{"whatever, on request", expired, certs.Client{Files: with(strange, mine), Insecure: true, ServerName: "x.example"}, ""},
		{"no file", good, certs.Client{Files: certs.Files{CA: "/nonexistent/ca.pem"}}, "/nonexistent/ca.pem"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, _, err := secureDialer(t, tt.server, tt.client).Dial(t.Context(), Key{Proto: 2}, "lane")
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			// It may be well a moment later: certificates are renewed.
			if err != nil && !Unavailable(err) {
				t.Errorf("%v is not taken for an unavailable server", err)
			}
		})
	}
	_, _, err := secureDialer(t, good, certs.Client{Files: with(strange, mine)}).Dial(t.Context(), Key{Proto: 2}, "lane")
	var unknown x509.UnknownAuthorityError
	if !errors.Is(err, ErrTLS) || !errors.As(err, &unknown) {
		t.Errorf("%v does not say what it is", err)
	}
}

// A server that accepts and says nothing, or is no TLS server, costs a dial no more
// than its time.
func TestDialTLSAgainstSomethingElse(t *testing.T) {
	a := redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.WithTLS(t, a))
	plain := secureDialer(t, s, certs.Client{Files: clientFiles(t, a)})
	plain.Target.Addr = s.Addr()
	plain.Timeout = 200 * time.Millisecond
	s.Stop() // Redis would wait for more of what it takes for a command
	defer s.Cont()
	start := time.Now()
	if _, _, err := plain.Dial(t.Context(), Key{Proto: 2}, "lane"); !Unavailable(err) || !errors.Is(err, ErrTLS) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("a dial took %v", d)
	}
}

// The files are looked at anew for each connection, the control plane's too.
func TestDialTLSRenewed(t *testing.T) {
	first, second := redistest.NewAuthority(t), redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.WithTLS(t, first))
	dir := t.TempDir()
	cert, key := first.Issue(t, "client.example").Write(t, dir)
	d := secureDialer(t, s, certs.Client{Files: certs.Files{CA: first.Write(t, dir), Cert: cert, Key: key}})
	control, err := NewControl(d)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if err := control.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustDial(t, d, Key{Proto: 2})

	renew := func(a *redistest.Authority) {
		serverDir := t.TempDir()
		c, k := a.Issue(t, "127.0.0.1").Write(t, serverDir)
		s.Do("CONFIG", "SET", "tls-ca-cert-file", a.Write(t, serverDir), "tls-cert-file", c, "tls-key-file", k)
	}
	renew(second)
	if _, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane"); !errors.Is(err, ErrTLS) {
		t.Errorf("the new server was trusted: %v", err)
	}
	second.Write(t, dir)
	second.Issue(t, "client.example").Write(t, dir)
	mustDial(t, d, Key{Proto: 2})
	s.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	awaitPing(t, control)

	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	mustDial(t, d, Key{Proto: 2}) // what was read before stays in force
}

// The end of our sending direction ends a blocked command at the server, which is
// the last resort of calling one back.
func TestTLSHalfClose(t *testing.T) {
	a := redistest.NewAuthority(t)
	s := redistest.Start(t, redistest.WithTLS(t, a))
	c, _ := mustDial(t, secureDialer(t, s, certs.Client{Files: clientFiles(t, a)}), Key{Proto: 2})
	if err := c.SendCommand("BLPOP", "list", "0"); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); s.Info("clients", "blocked_clients") != "1"; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it does not block")
		}
	}
	if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.ReadReply(); got != "" || !errors.Is(err, io.EOF) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHostOf(t *testing.T) {
	for addr, want := range map[string]string{
		"redis.example:6379": "redis.example", "[::1]:1": "::1", "[fe80::1%eth0]:1": "fe80::1", "127.0.0.1:1": "127.0.0.1",
	} {
		if got := hostOf(addr); got != want {
			t.Errorf("hostOf(%s) = %s, want %s", addr, got, want)
		}
	}
}
