package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// Whatever is asked of a process that knows passwords, it tells none: not in its log at
// any level, its pages, its answers over the wire, its printed configuration, nor in
// what the operating system shows of it.
func TestSecretsAreToldNobody(t *testing.T) {
	t.Parallel()
	const own, front, users = "geheim-oben", "geheim-unten", "geheim-alice"
	server := redistest.Start(t, redistest.WithPassword(own))
	server.Do("ACL", "SETUSER", "alice", "on", ">"+users, "~*", "&*", "+@all")
	dir := t.TempDir()
	file := func(name, secret string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pages := "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t))
	flags := []string{"--upstream-password-file=" + file("up", own), "--requirepass-file=" + file("front", front),
		"--log-level=debug", "--drain-idle=1ms", "--admin-listen=" + pages}
	r := startProxy(t, "redis://"+server.Addr(), flags...)
	var told strings.Builder
	c := r.client()
	for _, args := range [][]string{
		{"AUTH", "wrong"}, {"AUTH", front}, {"PROXY", "CONFIG"}, {"PROXY", "STATS"}, {"PROXY", "CLIENTS"}, {"AUTH", "alice", "wrong"},
		{"AUTH", "alice", users}, {"HELLO", "3", "AUTH", "alice", users}, {"PROXY", "STREAMS"}, {"CLIENT", "LIST"}, {"CLIENT", "INFO"},
	} {
		got, err := c.Do(args...)
		if err != nil {
			t.Fatalf("%v: %v", args[0], err)
		}
		told.WriteString(got)
	}
	for _, path := range []string{"/", "/metrics", "/readyz"} {
		told.WriteString(r.page(path))
	}
	for _, path := range []string{"/stats.json", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
		resp, err := http.Get("http://" + pages + path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(&told, resp.Body)
		resp.Body.Close()
	}
	for _, shown := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/" + shown)
		if err != nil {
			t.Fatal(err)
		}
		told.Write(text)
	}
	checked, err := exec.Command("streamproxy", append([]string{"check", "--dial", "--upstream=" + "redis://" + server.Addr()}, flags[:2]...)...).CombinedOutput()
	if err != nil {
		t.Errorf("check: %v\n%s", err, checked)
	}
	told.Write(checked)
	r.signal(syscall.SIGINT)
	r.exit(exitOK)
	told.WriteString(r.stderr.String())
	for _, secret := range []string{own, front, users} {
		if strings.Contains(told.String(), secret) {
			t.Errorf("%s is told:\n%s", secret, told.String())
		}
	}
	if !strings.Contains(told.String(), "requirepass-file") || !strings.Contains(told.String(), "upstream_up:1") {
		t.Errorf("what was looked through is not what was meant:\n%.2000s", told.String())
	}
}
