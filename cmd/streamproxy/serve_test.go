package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// patience bounds every wait for a process.
const patience = 20 * time.Second

// running is a proxy in a process of its own.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
	socket string // of clients
	pages  string // URL of telemetry
}

// startProxy runs the command before the server at upstream and waits until it is
// ready.
func startProxy(t *testing.T, upstream string, args ...string) *running {
	t.Helper()
	return startProxyAs(t, nil, []string{"streamproxy"}, upstream, args...)
}

// startProxyAs is startProxy by a command to which the flags are added, with the log
// going to w, unless that is nil.
func startProxyAs(t *testing.T, w io.Writer, command []string, upstream string, args ...string) *running {
	t.Helper()
	telemetry := "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t))
	// Not t.TempDir: its paths can be longer than a socket's may be.
	dir, err := os.MkdirTemp("", "streamproxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &running{t: t, socket: filepath.Join(dir, "client.sock"), pages: "http://" + telemetry}
	args = slices.Concat(command[1:], []string{"--listen=unix://" + r.socket, "--telemetry-listen=" + telemetry, "--upstream=" + upstream}, args)
	r.cmd = exec.Command(command[0], args...)
	r.cmd.Stderr = &r.stderr
	if w != nil {
		r.cmd.Stderr = w
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.await("/readyz", "ok")
	return r
}

// page returns what telemetry answers, or nothing while it does not.
func (r *running) page(path string) string {
	client := http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(r.pages + path)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// await asks for a page until it contains want.
func (r *running) await(path, want string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got := r.page(path)
		if strings.Contains(got, want) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
			r.t.Fatalf("%s never had %q:\n%s\n%s", path, want, got, r.stderr.String())
		}
	}
}

func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// exit waits for the end of the process and checks its code.
func (r *running) exit(want int) {
	r.t.Helper()
	timer := time.AfterFunc(patience, func() { _ = r.cmd.Process.Kill() })
	defer timer.Stop()
	_ = r.cmd.Wait()
	if got := r.cmd.ProcessState.ExitCode(); got != want {
		r.t.Fatalf("exit code %d, want %d\n%s", got, want, r.stderr.String())
	}
}

func (r *running) client() *redistest.Client {
	r.t.Helper()
	c, err := redistest.Dial(r.socket)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSignalDrains(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		r := startProxy(t, redistest.Start(t).URL(), "--drain-idle=1ms")
		if got, err := r.client().Do("SET", "k", "v"); err != nil || got != "+OK\r\n" {
			t.Fatalf("%q, %v", got, err)
		}
		r.signal(s)
		r.exit(exitOK)
	}
}

// A script that does not end keeps its command in flight.
const endless = "while true do end"

func TestSecondSignalStopsNow(t *testing.T) {
	t.Parallel()
	r := startProxy(t, redistest.Start(t).URL(), "--drain-timeout=1h")
	if err := r.client().SendCommand("EVAL", endless, "0"); err != nil {
		t.Fatal(err)
	}
	r.await("/metrics", "streamproxy_upstream_inflight_commands 1\n")
	r.signal(syscall.SIGTERM)
	r.await("/readyz", "draining")
	r.signal(syscall.SIGINT)
	r.exit(exitDrain)
}

func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	r := startProxy(t, redistest.Start(t).URL(), "--drain-timeout=50ms")
	if err := r.client().SendCommand("EVAL", endless, "0"); err != nil {
		t.Fatal(err)
	}
	r.await("/metrics", "streamproxy_upstream_inflight_commands 1\n")
	r.signal(syscall.SIGTERM)
	r.exit(exitDrain)
}

// What clients do must arrive in the metrics: the wiring, end to end.
func TestMetricsAreFed(t *testing.T) {
	t.Parallel()
	// Reclaim has questions of its own, which would be counted as well.
	r := startProxy(t, redistest.Start(t).URL(), "--reclaim=off")
	c := r.client()
	for range 100 {
		if got, err := c.Do("PING"); err != nil || got != "+PONG\r\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	for _, want := range []string{
		"streamproxy_upstream_up 1\n",
		"streamproxy_client_connections 1\n",
		"streamproxy_client_connections_total{result=\"ok\"} 1\n",
		"streamproxy_client_commands_total{class=\"shared\"} 100\n",
		"streamproxy_client_received_bytes_total 1400\n",
		"streamproxy_client_sent_bytes_total 700\n",
		"streamproxy_batch_flushes_total{reason=\"idle\"} 100\n",
		"streamproxy_batch_commands_count 100\n",
		"streamproxy_upstream_connections{kind=\"lane\"} 2\n",
		"streamproxy_log_messages_total{level=\"info\"}",
	} {
		r.await("/metrics", want)
	}
	_ = c.Close()
	r.await("/metrics", "streamproxy_client_connections 0\n")
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
}

