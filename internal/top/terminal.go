package top

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Terminal is one that is read key by key.
type Terminal struct {
	file    *os.File
	before  *term.State
	enough  context.CancelFunc
	reading sync.WaitGroup
}

// OpenTerminal takes the process's terminal over until Close. The context returned ends
// with ctx, at the keys q and Ctrl-C, and when the terminal has gone.
func OpenTerminal(ctx context.Context) (*Terminal, context.Context, error) {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	t := &Terminal{file: file}
	err = t.do(func(fd int) (err error) {
		t.before, err = term.MakeRaw(fd)
		return err
	})
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	_, _ = io.WriteString(file, enter) // if it has gone, the next write says so
	ctx, t.enough = context.WithCancel(ctx)
	t.reading.Go(t.awaitEnough)
	return t, ctx, nil
}

// do runs f with the descriptor, which stays in the hands of Go's poller.
func (t *Terminal) do(f func(fd int) error) error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// awaitEnough reads keys.
func (t *Terminal) awaitEnough() {
	defer t.enough()
	key := make([]byte, 1)
	for {
		n, err := t.file.Read(key)
		if err != nil || n == 1 && (key[0] == 'q' || key[0] == 'Q' || key[0] == 3) {
			return
		}
	}
}

// Write implements io.Writer.
func (t *Terminal) Write(b []byte) (int, error) { return t.file.Write(b) }

// size is the number of columns and lines.
func (t *Terminal) size() (width, height int) {
	width, height = 80, 24
	_ = t.do(func(fd int) error {
		w, h, err := term.GetSize(fd)
		if err == nil && w > 0 && h > 0 {
			width, height = w, h
		}
		return err
	})
	return width, height
}

// Close gives the terminal back as it was.
func (t *Terminal) Close() {
	_ = t.file.SetReadDeadline(time.Unix(1, 0))
	t.reading.Wait()
	_, _ = io.WriteString(t.file, leave)
	_ = t.do(func(fd int) error { return term.Restore(fd, t.before) })
	_ = t.file.Close()
}
