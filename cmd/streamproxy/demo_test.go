package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"streamproxy/internal/redistest"
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
	timer := time.AfterFunc(6*patience, func() { _ = cmd.Process.Kill() })
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

// Behind the link the server's certificate is still that of its own name.
func TestDemoOverTLS(t *testing.T) {
	t.Parallel()
	authority := redistest.NewAuthority(t)
	server := redistest.Start(t, redistest.WithTLSIdentity(t, authority, authority.Issue(t, "localhost")), redistest.WithArgs("--tls-auth-clients", "no"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "streamproxy", "demo", "--duration=1s", "--upstream=rediss://"+strings.Replace(server.TLSAddr(), "127.0.0.1", "localhost", 1))
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+authority.Write(t, t.TempDir()))
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "\nSummary of ") {
		t.Errorf("%v\n%s", err, text)
	}
}