// A worker that asks for abandoned entries is answered here from its second question
// on, and that shows.
func TestReclaimMetricsAreFed(t *testing.T) {
	t.Parallel()
	r := startProxy(t, redistest.Start(t).URL(), "--reclaim-interval=1s")
	c := r.client()
	do := func(args ...string) string {
		t.Helper()
		got, err := c.Do(args...)
		if err != nil || strings.HasPrefix(got, "-") {
			t.Fatalf("%v: %q, %v", args, got, err)
		}
		return got
	}
	do("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM")
	do("XREADGROUP", "GROUP", "billing", "w", "BLOCK", "1", "STREAMS", "orders", ">")
	for range 2 {
		do("XAUTOCLAIM", "orders", "billing", "w", "60000", "0-0")
	}
	for _, want := range []string{
		"streamproxy_reclaim_forwarded_total{reason=\"unknown\"} 1\n",
		"streamproxy_reclaim_local_answers_total{command=\"xautoclaim\"} 1\n",
		"streamproxy_reclaim_lease_held 1\n",
		"e+09\n", // the time of the last success
	} {
		r.await("/metrics", want)
	}
	if got := do("PROXY", "STREAMS"); !strings.Contains(got, "1 streams, 0 hot, 1 cold") || !strings.Contains(got, "  billing  orders  1m0s ") {
		t.Errorf("PROXY STREAMS: %s", got)
	}
	if got := do("PROXY", "CONFIG"); !strings.Contains(got, "\n--reclaim-interval=1s\n") {
		t.Errorf("PROXY CONFIG: %s", got)
	}
}

// What docs/streams.md says that the upstream URL's user needs for reclaim is enough,
// beside what any proxy needs.
func TestReclaimWithFewRights(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/streams.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "`~streamproxy:*")
	rights, _, found := strings.Cut(rest, "`")
	if !found {
		t.Fatal("docs/streams.md names no rights")
	}
	server := redistest.Start(t)
	acl := "ACL SETUSER proxy on nopass resetkeys ~streamproxy:* -@all +ping +hello +auth +select +info +command +client|id +client|setname"
	for _, args := range [][]string{
		strings.Fields(acl + " " + rights), strings.Fields("ACL SETUSER app on >geheim ~* &* +@all"),
	} {
		if got := server.Do(args...); got != "+OK\r\n" {
			t.Fatalf("%v: %s", args, got)
		}
	}
	r := startProxy(t, strings.Replace(server.URL(), "redis://", "redis://proxy@", 1), "--reclaim-interval=1s")
	c := r.client()
	for _, command := range []string{
		"AUTH app geheim", "XGROUP CREATE s g $ MKSTREAM", "XREADGROUP GROUP g w BLOCK 1 STREAMS s >", "XAUTOCLAIM s g w 60000 0-0",
	} {
		if got, err := c.Do(strings.Fields(command)...); err != nil || strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %q, %v", command, got, err)
		}
	}
	r.await("/metrics", "streamproxy_reclaim_lease_held 1\n")
	r.await("/metrics", "streamproxy_reclaim_rounds_total{result=\"denied\"} 0\n")
}

// A password that the proxy is not given is the clients' affair.
func TestCheckDialsWithoutThePassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("geheim"))
	out, err := exec.Command("streamproxy", "check", "--dial", "--upstream=redis://"+server.Addr()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " answers, and wants a password") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCheckDials(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPassword("geheim"))
	for _, tt := range []struct {
		name, password string
		want           int
		says           string
	}{
		{"accepted", "geheim", exitOK, " answers\n"},
		{"refused", "falsch", exitOther, "WRONGPASS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(path, []byte(tt.password+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("streamproxy", "check", "--dial", "--upstream=redis://"+server.Addr(), "--upstream-password-file="+path)
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tt.want || !strings.Contains(string(out), tt.says) {
				t.Errorf("exit code %d, want %d; want %q in\n%s", got, tt.want, tt.says, out)
			}
			if strings.Contains(string(out), tt.password) {
				t.Errorf("secret in\n%s", out)
			}
		})
	}
}
