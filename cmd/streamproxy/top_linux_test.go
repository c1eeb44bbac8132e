package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"streamproxy/internal/redistest"
)

// openPair opens a terminal: its end for a person, and the one for a process.
func openPair(t *testing.T, columns, rows int) (person, process *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	raw, err := person.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	err = raw.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			t.Error(err)
		}
		if err := unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
			t.Error(err)
		}
	})
	if err != nil || t.Failed() {
		t.Fatal(err)
	}
	process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, process
}

// seen reads what a terminal is told until it contains want, and returns all of it.
func seen(t *testing.T, person *os.File, want string) string {
	t.Helper()
	var all strings.Builder
	buf := make([]byte, 4096)
	_ = person.SetReadDeadline(time.Now().Add(patience))
	for !strings.Contains(all.String(), want) {
		n, err := person.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			t.Fatalf("waited in vain for %q: %v; seen %q", want, err, all.String())
		}
	}
	return all.String()
}

// A person sees views that are drawn over each other, no wider than the terminal, until a key ends
// them; then the terminal is as it was.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	admin := "127.0.0.1:" + strconv.Itoa(redistest.FreePort(t))
	r := startProxy(t, redistest.Start(t).URL(), "--admin-listen="+admin)
	for name, tt := range map[string]struct {
		key     string
		environ []string
		colour  bool
	}{
		"q":      {"q", nil, true},
		"Ctrl-C": {"\x03", []string{"NO_COLOR=1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			person, process := openPair(t, 40, 30)
			cmd := exec.Command("streamproxy", "top", "--interval=100ms", "--admin-listen="+admin,
				"--telemetry-listen="+strings.TrimPrefix(r.pages, "http://"))
			cmd.Env = append(os.Environ(), tt.environ...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			first := seen(t, person, "batches")
			if !strings.HasPrefix(first, "\x1b[?1049h\x1b[?25l\x1b[H") {
				t.Errorf("it begins with %q", first[:min(len(first), 30)])
			}
			second := seen(t, person, "\x1b[H") + seen(t, person, "q ends")
			for line := range strings.SplitSeq(strings.ReplaceAll(second, "\x1b[H", "\r\n"), "\r\n") {
				if text := visible(line); len(text) > 40 {
					t.Errorf("a line is too wide: %q", text)
				}
			}
			if got := strings.Contains(first+second, "\x1b[2m"); got != tt.colour {
				t.Errorf("colours: %v", got)
			}
			if _, err := person.WriteString(tt.key); err != nil {
				t.Fatal(err)
			}
			seen(t, person, "\x1b[?25h\x1b[?1049l")
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			raw, err := unix.IoctlGetTermios(int(process.Fd()), unix.TCGETS)
			if err != nil || raw.Lflag&unix.ICANON == 0 || raw.Lflag&unix.ISIG == 0 {
				t.Errorf("the terminal has been left raw: %+v, %v", raw, err)
			}
			_ = process.Close()
		})
	}
}

// visible is what of a line is seen.
func visible(line string) string {
	var out strings.Builder
	for {
		text, code, more := strings.Cut(line, "\x1b[")
		out.WriteString(text)
		if !more {
			return out.String()
		}
		line = strings.TrimLeft(code, "?0123456789")[1:]
	}
}
