package deploy

import (
	"bytes"
	"context"
	"net"
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

// TestComposeProcesses starts what the containers hold, in the order that the compose
// file asks for, and stops it. Only addresses differ: a container has its own.
func TestComposeProcesses(t *testing.T) {
	c, image := readCompose(t), readDockerfile(t)
	redis, px := c.Services["redis"], c.Services["streamproxy"]
	redisPort := strconv.Itoa(redistest.FreePort(t))
	clients := loopback(t)
	telemetry := loopback(t)

	dir := t.TempDir() // where a container has its own disk
	server := start(t, dir, nil, slices.Concat(redis.Command, []string{"--port", redisPort, "--bind", "127.0.0.1"}))
	check := redis.Healthcheck.Test
	if len(check) < 2 || check[0] != "CMD" {
		t.Fatalf("health check %q", check)
	}
	check = slices.Concat([]string{check[1], "-p", redisPort}, check[2:])
	healthy(t, server, redis.limit(), nil, check)

	// The image's entry point is the built binary; the service's command follows it.
	binary := build(t)
	environ := replace(t, px.environ(), map[string]string{
		"redis:6379":   "127.0.0.1:" + redisPort,
		"0.0.0.0:6380": clients,
		"0.0.0.0:9380": telemetry,
	})
	inImage := func(command []string) []string { return slices.Concat([]string{binary}, command[1:]) }
	if err := run(t, environ, inImage(image.health)); err == nil {
		t.Error("a proxy that does not run is healthy")
	}
	proxy := start(t, dir, environ, slices.Concat(inImage(image.entrypoint), px.Command))
	healthy(t, proxy, image.grace, environ, inImage(image.health))

	client, err := redistest.Dial(clients)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, tt := range [][2]string{{"SET k v", "+OK\r\n"}, {"GET k", "$1\r\nv\r\n"}} {
		if got, err := client.Do(strings.Fields(tt[0])...); err != nil || got != tt[1] {
			t.Errorf("%s: %q, %v", tt[0], got, err)
		}
	}
	client.Close()
	proxy.stop(time.Duration(px.StopGracePeriod))
}

// limit is how long a service may take until its health check gives it up.
func (s service) limit() time.Duration {
	return time.Duration(s.Healthcheck.Interval) * time.Duration(s.Healthcheck.Retries)
}

// loopback returns an address at which nobody listens.
func loopback(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
}

// replace puts this machine's addresses where the containers' own stand. Each must
// stand somewhere: an address that is not there would be tested by nobody.
func replace(t *testing.T, environ []string, addresses map[string]string) (list []string) {
	t.Helper()
	text := strings.Join(environ, "\n")
	for from, to := range addresses {
		if strings.Count(text, from) != 1 {
			t.Fatalf("want %s once in the environment:\n%s", from, text)
		}
		text = strings.Replace(text, from, to, 1)
	}
	return strings.Split(text, "\n")
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "streamproxy")
	cmd := exec.Command("go", "build", "-o", binary, "streamproxy/cmd/streamproxy")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return binary
}

// process is one that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{} // closed when it has ended
}

// start runs a command with nothing but an environment, PATH, and a directory. What is
// left of it at the end of the test is killed.
func start(t *testing.T, dir string, environ, command []string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// run runs a command to its end.
func run(t *testing.T, environ, command []string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environ...)
	return cmd.Run()
}

// healthy waits until a process passes its check.
func healthy(t *testing.T, p *process, limit time.Duration, environ, check []string) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := run(t, environ, check)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.done:
			t.Fatalf("%v ended:\n%s", p.cmd.Args, p.log.String())
		case <-deadline:
			t.Fatalf("%v is not healthy after %v: %v: %v", p.cmd.Args, limit, check, err)
		}
	}
}

// stop ends a process as a container is stopped, and expects that it ends well in time.
func (p *process) stop(grace time.Duration) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(grace):
		p.t.Fatalf("still there %v after SIGTERM", grace)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("exit code %d\n%s", code, p.log.String())
	}
}
