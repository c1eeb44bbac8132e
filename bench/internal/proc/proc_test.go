package proc

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestProcessThatEndsSaysWhy(t *testing.T) {
	p, err := Start("talker", "/bin/sh", "-c", "echo no such option; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.WaitReady("127.0.0.1:1", 10*time.Second)
	if err == nil || !strings.Contains(err.Error(), "no such option") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
	p.Stop()
}

func TestStopEndsAProcess(t *testing.T) {
	p, err := Start("sleeper", "/bin/sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil || p.Pid() == 0 {
		t.Errorf("a living process: %v", p.Err())
	}
	p.Stop()
	if p.Err() == nil {
		t.Error("it still lives")
	}
}

func TestFind(t *testing.T) {
	if _, err := Find("no-such-program-at-all", t.TempDir()); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v", err)
	}
	if path, err := Find("sh"); err != nil || path == "" {
		t.Errorf("sh: %q, %v", path, err)
	}
}

func TestFreeAddr(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range 3 {
		_, _ = kept.Write([]byte(strings.Repeat("x", tailSize)))
	}
	_, _ = kept.Write([]byte("the end"))
	if got := kept.String(); len(got) != tailSize || !strings.HasSuffix(got, "xthe end") {
		t.Errorf("%d bytes kept", len(got))
	}
}
