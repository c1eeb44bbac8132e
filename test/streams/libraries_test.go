//go:build streams

package streams

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// program is a library's worker or producer, running. It prints "ready" and "got N".
type program struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	errs bytes.Buffer

	mu    sync.Mutex
	ready bool
	got   map[int][]time.Time
}

// start runs a program and kills it when the test ends.
func start(t *testing.T, command []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, done: make(chan struct{}), got: make(map[int][]time.Time)}
	args = append(append([]string(nil), command[1:]...), args...)
	p.cmd = exec.Command(command[0], args...)
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the program
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.take(lines.Text())
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%v: got %d messages; it complained\n%s", args, p.count(), p.errs.String())
		}
	})
	return p
}

func (p *program) take(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if line == "ready" {
		p.ready = true
	}
	if n, err := strconv.Atoi(strings.TrimPrefix(line, "got ")); err == nil {
		p.got[n] = append(p.got[n], time.Now())
	}
}

func (p *program) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// count is how many different messages have come.
func (p *program) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.got)
}

// kill ends the program at once (SIGKILL) and waits until it is gone.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// exactly fails the test unless the messages from 0 to n have come, each once, and returns when the
// last of them came.
func (p *program) exactly(n int) (last time.Time) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range n {
		if len(p.got[i]) != 1 {
			p.t.Errorf("message %d came %d times", i, len(p.got[i]))
			continue
		}
		if p.got[i][0].After(last) {
			last = p.got[i][0]
		}
	}
	return last
}

// runs runs a program to its end.
func runs(t *testing.T, command []string, args ...string) {
	t.Helper()
	must(t, command[0], append(append([]string(nil), command[1:]...), args...)...)
}

// A real taskiq worker has taken 500 messages from 161 streams and is killed. Another gets them, in
// time, each once.
func TestTaskiqRecovery(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command func(*testing.T) []string
	}{
		{"1.2.2 with redis-py 7", python("taskiq_worker.py", "taskiq-redis==1.2.2", "taskiq==0.12.6", "redis==7.4.1")},
		{"1.2.4 with redis-py 8", python("taskiq_worker.py", "taskiq-redis==1.2.4", "taskiq==0.13.0", "redis==8.1.0")},
	} {
		command := tt.command(t)
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			f := startProxy(t, s.Addr())
			args := func(role, consumer string, from, count int) []string {
				return []string{role, "redis://" + f.addr + "/0", consumer, "161", "1000", fmt.Sprint(from), fmt.Sprint(count)}
			}
			hoarder := start(t, command, args("hoard", "dead", 0, 0)...)
			eventually(t, "the first worker is there", hoarder.isReady)
			runs(t, command, args("send", "-", 0, 500)...)
			eventually(t, "it has all messages", func() bool { return hoarder.count() == 500 })
			hoarder.kill()
			live := start(t, command, args("work", "live", 0, 0)...)
			eventually(t, "the second worker is there", live.isReady)
			// A message makes the newer form ask; from then on its streams are known.
			runs(t, command, args("send", "-", 500, 1)...)
			begin := time.Now()
			eventually(t, "all messages have come", func() bool { return live.count() == 501 })
			took := live.exactly(501).Sub(begin)
			t.Logf("took %v", took)
			if limit := bound(time.Second) + slack; took > limit {
				t.Errorf("took %v, more than %v", took, limit)
			}
			nothingLeft(direct(t, s), "workers", names("q", 161))
		})
	}
}

// Workers of other libraries receive through the proxy, and get what a dead one has left behind.
// Prefect, whose installation takes minutes and 258 MB, is one of them with CASES_LONG=1 only.
func TestOtherLibraries(t *testing.T) {
	for _, tt := range []struct {
		name, stream, group string
		fresh               int // how many messages are for the living: one that reclaims may do nothing else
		command             func(*testing.T) []string
		long                bool
	}{
		{"docket", "d:stream", "docket-workers", 40, python("docket_worker.py", "pydocket==0.27.0", "redis==8.1.0"), false},
		{"faststream", "f", "workers", 0, python("faststream_worker.py", "faststream[redis]==0.7.8", "redis==8.1.0"), false},
		{"moleculer-channels", "m", "workers", 40, node("moleculer_worker.js"), false},
		{"prefect", "p", "workers", 40, python("prefect_worker.py", "prefect-redis==0.3.0", "prefect==3.9.1", "redis==8.1.0"), true},
	} {
		if tt.long && os.Getenv("CASES_LONG") != "1" {
			continue
		}
		command := tt.command(t)
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const n = 40
			s := redistest.Start(t)
			f := startProxy(t, s.Addr())
			c := direct(t, s)
			args := func(role, consumer string, from, count int) []string {
				return []string{role, "redis://" + f.addr + "/0", consumer, fmt.Sprint(from), fmt.Sprint(count)}
			}
			groups(c, tt.group, []string{tt.stream})
			runs(t, command, args("send", "-", 0, n)...)
			if got := len(c.value(readCommand(tt.group, "dead", n, -1, []string{tt.stream})...).Elems[0].Elems[1].Elems); got != n {
				t.Fatalf("the dead worker got %d of %d messages", got, n)
			}
			live := start(t, command, args("work", "live", 0, 0)...)
			eventually(t, "the worker is there", live.isReady)
			runs(t, command, args("send", "-", n, tt.fresh)...)
			eventually(t, "all messages have come", func() bool { return live.count() == n+tt.fresh })
			live.exactly(n + tt.fresh)
			nothingLeft(c, tt.group, []string{tt.stream})
			t.Logf("answered here: %d claims, %d entries", f.count("local xautoclaim"), f.count("delivered"))
			if f.count("local xautoclaim") == 0 || f.count("delivered") == 0 {
				t.Error("the proxy has answered no claim")
			}
		})
	}
}
