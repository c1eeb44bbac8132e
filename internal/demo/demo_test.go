package demo

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// short is a demo that a test can wait for.
func short(out *bytes.Buffer) Options {
	o := DefaultOptions()
	o.Duration, o.Clients, o.Out = MinDuration, 60, out
	return o
}

// compared returns both sides' figures of a row of the last table in the text.
func compared(t *testing.T, text, row string) (direct, proxied float64) {
	t.Helper()
	text = text[strings.LastIndex(text, "Summary"):]
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(row) + `\s+([\d.]+)(?: ms)?\s+([\d.]+)(?: ms)?$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no row %q in\n%s", row, text)
	}
	direct, _ = strconv.ParseFloat(m[1], 64)
	proxied, _ = strconv.ParseFloat(m[2], 64)
	return direct, proxied
}

// checkSummary asserts what must hold however fast the machine is.
func checkSummary(t *testing.T, text string, clients float64) {
	t.Helper()
	commands, commandsProxied := compared(t, text, "commands")
	writes, writesProxied := compared(t, text, "upstream writes")
	conns, connsProxied := compared(t, text, "upstream connections")
	p50, p50Proxied := compared(t, text, "latency p50")
	p95, p95Proxied := compared(t, text, "latency p95")
	perWrite, perWriteProxied := compared(t, text, "commands per upstream write")
	for what, ok := range map[string]bool{
		"both sides did something":                     commands > 0 && commandsProxied > 0,
		"a client alone writes each command by itself": writes == commands && perWrite == 1,
		"the proxy joins commands":                     writesProxied < commandsProxied && perWriteProxied > 1,
		"clients hold a connection each":               conns == clients,
		"the proxy holds few":                          connsProxied >= 1 && connsProxied < clients/2,
		"nobody is faster than the distance":           min(p50, p50Proxied) >= 28 && p95 >= p50 && p95Proxied >= p50Proxied,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	if t.Failed() {
		t.Logf("\n%s", text)
	}
}

// checkShift asserts the same of the second part.
func checkShift(t *testing.T, text string) {
	t.Helper()
	_, text, _ = strings.Cut(text, "The workers' messages;")
	value := func(title string) (direct, proxied float64) {
		m := regexp.MustCompile(`(?m)^` + title + ` +([\d.]+)(?: ms| s)? +([\d.]+)(?: ms)?$`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no row %q in\n%s", title, text)
		}
		direct, _ = strconv.ParseFloat(m[1], 64)
		proxied, _ = strconv.ParseFloat(m[2], 64)
		return direct, proxied
	}
	sent, sentProxied := value("messages sent")
	waiting, waitingProxied := value("not yet received")
	p50, p50Proxied := value("sent to received p50")
	// The first message is read at once; the direct worker's first pass takes longer than
	// the test. The last message to the proxied one may still be on its way.
	if sent < 3 || sentProxied < 3 || waiting != sent-1 || waitingProxied > 1 {
		t.Errorf("sent %v and %v, not yet received %v and %v", sent, sentProxied, waiting, waitingProxied)
	}
	if p50Proxied < 28 || p50 <= p50Proxied {
		t.Errorf("p50 %v ms direct, %v ms proxied", p50, p50Proxied)
	}
	if t.Failed() {
		t.Logf("\n%s", text)
	}
}

func TestRunEmbedded(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), short(&out)); err != nil {
		t.Fatal(err)
	}
	checkSummary(t, out.String(), 60)
	checkShift(t, out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("control sequences where there is no terminal: %q", out.String())
	}
}

// A real server keeps nothing of the demo, whatever its password and database.
func TestRunExternal(t *testing.T) {
	server := redistest.Start(t, redistest.WithPassword("geheim"))
	var out bytes.Buffer
	o := short(&out)
	var err error
	if o.Proxy.Upstream, err = upstream.Parse(server.URL() + "/2"); err != nil {
		t.Fatal(err)
	}
	o.External = true
	o.Proxy.Reclaim.Interval = time.Second // then the proxy takes a lease in so short a time
	before := server.Info("commandstats", "cmdstat_auth")
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	checkSummary(t, out.String(), 60)
	checkShift(t, out.String())
	if got := server.Info("commandstats", "cmdstat_set"); !strings.HasPrefix(got, "calls=") {
		t.Errorf("nobody stored anything: %s", got)
	}
	if got := server.Info("commandstats", "cmdstat_lrange"); !strings.HasPrefix(got, "calls=") {
		t.Errorf("no lease was taken: %s", got)
	}
	if got := server.Info("commandstats", "cmdstat_auth"); got == before {
		t.Error("nobody gave the password")
	}
	if got := server.Do("INFO", "keyspace"); strings.Contains(got, "db") {
		t.Errorf("something is left behind: %s", got)
	}
	if text := out.String(); strings.Contains(text, "geheim") || !strings.Contains(text, server.Addr()+"/2") {
		t.Errorf("want the server's address without its password in\n%s", text)
	}
}

func TestRunOnTerminal(t *testing.T) {
	var out bytes.Buffer
	o := short(&out)
	o.Duration += redraw // so that a table is drawn over another
	o.Terminal = true
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	drawn := strings.Count(text, "upstream writes/s") + strings.Count(text, "messages sent") - 1
	if erased := strings.Count(text, "\x1b[J"); drawn < 2 || erased != drawn {
		t.Errorf("%d tables drawn, %d erased", drawn, erased)
	}
	checkShift(t, text)
	text, _, _ = strings.Cut(text, "The workers' messages;")
	if rest := text[strings.LastIndex(text, "\x1b[J")+len("\x1b[J"):]; rest != "" {
		t.Errorf("the last table is not replaced by the second summary: %q", rest)
	}
	text, _, _ = strings.Cut(text, "\nNow a worker")
	if rest := text[strings.LastIndex(text, "\x1b[J")+len("\x1b[J"):]; !strings.HasPrefix(rest, "Summary") {
		t.Errorf("the last table is not replaced by the summary: %q", rest)
	}
	checkSummary(t, text, 60)
}

// trigger calls once when what is written contains a text.
type trigger struct {
	bytes.Buffer
	text string
	call func()
}

func (w *trigger) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.text) {
		w.call()
	}
	return w.Buffer.Write(b)
}

func TestInterrupted(t *testing.T) {
	for at, want := range map[string]string{
		"1s |":       "Summary of 1.",
		"cmd/s":      "Summary of 0.",
		"Each sends": "Interrupted before anything was measured.",
	} {
		t.Run(want, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			out := &trigger{text: at, call: cancel}
			o := short(nil)
			o.Out, o.Duration = out, MaxDuration
			began := time.Now()
			if err := Run(ctx, o); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > MaxDuration/2 {
				t.Errorf("ended only after %v", took)
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		})
	}
}

func TestServerAway(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	var out bytes.Buffer
	o := short(&out)
	o.Proxy.Upstream, _ = upstream.Parse(server.URL())
	o.External = true
	err := Run(t.Context(), o)
	if !errors.Is(err, syscall.ECONNREFUSED) || out.Len() > 0 {
		t.Errorf("error %v and\n%s", err, out.String())
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*Options)
		want string
	}{
		{"default", func(*Options) {}, ""},
		{"too short", func(o *Options) { o.Duration = MinDuration - 1 }, "duration"},
		{"too long", func(o *Options) { o.Duration = MaxDuration + 1 }, "duration"},
		{"nobody", func(o *Options) { o.Clients = 0 }, "0 clients"},
	} {
		o := DefaultOptions()
		tt.set(&o)
		err := o.validate()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
