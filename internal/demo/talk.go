package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"streamproxy/internal/resp"
)

// talk is a connection on which commands are sent and answered in turn.
type talk struct {
	conn net.Conn
	scan resp.ReplyScanner
	buf  []byte
}

func newTalk(conn net.Conn) *talk { return &talk{conn: conn} }

// do sends one command and returns its reply, which is good until the next. A reply
// that is an error is one.
func (t *talk) do(args ...string) (resp.Value, error) {
	return t.all(resp.AppendCommand(nil, args...), 1)
}

// all sends n commands in one write and returns the last reply.
func (t *talk) all(commands []byte, n int) (last resp.Value, err error) {
	_ = t.conn.SetDeadline(time.Now().Add(patience))
	if _, err := t.conn.Write(commands); err != nil {
		return last, fmt.Errorf("demo: %w", err)
	}
	t.buf = t.buf[:0]
	begin := 0
	for range n {
		end, err := t.receive(begin)
		if err != nil {
			return last, fmt.Errorf("demo: %w", err)
		}
		if last, _, err = resp.Parse(t.buf[begin:end]); err != nil {
			return last, fmt.Errorf("demo: %w", err)
		}
		if last.Kind == '-' {
			return last, fmt.Errorf("demo: %.40q was answered with %q", commands, last.Text)
		}
		begin = end
	}
	return last, nil
}

// receive reads until the reply that begins at a position is whole and returns its end.
func (t *talk) receive(begin int) (end int, err error) {
	pos := begin
	for {
		n, done, err := t.scan.Scan(t.buf[pos:])
		if err != nil {
			return 0, err
		}
		if pos += n; done {
			return pos, nil
		}
		chunk := make([]byte, 16<<10)
		m, err := t.conn.Read(chunk)
		t.buf = append(t.buf, chunk[:m]...)
		if m == 0 && err != nil {
			return 0, err
		}
	}
}

// within ends whatever the talk waits for when ctx ends. Call the function it returns
// when the talk is over; the connection is closed then.
func (t *talk) within(ctx context.Context) (over func()) {
	stop := context.AfterFunc(ctx, func() { _ = t.conn.Close() })
	return func() {
		stop()
		_ = t.conn.Close() // if ctx has not done it
	}
}

// ended tells the end of a connection that was closed with its context from a fault.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
