package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout bounds each write and each reply of a Client.
const DefaultTimeout = 10 * time.Second

// Client is a raw RESP client. It neither interprets nor reorders anything:
// pushes are replies to it like any other. Not safe for concurrent use, except
// that one goroutine may send while another reads.
type Client struct {
	// Conn is the connection; use it to half-close, reset or set options.
	Conn net.Conn
	// Timeout bounds each write and each reply; 0 waits without end.
	Timeout time.Duration

	r *bufio.Reader
}

// Dial connects to addr: host:port, or a socket's path if it begins with a slash.
func Dial(addr string) (*Client, error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, addr, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
}

// NewClient speaks over a connection that is there already.
func NewClient(conn net.Conn) *Client {
	return &Client{Conn: conn, Timeout: DefaultTimeout, r: bufio.NewReader(conn)}
}

// Close closes the connection.
func (c *Client) Close() error { return c.Conn.Close() }

// Send writes raw bytes in one write.
func (c *Client) Send(raw string) error {
	if err := c.Conn.SetWriteDeadline(c.deadline()); err != nil {
		return err
	}
	_, err := io.WriteString(c.Conn, raw)
	return err
}

// SendCommand writes one command as multibulk, in one write.
func (c *Client) SendCommand(args ...string) error { return c.Send(Command(args...)) }

// Do sends one command and reads one reply.
func (c *Client) Do(args ...string) (string, error) {
	if err := c.SendCommand(args...); err != nil {
		return "", err
	}
	return c.ReadReply()
}

// ReadReply reads one whole reply of RESP2 or RESP3 and returns its bytes. What
// was read before an error is returned with it.
func (c *Client) ReadReply() (string, error) {
	if err := c.Conn.SetReadDeadline(c.deadline()); err != nil {
		return "", err
	}
	var raw strings.Builder
	err := c.readValue(&raw)
	return raw.String(), err
}

// Buffered is how many bytes behind the last reply were read already.
func (c *Client) Buffered() int { return c.r.Buffered() }

func (c *Client) deadline() time.Time {
	if c.Timeout == 0 {
		return time.Time{}
	}
	return time.Now().Add(c.Timeout)
}

// readValue copies one value and what is nested in it to raw.
func (c *Client) readValue(raw *strings.Builder) error {
	line, err := c.r.ReadString('\n')
	raw.WriteString(line)
	if err != nil {
		return err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return fmt.Errorf("redistest: malformed reply line %.40q", line)
	}
	n := 0
	if strings.IndexByte("$!=*~>%|", line[0]) >= 0 {
		if n, err = strconv.Atoi(line[1 : len(line)-2]); err != nil {
			return fmt.Errorf("redistest: malformed reply line %.40q", line)
		}
	}
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return nil
	case '$', '!', '=':
		if n < 0 {
			return nil
		}
		_, err = io.CopyN(raw, c.r, int64(n)+2)
		return err
	case '*', '~', '>':
	case '%':
		n *= 2
	case '|': // an attribute precedes the value it describes
		n = n*2 + 1
	default:
		return fmt.Errorf("redistest: unknown reply type %.40q", line)
	}
	for range max(n, 0) {
		if err := c.readValue(raw); err != nil {
			return err
		}
	}
	return nil
}

// Command renders a command as multibulk.
func Command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}
