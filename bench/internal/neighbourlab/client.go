package neighbourlab

import (
	"fmt"
	"net"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// patience is how long a neighbour waits for a reply before it calls that an error.
const patience = 10 * time.Second

// client is a connection that sends commands and reads their replies.
type client struct {
	conn    net.Conn
	scanner resp.ReplyScanner
	buffer  [16 << 10]byte
	rest    []byte // of buffer, behind the last reply
	reply   []byte
}

func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

func dial(addr string) (*client, error) {
	conn, err := net.DialTimeout(network(addr), addr, patience)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// ask sends a command and expects a reply that begins as wanted.
func (c *client) ask(want string, args ...string) error {
	c.conn.SetDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	if !strings.HasPrefix(string(c.reply), want) {
		return fmt.Errorf("%s was answered %.60q", args[0], c.reply)
	}
	return nil
}

// read reads one reply.
func (c *client) read() error {
	for c.reply = c.reply[:0]; ; {
		n, done, err := c.scanner.Scan(c.rest)
		if err != nil {
			return err
		}
		c.reply, c.rest = append(c.reply, c.rest[:n]...), c.rest[n:]
		if done {
			return nil
		}
		if n, err = c.conn.Read(c.buffer[:]); err != nil {
			return err
		}
		c.rest = c.buffer[:n]
	}
}

// load sends a pipeline and reads its replies, none of which may be an error.
func (c *client) load(pipeline []byte) error {
	commands, rest, err := count(pipeline)
	if err != nil || rest > 0 {
		return fmt.Errorf("a pipeline with %d bytes of no command: %w", rest, err)
	}
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	written := make(chan error, 1)
	go func() { // ends with the write, whose bytes the server takes as we read
		_, err := c.conn.Write(pipeline)
		written <- err
	}()
	for range commands {
		if err := c.read(); err != nil {
			return err
		}
		if c.reply[0] == '-' {
			return fmt.Errorf("prepare: %.80q", c.reply)
		}
	}
	return <-written
}

// count returns how many commands a pipeline has, and how many bytes behind them are part of one
// that has no end.
func count(pipeline []byte) (commands, rest int, err error) {
	scanner := resp.NewCommandScanner(resp.DefaultLimits())
	for len(pipeline) > 0 {
		n, done, err := scanner.Scan(pipeline)
		if err != nil {
			return commands, len(pipeline), err
		}
		if !done {
			return commands, len(pipeline), nil
		}
		commands, pipeline = commands+1, pipeline[n:]
	}
	return commands, 0, nil
}
