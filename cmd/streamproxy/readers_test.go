package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// unread is the end for writing of a pipe that nobody reads.
func unread(t *testing.T) *os.File {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = read.Close()
	t.Cleanup(func() { _ = write.Close() })
	return write
}

// The proxy outlives whoever reads its log: it serves, and its drain is clean.
func TestAProxyWhoseLogNobodyReads(t *testing.T) {
	t.Parallel()
	r := startProxyAs(t, unread(t), []string{"streamproxy"}, redistest.Start(t).URL(), "--drain-idle=1ms")
	r.signal(syscall.SIGHUP) // of which a line tells
	if got, err := r.client().Do("PING"); err != nil || got != "+PONG\r\n" {
		t.Errorf("PING: %q, %v", got, err)
	}
	r.signal(syscall.SIGTERM)
	r.exit(exitOK)
}

// Nor does it change how a faulty configuration ends.
func TestAFaultThatNobodyReads(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("streamproxy", "--max-lanes=none")
	cmd.Stderr = unread(t)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != exitConfig {
		t.Errorf("%v, want exit code %d", cmd.ProcessState, exitConfig)
	}
}

// What only shows something ends with its reader, as other tools do: by the signal, and
// without a word.
func TestToolsEndWithTheirReader(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := startProxy(t, server.URL(), "--reclaim=off")
	for _, tt := range []struct{ args, until string }{
		{"version", ""},
		{"completion bash", ""},
		{"top --interval=100ms --telemetry-listen=" + strings.TrimPrefix(r.pages, "http://"), "batches"},
		{"demo --duration=1s", " clients direct"},
		{"demo --duration=1s --upstream=" + server.URL(), "Now a worker over 161 streams"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("streamproxy", strings.Fields(tt.args)...)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			headOf(t, cmd, tt.until)
			status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != syscall.SIGPIPE {
				t.Errorf("%v, want the end by SIGPIPE", cmd.ProcessState)
			}
			if complaints.Len() > 0 {
				t.Errorf("it says %s", complaints.String())
			}
			if strings.Contains(tt.args, "--upstream") {
				if left := server.Do("KEYS", "streamproxy:demo:*"); left != "*0\r\n" {
					t.Errorf("left behind: %.200q", left)
				}
			}
		})
	}
}

// headOf runs cmd and reads its output up to a line with a word in it, or nothing.
func headOf(t *testing.T, cmd *exec.Cmd, word string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if word == "" {
		_ = read.Close()
	}
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if word != "" {
		var seen strings.Builder
		lines := bufio.NewScanner(io.TeeReader(read, &seen))
		for lines.Scan() && !strings.Contains(lines.Text(), word) {
		}
		if !strings.Contains(seen.String(), word) {
			t.Errorf("%q was not shown:\n%s", word, seen.String())
		}
		_ = read.Close()
	}
	_ = cmd.Wait()
}
