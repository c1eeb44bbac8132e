package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends the demo with its summary and without an error.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("streamproxy", "demo", "--duration=10m")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the demo ended before it had measured: %v", err)
		}
		if strings.HasPrefix(strings.TrimSpace(line), "1s |") {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the demo ended with %v", err)
	}
	if !strings.Contains(string(rest), "\nSummary of ") {
		t.Errorf("no summary in\n%s", rest)
	}
}
