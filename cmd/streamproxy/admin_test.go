package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
	"streamproxy/internal/telemetry"
)

// adminOf returns a client of the administration socket in dir.
func adminOf(socket string) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

// answer sends one request and returns status and body.
func answer(t *testing.T, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestAdministration(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "admin") // short: it becomes a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	r := startProxy(t, redistest.Start(t).URL(), "--admin-listen=unix://"+socket, "--drain-idle=1ms", "--log-format=json")
	c := adminOf(socket)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v", info.Mode(), err)
	}
	if code, text := answer(t, c, "GET", "http://x/stats.json", ""); code != 200 {
		t.Errorf("%d %s", code, text)
	} else {
		var s telemetry.Stats
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Version == "" || !s.UpstreamUp {
			t.Errorf("%v in %s", err, text)
		}
	}
	for _, page := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap"} {
		if code, _ := answer(t, c, "GET", "http://x"+page, ""); code != 200 {
			t.Errorf("%s: %d", page, code)
		}
	}
	for _, step := range []struct {
		method, body string
		code         int
		want         string
	}{{"GET", "", 200, "info\n"}, {"PUT", "loud", 400, "want one of"}, {"PUT", " Debug\n", 200, "debug\n"}, {"GET", "", 200, "debug\n"}, {"DELETE", "", 405, ""}} {
		if code, text := answer(t, c, step.method, "http://x/loglevel", step.body); code != step.code || !strings.HasPrefix(text, step.want) {
			t.Errorf("%s %q: %d %q", step.method, step.body, code, text)
		}
	}
	if code, _ := answer(t, c, "GET", "http://x/quitquitquit", ""); code != 405 {
		t.Errorf("GET /quitquitquit: %d", code)
	}
	if code, _ := answer(t, c, "POST", "http://x/quitquitquit", ""); code != 200 {
		t.Errorf("POST /quitquitquit: %d", code)
	}
	r.exit(exitOK)
}

// What a page in a browser on this machine can make it ask is refused; so is a foreign
// name that leads here.
func TestAdministrationIsNotForBrowsers(t *testing.T) {
	t.Parallel()
	addr := "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t))
	r := startProxy(t, redistest.Start(t).URL(), "--admin-listen="+addr, "--drain-idle=1ms")
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, header := range [][]string{{"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "same-origin"}, {"Host", "evil.example:9381"}} {
		if code, _ := answer(t, c, "POST", "http://"+addr+"/quitquitquit", "", header...); code != http.StatusForbidden {
			t.Errorf("%v: %d", header, code)
		}
	}
	for _, host := range []string{"localhost:1", "[::1]:9381", "127.0.0.1"} {
		if code, _ := answer(t, c, "GET", "http://"+addr+"/loglevel", "", "Host", host); code != 200 {
			t.Errorf("%s: %d", host, code)
		}
	}
	if code, _ := answer(t, c, "POST", "http://"+addr+"/quitquitquit", ""); code != 200 {
		t.Errorf("/quitquitquit: %d", code)
	}
	r.exit(exitOK)
}
