//go:build operations

package operations

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"streamproxy/internal/proxytest"
	"streamproxy/internal/redistest"
)

// wait lets the load go on for a while. Nothing but that load depends on how long it is.
func wait(d time.Duration) { <-time.After(d) }

// The load stops some time after SIGTERM: every command was answered, new connections were
// served, whoever waits gets the answer of a timeout, and the process says that all is well.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := proxytest.Start(t, server.URL(), "--drain-timeout=50s").Ready()
	g := invite(t, server, p)
	counters, stop := startLoad(p, 16)
	wait(300 * time.Millisecond)
	p.Signal(syscall.SIGTERM)
	proxytest.Eventually(t, "readiness ends", func() bool {
		code, _ := p.Page("/readyz")
		return code == http.StatusServiceUnavailable
	})
	before := server.Info("stats", "total_commands_processed")
	going := time.Second
	if long() {
		going = 5 * time.Second
	}
	wait(going)
	if alive, _ := p.Page("/livez"); alive != http.StatusOK {
		t.Errorf("a draining proxy says it does not live: %d", alive)
	}
	stop()
	g.worker.rest()
	g.leave(server)
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range counters {
		c.check(t, server)
	}
	done, refused, lost := book(counters)
	t.Logf("%d commands answered, %d refused, %d lost; %s before the load went on for %v", done, refused, lost, before, going)
	if refused+lost > 0 || done == 0 {
		t.Errorf("%d commands answered, %d refused, %d lost", done, refused, lost)
	}
}

// Clients that never stop: the process ends at the timeout and says so, every command's outcome
// is known or said to be unknown, and the last word is not silence.
func TestDrainOfLoadThatNeverStops(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const timeout = 3 * time.Second
	p := proxytest.Start(t, server.URL(), "--drain-timeout="+timeout.String()).Ready()
	counters, stop := startLoad(p, 8)
	defer stop()
	wait(300 * time.Millisecond)
	began := time.Now()
	p.Signal(syscall.SIGTERM)
	code := p.Exit()
	if took := time.Since(began); code != 3 || took < timeout {
		t.Errorf("exit code %d after %v", code, took)
	}
	stop()
	for _, c := range counters {
		c.check(t, server)
	}
	done, refused, lost := book(counters)
	t.Logf("%d commands answered, %d refused, %d lost", done, refused, lost)
	if refused == 0 {
		t.Error("nobody was told that the proxy is shutting down")
	}
}

// What a server that hangs has not answered is said to be unknown.
func TestDrainOfAHungServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := proxytest.Start(t, server.URL(), "--drain-timeout=100ms").Ready()
	get, pop := p.Client(), p.Client()
	expect(t, get, "+OK\r\n", "SET", "k", "v")
	if err := pop.SendCommand("BLPOP", "nothing", "0"); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "a blocked client", func() bool { return server.Info("clients", "blocked_clients") == "1" })
	server.Stop()
	defer server.Cont()
	if err := get.SendCommand("INCR", "counter"); err != nil {
		t.Fatal(err)
	}
	proxytest.Eventually(t, "a command in flight", func() bool { return p.Metric("streamproxy_upstream_inflight_commands") >= 2 })
	p.Signal(syscall.SIGTERM)
	for _, c := range []*redistest.Client{get, pop} {
		if got, err := c.ReadReply(); err != nil || got != unknown {
			t.Errorf("got %q, %v", got, err)
		}
		_ = c.Close()
	}
	if code := p.Exit(); code != 3 {
		t.Errorf("exit code %d", code)
	}
}

// The two kinds of pod, with the arguments of their manifests. A native sidecar is told to stop
// when the application has ended. A plain container is told together with the application, which
// says nothing for a while, longer than a drain waits for silence, and then its last words, over a
// new connection too.
func TestDrainInAPod(t *testing.T) {
	t.Parallel()
	for _, pod := range []struct {
		manifest string
		together bool
	}{
		{"sidecar.yaml", false},
		{"container.yaml", true},
	} {
		t.Run(pod.manifest, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			args, silence := podArgs(t, pod.manifest), 18*time.Second
			if !long() { // the same, faster
				args, silence = append(args, "--drain-idle=200ms"), time.Second
				if pod.together {
					args = append(args, "--drain-min=10s")
				}
			}
			p := proxytest.Start(t, server.URL(), args...).Ready()
			if pod.together {
				p.Signal(syscall.SIGTERM)
			}
			g := invite(t, server, p)
			counters, stop := startLoad(p, 4)
			wait(300 * time.Millisecond)
			stop()
			g.worker.rest()
			if pod.together {
				wait(silence)
				expect(t, p.Client(), "+OK\r\n", "SET", "last", "words")
			} else {
				p.Signal(syscall.SIGTERM)
			}
			g.leave(server)
			if code := p.Exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			for _, c := range counters {
				c.check(t, server)
			}
			if _, refused, lost := book(counters); refused+lost > 0 {
				t.Errorf("%d commands refused, %d lost", refused, lost)
			}
		})
	}
}

// podArgs are the proxy's arguments in a manifest, without the addresses that are a cluster's.
func podArgs(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/" + name)
	if err != nil {
		t.Fatal(err)
	}
	type containers []struct {
		Name string
		Args []string
	}
	var d struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers containers `yaml:"initContainers"`
					Containers     containers
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		if c.Name == "streamproxy" {
			return slices.DeleteFunc(c.Args, func(arg string) bool {
				return strings.HasPrefix(arg, "--upstream=") || strings.HasPrefix(arg, "--telemetry-listen=")
			})
		}
	}
	t.Fatalf("%s has no streamproxy", name)
	return nil
}
