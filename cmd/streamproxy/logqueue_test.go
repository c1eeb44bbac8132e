package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/config"
	"streamproxy/internal/redistest"
	"streamproxy/internal/telemetry"
)

// stuck is a pipe that is full until it is read.
type stuck struct {
	free chan struct{}
	text bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.free
	return s.text.Write(b)
}

func TestALogThatIsNotReadHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := &stuck{free: make(chan struct{})}
		c := config.Default(config.Machine{})
		log, end := newLogger(pipe, c, telemetry.New(build(), labels()), new(slog.LevelVar))
		log.Info("first")
		synctest.Wait() // the goroutine holds it
		for i := range logBacklog + 7 {
			log.Info("line", "n", i)
		}
		began := time.Now()
		end()
		if took := time.Since(began); took != logPatience {
			t.Errorf("the end took %v, want %v", took, logPatience)
		}
		close(pipe.free)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(pipe.text.String()), "\n")
		if n := len(lines); n != logBacklog+2 {
			t.Errorf("%d lines, want those that waited and one about the rest", n)
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, `"lines":7`) || !strings.Contains(lines[len(lines)-2], fmt.Sprintf(`"n":%d`, logBacklog-1)) {
			t.Errorf("it ends with %s", last)
		}
	})
}

// broken is a log some of whose writes, counted from 1, fail.
type broken struct {
	fail   []int
	writes int
	text   bytes.Buffer
}

func (b *broken) Write(p []byte) (int, error) {
	if b.writes++; slices.Contains(b.fail, b.writes) {
		return 0, syscall.EPIPE
	}
	return b.text.Write(p)
}

// Lines that cannot be written are counted until a line can say so.
func TestALogThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := &broken{fail: []int{2, 3, 5}} // two lines, and the line about them
		log, end := newLogger(pipe, config.Default(config.Machine{}), telemetry.New(build(), labels()), new(slog.LevelVar))
		for _, word := range []string{"one", "two", "three", "four", "five", "six"} {
			log.Info("line", "word", word)
			synctest.Wait()
		}
		end()
		lines := strings.Split(strings.TrimSpace(pipe.text.String()), "\n")
		want := []string{`"one"`, `"four"`, `"five"`, `"lines":2`, `"six"`}
		if len(lines) != len(want) {
			t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), pipe.text.String())
		}
		for i, word := range want {
			if !strings.Contains(lines[i], word) {
				t.Errorf("line %d has no %s: %s", i, word, lines[i])
			}
		}
	})
}

func TestTheLastLinesAreWritten(t *testing.T) {
	var text bytes.Buffer
	log, end := newLogger(&text, config.Default(config.Machine{}), telemetry.New(build(), labels()), new(slog.LevelVar))
	for range 100 {
		log.Info("line")
	}
	end()
	if n := strings.Count(text.String(), "\n"); n != 100 {
		t.Errorf("%d lines, want 100", n)
	}
}

// TestAFullPipeKeepsNobodyFromEnding stops a process whose standard error is full.
func TestAFullPipeKeepsNobodyFromEnding(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	fill(t, write)
	server := redistest.Start(t)
	r := startProxyAs(t, write, []string{"streamproxy"}, "redis://"+server.Addr(), "--log-level=debug", "--drain-idle=1ms")
	_ = write.Close()
	if got, err := r.client().Do("PING"); err != nil || got != "+PONG\r\n" {
		t.Errorf("PING: %q, %v", got, err)
	}
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
}

// fill writes to a pipe until it is full, and leaves it blocking for others.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	if err := pipe.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for block := 4096; block > 0; {
		if _, err := io.WriteString(pipe, strings.Repeat("x", block)); err != nil {
			block /= 4096
			_ = pipe.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		}
	}
}
