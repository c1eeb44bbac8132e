//go:build clients

package clients

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// toolLimit bounds one call of a tool.
const toolLimit = 60 * time.Second

// tool runs one of Redis's own tools against addr and returns what it printed.
func tool(t *testing.T, name, addr, input string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), toolLimit)
	defer cancel()
	cmd := command(ctx, name, addr, args...)
	cmd.Stdin = strings.NewReader(input)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, text)
	}
	return string(text)
}

func command(ctx context.Context, name, addr string, args ...string) *exec.Cmd {
	host, port, _ := net.SplitHostPort(addr)
	return exec.CommandContext(ctx, name, append([]string{"-h", host, "-p", port}, args...)...)
}

// checkCLI checks the tool with which people look at a Redis, in each of its modes.
func checkCLI(t *testing.T, addr string) {
	for _, tt := range []struct {
		name, input string
		args        []string
		want        string // a pattern
	}{
		{"command", "", []string{"SET", "cli:k", "v"}, `^OK\n$`},
		{"resp3", "", []string{"-3", "HELLO"}, `(?m)^proto 3$`},
		{"map", "HSET cli:h a 1\nHGETALL cli:h\n", []string{"-3", "--no-raw"}, `"a" => "1"`},
		{"lines", "SELECT 3\nSET cli:d three\nGET cli:d\nMULTI\nINCR cli:n\nEXEC\n", nil, `^OK\nOK\nthree\nOK\nQUEUED\n1\n$`},
		{"database", "", []string{"-n", "3", "GET", "cli:d"}, `^three\n$`},
		{"repeated", "", []string{"-r", "5", "-i", "0.01", "PING"}, `^(PONG\n){5}$`},
		{"script", "", []string{"EVAL", "return {KEYS[1], 'ä'}", "1", "x"}, `^x\nä\n$`},
		{"pipe", massInsertion(5000), []string{"--pipe"}, `errors: 0, replies: 5000`},
		{"scan", "", []string{"--scan", "--pattern", "cli:pipe:49??"}, `^(cli:pipe:49\d\d\n){100}$`},
		{"bigkeys", "", []string{"--bigkeys"}, `(?m)^Biggest string found .*cli:`},
		{"memkeys", "", []string{"--memkeys"}, `(?m)^[1-9]\d* strings with [1-9]\d* bytes`},
		{"eval", "", []string{"--eval", file(t, "return {KEYS[1], ARGV[1]}"), "k", ",", "a"}, `^k\na\n$`},
		{"debugger", "c\n", []string{"--ldb", "--eval", file(t, "return 'stepped'")}, `"stepped"`},
		{"dump", "", []string{"--rdb", file(t, "")}, `Transfer finished with success`},
		{"latency", "", []string{"--latency", "-i", "1", "--raw"}, `^[\d.]+ [\d.]+ [\d.]+ [1-9]\d*\n$`},
		{"info", "", []string{"INFO", "server"}, `redis_version:`},
		{"clients", "", []string{"CLIENT", "LIST"}, `name=streamproxy:`},
	} {
		check(t, "redis-cli", tt.name, func(t *testing.T) {
			got := tool(t, "redis-cli", addr, tt.input, tt.args...)
			if !regexp.MustCompile(tt.want).MatchString(got) {
				t.Errorf("no %q in\n%.2000s", tt.want, got)
			}
		})
	}
	check(t, "redis-cli", "stat", func(t *testing.T) { checkStat(t, addr) })
	check(t, "redis-cli", "monitor", func(t *testing.T) { checkMonitor(t, addr) })
}

// file makes a file of its own.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// massInsertion is n commands as --pipe wants them.
func massInsertion(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(redistest.Command("SET", fmt.Sprintf("cli:pipe:%d", i), strings.Repeat("x", i%200)))
	}
	return b.String()
}

// lines starts a tool that does not end by itself and hands over its lines, at most n, until one
// is enough.
func lines(t *testing.T, n int, enough func(line string) bool, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	scan := bufio.NewScanner(out)
	for range n {
		if !scan.Scan() {
			t.Fatalf("%v ended: %v", cmd.Args, scan.Err())
		}
		if enough(scan.Text()) {
			return
		}
	}
}

func checkStat(t *testing.T, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), toolLimit)
	defer cancel()
	rows := 0
	lines(t, 5, func(line string) bool {
		if regexp.MustCompile(`^\d+ +[\d.]+[BKMG] +\d+ +\d+ +\d+ `).MatchString(line) {
			rows++
		}
		return false
	}, command(ctx, "redis-cli", addr, "--stat", "-i", "0.05"))
	if rows != 3 { // behind two of headings
		t.Errorf("%d rows of figures in 5 lines", rows)
	}
}

// checkMonitor sees another client's command, among those with which the proxy greets the server.
func checkMonitor(t *testing.T, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), toolLimit)
	defer cancel()
	other, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	seen := false
	lines(t, 100, func(line string) bool {
		if line == "OK" {
			_, err = other.Do("SET", "cli:seen", "1")
		}
		seen = strings.Contains(line, `"SET" "cli:seen" "1"`)
		return seen
	}, command(ctx, "redis-cli", addr, "MONITOR"))
	if err != nil || !seen {
		t.Errorf("MONITOR did not show the command; %v", err)
	}
}

// checkBenchmark runs the default tests of the benchmark that people reach for first.
func checkBenchmark(t *testing.T, addr string) {
	for _, pipeline := range []string{"1", "16"} {
		check(t, "redis-benchmark", "pipeline of "+pipeline, func(t *testing.T) {
			got := tool(t, "redis-benchmark", addr, "", "-q", "-n", "2000", "-c", "20", "-P", pipeline)
			figures := regexp.MustCompile(`(?m)^\r?.*requests per second`).FindAllString(strings.ReplaceAll(got, "\r", "\n"), -1)
			// PING twice, then SET, GET, INCR, six of lists and sets, the hash, the sorted set's
			// two, LRANGE's five and MSET.
			if len(figures) < 18 {
				t.Errorf("only %d of the default tests have figures:\n%s", len(figures), got)
			}
			for _, fault := range []string{"Error", "WARNING", "ERR "} {
				if strings.Contains(got, fault) {
					t.Errorf("%q in\n%s", fault, got)
				}
			}
		})
	}
}
