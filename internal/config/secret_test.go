package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A password never shows, however the URL or the rest is broken.
func TestSecretsStayHidden(t *testing.T) {
	for _, raw := range []string{
		"redis://u:geheim@h", "redis://:geheim@h:1/2", "redis://u:x/geheim@h", "redis://u:1/geheim@h", "redis://u:geheim@h:port",
		"rediss://u:geheim@h", "unix://u:geheim@/s", "u:geheim@h", "redis://h:6379?password=geheim", "redis://h?password=geheim@x", "redis://geheim@h", "redis://u:geheim",
		"unix:///s?password=geheim", "unix:///s?db=geheim", "unix:///s?db=1&geheim", "unix:///s?db=1&db=geheim", "unix:///s?%zzgeheim", "unix:///s?db=1&password=geheim", "redis://h#geheim", "redis://u:%zzgeheim@h", "redis://u:a@geheim@h", "://x:geheim@h",
	} {
		for _, args := range [][]string{{"--upstream", raw}, {"--upstreem", raw}, {"--upstreem=" + raw}, {raw}} {
			assertHidden(t, args)
		}
	}
}

// What tells no secret stays readable.
func TestTheRestOfAURLIsShown(t *testing.T) {
	named := Config{UpstreamPasswordFile: "x"}
	for _, tt := range []struct {
		c         *Config
		raw, want string
	}{
		{&Config{}, "redis://h:6379/2", "redis://h:6379/2"},
		{&Config{}, "redis://u:p@[::1]:6379/2", "redis://u:xxxxx@[::1]:6379/2"},
		{&Config{}, "redis://[::1]", "redis://[::1]"},
		{&Config{}, "unix://u:p@/run/s?db=3", "unix://u:xxxxx@/run/s?db=3"},
		{&Config{}, "redis://p@h", "redis://xxxxx@h"},
		{&named, "redis://u@h", "redis://u@h"},
		{&Config{}, "geheim", "xxxxx"},
	} {
		if got := tt.c.hideUpstream(tt.raw); got != tt.want {
			t.Errorf("%s: shown as %s, want %s", tt.raw, got, tt.want)
		}
	}
	assertHidden(t, []string{"--upstream=geheim"})
}

func assertHidden(t *testing.T, args []string) {
	t.Helper()
	l, err := Load(args, nil, testMachine, nil)
	var out strings.Builder
	if err != nil {
		out.WriteString(err.Error())
	} else {
		l.WriteEffective(&out)
		for _, s := range l.Changed {
			out.WriteString(s.Value)
		}
	}
	if strings.Contains(out.String(), "geheim") {
		t.Errorf("%s: secret in %s", args, out.String())
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\r\n")
	l, err := Load([]string{"--upstream-user=u", "--upstream-password-file", path, "--requirepass-file", path}, nil, testMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	target, err := l.Target()
	if err != nil || target.User != "u" {
		t.Fatalf("user %q, %v", target.User, err)
	}
	for _, want := range []string{"first", "second"} {
		for _, read := range []func() (string, error){target.Password, l.RequirePass()} {
			if got, err := read(); err != nil || got != want {
				t.Errorf("got %q, %v; want %q", got, err, want)
			}
		}
		write("second")
	}
	write("\n")
	if _, err := target.Password(); err == nil {
		t.Error("an empty secret was accepted")
	}
	if _, err := SecretFile("/dev/zero")(); err == nil {
		t.Error("a file without an end was accepted")
	}
	link := filepath.Join(dir, "link") // as Kubernetes shows its secrets
	write("third")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if got, err := SecretFile(link)(); err != nil || got != "third" {
		t.Errorf("through a link: %q, %v", got, err)
	}
	write("x")
	_, err = Load([]string{"--upstream=redis://u:p@h", "--upstream-password-file", path}, nil, testMachine, nil)
	if err == nil || !strings.Contains(err.Error(), "keep one") {
		t.Errorf("two passwords: %v", err)
	}
}
