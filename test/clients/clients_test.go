//go:build clients

package clients

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// programLimit bounds one client program. They take a few seconds, and a proxy that hangs must not
// take the whole run with it.
const programLimit = 3 * time.Minute

// client is one library: how to install it, once, and how to run its checks.
type client struct {
	name    string
	install func(t *testing.T) (command []string)
}

var libraries = []client{
	{"redis-py 7", python("redis_py.py", "redis==7.4.1")},
	{"redis-py 7 asyncio", python("redis_py_asyncio.py", "redis==7.4.1")},
	{"redis-py 8", python("redis_py.py", "redis==8.1.0")},
	{"redis-py 8 asyncio", python("redis_py_asyncio.py", "redis==8.1.0")},
	{"node-redis", node("node_redis.mjs")},
	{"ioredis", node("ioredis.mjs")},
	{"jedis", java("JedisChecks")},
	{"lettuce", java("LettuceChecks")},
	{"phpredis", script("php", "php/phpredis.php")},
	{"redis-rb", script("ruby", "ruby/redis_rb.rb")},
}

// servers are the environment variables that name a server's binary, "" for the one on PATH.
var servers = []struct{ name, variable string }{
	{"redis-debian", ""},
	{"redis-current", "REDIS_CURRENT_SERVER"},
	{"valkey", "VALKEY_SERVER"},
}

// The servers are taken at the same time, each with a proxy of its own: most of what is checked waits.
func TestLibraries(t *testing.T) {
	binary := buildProxy(t)
	found.Matrix = NewMatrix()
	t.Cleanup(func() { finish(t) })
	commands := map[string][]string{}
	for _, l := range libraries {
		commands[l.name] = l.install(t)
	}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			var opts []redistest.Option
			if server.variable != "" {
				opts = append(opts, redistest.WithBinary(serverPath(t, server.variable)))
			}
			lab := newLab(t, server.name, binary, opts...)
			for _, l := range libraries {
				t.Run(l.name, func(t *testing.T) { lab.runChecks(t, l.name, commands[l.name]) })
			}
			t.Run("go-redis", lab.checkGoRedis)
			t.Run("rueidis", lab.checkRueidis)
			t.Run("redis-cli", lab.checkCLI)
			t.Run("redis-benchmark", lab.checkBenchmark)
		})
	}
}

func serverPath(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path != "" {
		return path
	}
	if os.Getenv("ALLOW_SKIP") == "1" {
		t.Skipf("%s names no server", variable)
	}
	t.Fatalf("%s names no server: run test/install/servers.sh, or allow skips with ALLOW_SKIP=1", variable)
	return ""
}

func buildProxy(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "streamproxy")
	if text, err := exec.Command("go", "build", "-o", path, "streamproxy/cmd/streamproxy").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return path
}

// startProxy starts the shipped binary with default flags in front of a server.
func startProxy(t *testing.T, binary, upstream string) (addr string) {
	t.Helper()
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(redistest.FreePort(t)))
	cmd := exec.Command(binary, "--listen", addr, "--upstream", "redis://"+upstream, "--telemetry-listen", "off", "--drain-idle", "100ms")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy did not leave cleanly: %v\n%s", err, log.String())
		}
		if t.Failed() {
			t.Logf("the proxy's log:\n%s", log.String())
		}
	})
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := redistest.Dial(addr)
		if err == nil {
			defer c.Close()
			if reply, err := c.Do("PING"); err != nil || reply != "+PONG\r\n" {
				t.Fatalf("the proxy answers PING with %q, %v", reply, err)
			}
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("the proxy does not listen: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// runChecks runs a client program and obeys its lines.
func (l *lab) runChecks(t *testing.T, client string, command []string) {
	ctx, cancel := context.WithTimeout(t.Context(), programLimit)
	defer cancel()
	host, port, _ := net.SplitHostPort(l.addr)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "PROXY_HOST="+host, "PROXY_PORT="+port, "REDIS_PORT="+strconv.Itoa(l.redis.Port()))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	answer, text := pipes(t, cmd)
	checks := 0
	for lines := bufio.NewScanner(text); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		name, why, _ := strings.Cut(rest, " # ")
		switch verb {
		case "restart":
			l.restart(t)
			if _, err := io.WriteString(answer, "restarted\n"); err != nil {
				t.Errorf("the program did not wait for the restart: %v", err)
			}
		case "version":
			is(client, rest)
		case "refused": // by the library itself, whatever stands before the server
			t.Logf("%s: %s", name, why)
		case "ok", "failed":
			checks++
			l.check(t, client, name, func(t *testing.T) {
				if verb == "failed" {
					t.Error(why)
				}
			})
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, complaints.String())
	}
	if checks == 0 {
		t.Errorf("%v made no checks; it complained %q", command, complaints.String())
	}
}

// pipes starts a program of which both ends are held.
func pipes(t *testing.T, cmd *exec.Cmd) (in io.Writer, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}
