package streamlab

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// patience bounds one exchange with a server.
const patience = 60 * time.Second

// client is a connection that sends commands and reads their replies.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

func dial(addr string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// do sends one command and returns its reply, which must be a line or a bulk string.
func (c *client) do(args ...string) (string, error) {
	if err := c.send(resp.AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	return c.reply()
}

func (c *client) send(b []byte) error {
	_ = c.conn.SetDeadline(time.Now().Add(patience))
	_, err := c.conn.Write(b)
	return err
}

func (c *client) reply() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '-':
		return "", fmt.Errorf("server said %s", text)
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return "", err
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, body); err != nil {
			return "", err
		}
		return string(body[:n]), nil
	case '+', ':':
		return text, nil
	}
	return "", fmt.Errorf("reply %q, want a line or a bulk string", line)
}

// publisher sends messages and remembers when.
type publisher struct {
	*client
	sent map[string]time.Duration // by payload
}

func newPublisher(addr string) (*publisher, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	return &publisher{c, map[string]time.Duration{}}, nil
}

// publish sends one message and waits until the server has it.
func (p *publisher) publish(stream, payload string) error {
	p.sent[payload] = now()
	_, err := p.do("XADD", stream, "*", "data", payload)
	return err
}

// flood sends n messages to one stream in one go.
func (p *publisher) flood(stream string, n int) error {
	var all []byte
	begin := now() // to render the commands costs a millisecond or two, to the burst's disadvantage
	for i := range n {
		payload := fmt.Sprint("burst-", i)
		all = resp.AppendCommand(all, "XADD", stream, "*", "data", payload)
		p.sent[payload] = begin
	}
	if err := p.send(all); err != nil {
		return err
	}
	for range n {
		if _, err := p.reply(); err != nil {
			return err
		}
	}
	return nil
}
