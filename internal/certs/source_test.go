package certs

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// files writes an authority's files for one side.
func files(t *testing.T, a *redistest.Authority, dir string) Files {
	t.Helper()
	cert, key := a.Issue(t, "127.0.0.1").Write(t, dir)
	return Files{CA: a.Write(t, dir), Cert: cert, Key: key}
}

func mustConfig(t *testing.T, s *Source) *tls.Config {
	t.Helper()
	c, err := s.Config()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shown is the certificate that a server with this configuration shows.
func shown(t *testing.T, c *tls.Config) []byte {
	t.Helper()
	pair, err := c.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		t.Fatal(err)
	}
	return pair.Certificate[0]
}

func TestClientConfig(t *testing.T) {
	f := files(t, redistest.NewAuthority(t), t.TempDir())
	c := mustConfig(t, ForClient(Client{Files: f, ServerName: "redis.example"}))
	if c.RootCAs == nil || len(c.Certificates) != 1 || c.ServerName != "redis.example" || c.InsecureSkipVerify || c.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v", c)
	}
	c = mustConfig(t, ForClient(Client{Insecure: true}))
	if c.RootCAs != nil || c.Certificates != nil || c.ServerName != "" || !c.InsecureSkipVerify {
		t.Errorf("%+v", c)
	}
}

func TestServerConfig(t *testing.T) {
	f := files(t, redistest.NewAuthority(t), t.TempDir())
	c := mustConfig(t, ForServer(f))
	if c.ClientCAs == nil || c.ClientAuth != tls.RequireAndVerifyClientCert || c.GetCertificate == nil || c.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v", c)
	}
	f.CA = ""
	c = mustConfig(t, ForServer(f))
	if c.ClientCAs != nil || c.ClientAuth != tls.NoClientCert {
		t.Errorf("%+v", c)
	}
}

func TestConfigFollowsTheFiles(t *testing.T) {
	dir := t.TempDir()
	f := files(t, redistest.NewAuthority(t), dir)
	s := ForServer(f)
	first := mustConfig(t, s)
	if mustConfig(t, s) != first {
		t.Error("unchanged files gave another configuration, which ends the resumption of sessions")
	}
	next := redistest.NewAuthority(t)
	next.Write(t, dir)
	if c := mustConfig(t, s); c == first || c.ClientCAs.Equal(first.ClientCAs) {
		t.Error("a new authority was not noticed")
	}
	next.Issue(t, "127.0.0.1").Write(t, dir)
	c := mustConfig(t, s)
	if string(shown(t, c)) == string(shown(t, first)) {
		t.Error("a new certificate was not noticed")
	}
}

// A certificate is replaced in two steps, its file and its key's; what comes in
// between, or a file that vanishes, must not take a running process down.
func TestBadFilesLeaveTheOldInForce(t *testing.T) {
	dir := t.TempDir()
	a := redistest.NewAuthority(t)
	f := files(t, a, dir)
	s := ForServer(f)
	var told []string
	s.Failed = func(err error) { told = append(told, err.Error()) }
	first := mustConfig(t, s)
	next := a.Issue(t, "127.0.0.1")
	if err := os.WriteFile(f.Cert, next.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if mustConfig(t, s) != first {
			t.Error("half a change took effect")
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], f.Key) {
		t.Errorf("told %q, want one complaint that names the files", told)
	}
	if err := s.Reload(); err == nil || len(told) != 1 {
		t.Errorf("reload: %v; told %q", err, told)
	}
	if err := os.WriteFile(f.Key, next.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil || mustConfig(t, s) == first {
		t.Errorf("the completed change did not take effect: %v", err)
	}
	if err := os.Remove(f.CA); err != nil {
		t.Fatal(err)
	}
	mustConfig(t, s)
	if len(told) != 2 || !strings.Contains(told[1], f.CA) {
		t.Errorf("told %q, want a second complaint that names %s", told, f.CA)
	}
}

func TestUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	good := files(t, redistest.NewAuthority(t), dir)
	other := files(t, redistest.NewAuthority(t), t.TempDir())
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := write("garbage", "geheim")
	locked := write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nZ2VoZWlt\n-----END ENCRYPTED PRIVATE KEY-----\n")
	legacy := write("legacy", "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nZ2VoZWlt\n-----END EC PRIVATE KEY-----\n")
	for _, tt := range []struct {
		name  string
		files Files
		says  string
	}{
		{"no such file", Files{CA: filepath.Join(dir, "missing")}, "missing"},
		{"two missing files", Files{CA: filepath.Join(dir, "gone1"), Cert: good.Cert, Key: filepath.Join(dir, "gone2")}, "gone2"},
		{"no certificate", Files{CA: garbage}, "no certificate in PEM form"},
		{"a file without an end", Files{CA: "/dev/zero"}, "not a regular file"},
		{"too large a file", Files{CA: write("large", strings.Repeat("x", maxFile+1))}, "larger than"},
		{"a directory", Files{CA: dir}, "not a regular file"},
		{"a FIFO", Files{CA: good.Cert, Cert: good.Cert, Key: fifo}, "not a regular file"},
		{"certificate without key", Files{Cert: good.Cert}, "together"},
		{"key without certificate", Files{Key: good.Key}, "together"},
		{"another's key", Files{Cert: good.Cert, Key: other.Key}, "private key does not match"},
		{"garbage for a key", Files{Cert: good.Cert, Key: garbage}, garbage},
		{"encrypted key", Files{Cert: good.Cert, Key: locked}, "encrypted"},
		{"encrypted key, old form", Files{Cert: good.Cert, Key: legacy}, "encrypted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range []*Source{ForServer(tt.files), ForClient(Client{Files: tt.files})} {
				_, err := s.Config()
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("got %v, want %q", err, tt.says)
				}
				if err != nil && (strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "Z2Vo")) {
					t.Errorf("the key's text in %v", err)
				}
			}
		})
	}
}
