package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// thinkTime is the mean of a client's pauses. Pauses are exponentially distributed,
// as arrivals from many independent users are, so that nothing but chance makes
// clients send together.
const thinkTime = 10 * time.Millisecond

// patience bounds one command. It is far above the round trip, so that it ends only
// what has failed.
const patience = 10 * time.Second

// keySeconds is when keys expire that a killed demo leaves behind.
const keySeconds = "600"

// client is one connection that sends one command at a time and knows what must come
// back: it owns its key.
type client struct {
	conn  net.Conn
	in    *bufio.Reader
	meter *meter
	pause *rand.Rand

	set, get, del       []byte // commands
	stored, got, absent string // and their replies
}

// newClient prepares the client of a number. Clients of the same number on both sides
// pause alike.
func newClient(conn net.Conn, m *meter, key string, number int) *client {
	value := fmt.Sprintf("%-64s", key)
	return &client{
		conn: conn, in: bufio.NewReader(conn), meter: m,
		pause:  rand.New(rand.NewPCG(1, uint64(number))),
		set:    resp.AppendCommand(nil, "SET", key, value, "EX", keySeconds),
		get:    resp.AppendCommand(nil, "GET", key),
		del:    resp.AppendCommand(nil, "DEL", key),
		stored: "+OK\r\n",
		got:    fmt.Sprintf("$%d\r\n%s\r\n", len(value), value),
		absent: ":1\r\n",
	}
}

// run sends until ctx ends; the command under way is finished. One in four writes.
func (c *client) run(ctx context.Context) error {
	for i := 0; ; i++ {
		if !c.think(ctx) {
			return nil
		}
		cmd, want := c.get, c.got
		if i%4 == 0 {
			cmd, want = c.set, c.stored
		}
		began := time.Now()
		if err := c.do(cmd, want); err != nil {
			return err
		}
		c.meter.answered(time.Since(began))
	}
}

// think pauses; false means that ctx has ended.
func (c *client) think(ctx context.Context) bool {
	timer := time.NewTimer(time.Duration(c.pause.ExpFloat64() * float64(thinkTime)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// do sends a command and fails unless the reply is the one wanted.
func (c *client) do(cmd []byte, want string) error {
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	c.meter.asked.Add(1)
	if _, err := c.conn.Write(cmd); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	rest, ok := strings.CutPrefix(want, line)
	if !ok {
		return fmt.Errorf("demo: reply %.100q instead of %.100q", line, want)
	}
	body := make([]byte, len(rest))
	if _, err := io.ReadFull(c.in, body); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if string(body) != rest {
		return fmt.Errorf("demo: reply %.100q instead of %.100q", line+string(body), want)
	}
	return nil
}

// leave deletes the client's key and closes its connection.
func (c *client) leave() error {
	err := c.do(c.del, c.absent)
	_ = c.conn.Close() // everything was answered
	return err
}
