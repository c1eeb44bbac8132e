package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// tlsFiles writes an authority, a certificate and its key into a directory.
func tlsFiles(t *testing.T) (ca, cert, key string) {
	t.Helper()
	return redistest.ClientFiles(t, redistest.NewAuthority(t))
}

func TestTLSFaults(t *testing.T) {
	ca, cert, key := tlsFiles(t)
	_, _, otherKey := tlsFiles(t)
	none := filepath.Join(t.TempDir(), "none.pem")
	const secure = "--upstream=rediss://h "
	const listen = "--listen=tls://:1 "
	for _, tt := range []struct {
		args string
		want string // of the only fault, %c and so on standing for the files
	}{
		{"--upstream-ca-file=%a", `--upstream-ca-file: "%a" has no effect without rediss:// in --upstream`},
		{"--upstream-server-name=x", `--upstream-server-name: "x" has no effect without rediss:// in --upstream`},
		{"--upstream=unix:///s --upstream-server-name=x", `--upstream-server-name: "x" has no effect without rediss:// in --upstream`},
		{"--upstream-insecure", `--upstream-insecure: has no effect without rediss:// in --upstream`},
		{secure + "--upstream-insecure=yes", `--upstream-insecure: "yes" is neither true nor false (want true, false)`},
		{secure + "--upstream-ca-file=%n", `--upstream-ca-file: "%n" cannot be used: tls files: open %n: no such file or directory`},
		{secure + "--upstream-ca-file=%k", `--upstream-ca-file: "%k" cannot be used: tls files: %k: no certificate in PEM form in it`},
		{secure + "--upstream-ca-file=%a --upstream-insecure", `--upstream-ca-file: "%a" is given together with --upstream-insecure, which trusts everybody; keep one`},
		{secure + "--upstream-cert-file=%c", `--upstream-cert-file: "%c" needs --upstream-key-file`},
		{secure + "--upstream-key-file=%k", `--upstream-key-file: "%k" needs --upstream-cert-file`},
		{secure + "--upstream-cert-file=%c --upstream-key-file=%o", `--upstream-cert-file: "%c" cannot be used: tls files: %c with %o: tls: private key does not match public key`},
		{secure + "--upstream-server-name=h:6379", `--upstream-server-name: "h:6379" is no host name or address`},
		{listen, `--listen: "tls://:1" has a tls:// address, for which --tls-cert-file and --tls-key-file are needed`},
		{listen + "--tls-cert-file=%c", `--tls-cert-file: "%c" needs --tls-key-file`},
		{listen + "--tls-cert-file=%c --tls-key-file=%n", `--tls-cert-file: "%c" cannot be used: tls files: open %n: no such file or directory`},
		{listen + "--tls-cert-file=%c --tls-key-file=%k --tls-client-ca-file=%n", `--tls-client-ca-file: "%n" cannot be used: tls files: open %n: no such file or directory`},
		{"--tls-client-ca-file=%a", `--tls-client-ca-file: "%a" has no effect without a tls:// address in --listen`},
		{"--listen=tls://h", `--listen: "tls://h" is not host:port`},
		{"--listen=tls://unix:///s", `--listen: "tls://unix:///s" has a port that is not 0 to 65535`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			files := strings.NewReplacer("%a", ca, "%c", cert, "%k", key, "%o", otherKey, "%n", none)
			_, err := Load(strings.Fields(files.Replace(tt.args)), nil, testMachine, nil)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want Faults", err)
			}
			if want := files.Replace(tt.want); len(faults) != 1 || faults[0].Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestTLSTarget(t *testing.T) {
	ca, cert, key := tlsFiles(t)
	l, err := Load([]string{
		"--upstream=rediss://u@h:1/2", "--upstream-ca-file", ca, "--upstream-cert-file", cert,
		"--upstream-key-file", key, "--upstream-server-name=redis.example",
	}, nil, testMachine, nil)
	if err != nil || len(l.Warnings) > 0 || l.ClientTLS() != nil {
		t.Fatalf("%v, warnings %q", err, l.Warnings)
	}
	target, err := l.Target()
	if err != nil || target.TLS == nil || target.User != "u" || target.String() != "rediss://xxxxx@h:1/2" {
		t.Fatalf("%v, %v", target, err)
	}
	c, err := target.TLS.Config()
	if err != nil || c.ServerName != "redis.example" || c.RootCAs == nil || len(c.Certificates) != 1 || c.InsecureSkipVerify {
		t.Errorf("%+v, %v", c, err)
	}
	// A file that was good at the start is looked at again.
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if target.TLS.Reload() == nil {
		t.Error("an empty key was accepted")
	}
}

func TestTLSInsecure(t *testing.T) {
	for _, env := range [][]string{{"STREAMPROXY_UPSTREAM_INSECURE=true"}, {"STREAMPROXY_UPSTREAM_INSECURE=false"}} {
		for _, args := range [][]string{{"--upstream=rediss://h"}, {"--upstream-insecure", "--upstream=rediss://h"}} {
			want := len(args) == 2 || strings.HasSuffix(env[0], "true")
			l, err := Load(args, env, testMachine, nil)
			if err != nil || l.UpstreamInsecure != want {
				t.Fatalf("%s %s: %v", args, env, err)
			}
			if warned := len(l.Warnings) == 1 && strings.Contains(l.Warnings[0], "--upstream-insecure"); warned != want {
				t.Errorf("%s %s: warnings %q", args, env, l.Warnings)
			}
			target, _ := l.Target()
			if c, err := target.TLS.Config(); err != nil || c.InsecureSkipVerify != want {
				t.Errorf("%s %s: %v", args, env, err)
			}
		}
	}
}

func TestClientTLS(t *testing.T) {
	ca, cert, key := tlsFiles(t)
	args := []string{"--listen=:1,tls://:2", "--tls-cert-file", cert, "--tls-key-file", key}
	for _, more := range [][]string{nil, {"--tls-client-ca-file", ca}} {
		l, err := Load(append(args, more...), nil, testMachine, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.ClientTLS().Config()
		if err != nil || c.GetCertificate == nil || (c.ClientCAs != nil) != (more != nil) {
			t.Errorf("%s: %+v, %v", more, c, err)
		}
	}
}
