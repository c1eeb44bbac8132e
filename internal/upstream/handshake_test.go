package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// fake accepts connections and hands each to serve, in turn.
func fake(t *testing.T, serve func(c net.Conn)) *Dialer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return &Dialer{
		Target:  Target{Network: "tcp", Addr: l.Addr().String()},
		Timeout: 5 * time.Second,
		Name:    func(kind string) string { return ConnName("test", kind) },
	}
}

// readUntilPing swallows a request up to its last command.
func readUntilPing(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "PING\r\n" {
			return
		}
	}
}

// replies serves one canned answer, then waits for the client to leave.
func replies(raw string) func(net.Conn) {
	return func(c net.Conn) {
		readUntilPing(c)
		_, _ = io.WriteString(c, raw)
		_, _ = io.Copy(io.Discard, c)
	}
}

func TestHandshakeRequest(t *testing.T) {
	secret := "s3cret"
	tests := []struct {
		name     string
		key      Key
		user     string
		password *string
		conn     string
		want     string
	}{
		{"plain", Key{Proto: 2}, "", nil, "", "CLIENT ID|PING"},
		{"named", Key{Proto: 2}, "", nil, "n", "CLIENT SETNAME n|CLIENT ID|PING"},
		{"database", Key{Proto: 2, DB: 5}, "", nil, "", "SELECT 5|CLIENT ID|PING"},
		{"password", Key{Proto: 2}, "", &secret, "", "AUTH s3cret|CLIENT ID|PING"},
		{"user", Key{Proto: 2}, "u", &secret, "", "AUTH u s3cret|CLIENT ID|PING"},
		{"proven without a name", Key{Proto: 2, User: User{Proof: "x"}}, "", &secret, "", "AUTH  s3cret|CLIENT ID|PING"},
		{"resp3 proven without a name", Key{Proto: 3, User: User{Proof: "x"}}, "", &secret, "", "HELLO 3 AUTH  s3cret|CLIENT ID|PING"},
		{"resp3", Key{Proto: 3}, "", nil, "", "HELLO 3|CLIENT ID|PING"},
		{"resp3 password", Key{Proto: 3}, "", &secret, "", "HELLO 3 AUTH default s3cret|CLIENT ID|PING"},
		{"resp3 all", Key{Proto: 3, DB: 1}, "u", &secret, "n", "HELLO 3 AUTH u s3cret|SELECT 1|CLIENT SETNAME n|CLIENT ID|PING"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHandshake(tt.key, tt.user, tt.password, tt.conn)
			if got := readable(t, string(h.request)); got != tt.want {
				t.Errorf("sends %s, want %s", got, tt.want)
			}
		})
	}
}

// readable turns multibulk commands without spaces inside into words.
func readable(t *testing.T, raw string) string {
	t.Helper()
	var commands []string
	for command := range strings.SplitSeq(raw, "*") {
		lines := strings.Split(strings.TrimSuffix(command, "\r\n"), "\r\n")
		var words []string
		for i := 2; i < len(lines); i += 2 {
			words = append(words, lines[i])
		}
		if words != nil {
			commands = append(commands, strings.Join(words, " "))
		}
	}
	return strings.Join(commands, "|")
}

func TestGreeting(t *testing.T) {
	const hello = "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:7\r\n"
	tests := []struct {
		name  string
		key   Key
		raw   string
		want  Greeting
		after string
	}{
		{"plain", Key{Proto: 2}, "+OK\r\n:7\r\n+PONG\r\n", Greeting{ID: 7}, ""},
		{"bytes behind the greeting stay unread", Key{Proto: 2}, "+OK\r\n:7\r\n+PONG\r\n+MORE\r\n", Greeting{ID: 7}, "+MORE\r\n"},
		{"setname and id refused", Key{Proto: 2}, "-NOPERM no\r\n-ERR unknown command\r\n+PONG\r\n", Greeting{}, ""},
		{"select", Key{Proto: 2, DB: 1}, "+OK\r\n+OK\r\n:7\r\n+PONG\r\n", Greeting{ID: 7, Select: []byte("+OK\r\n")}, ""},
		{"resp3", Key{Proto: 3}, hello + "+OK\r\n:7\r\n+PONG\r\n", Greeting{ID: 7, Hello: []byte(hello)}, ""},
		{"push in between", Key{Proto: 3}, hello + ">2\r\n+a\r\n+b\r\n+OK\r\n:7\r\n>1\r\n+c\r\n+PONG\r\n", Greeting{ID: 7, Hello: []byte(hello)}, ""},
		{"push behind", Key{Proto: 3}, hello + "+OK\r\n:7\r\n+PONG\r\n>1\r\n+c\r\n", Greeting{ID: 7, Hello: []byte(hello)}, ">1\r\n+c\r\n"},
		{"loading", Key{Proto: 2}, "+OK\r\n:7\r\n-LOADING wait\r\n", Greeting{ID: 7, NotReady: "LOADING wait"}, ""},
		{"masterdown", Key{Proto: 2}, "+OK\r\n:7\r\n-MASTERDOWN x\r\n", Greeting{ID: 7, NotReady: "MASTERDOWN x"}, ""},
		{"busy", Key{Proto: 2}, "+OK\r\n-BUSY x\r\n-BUSY x\r\n", Greeting{}, ""},
		{"no password given", Key{Proto: 2}, "-NOAUTH x\r\n-NOAUTH x\r\n-NOAUTH x\r\n", Greeting{}, ""},
	}
	for _, tt := range tests {
		for _, slow := range []bool{false, true} {
			name := tt.name
			if slow {
				name += ", one byte a write"
			}
			t.Run(name, func(t *testing.T) {
				d := fake(t, func(c net.Conn) {
					if slow {
						readUntilPing(c)
						for i := range len(tt.raw) {
							_, _ = io.WriteString(c, tt.raw[i:i+1])
						}
						_, _ = io.Copy(io.Discard, c)
						return
					}
					replies(tt.raw)(c)
				})
				conn, g, err := d.Dial(t.Context(), tt.key, "lane")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if g.ID != tt.want.ID || g.NotReady != tt.want.NotReady ||
					string(g.Hello) != string(tt.want.Hello) || string(g.Select) != string(tt.want.Select) {
					t.Errorf("greeting %+v, want %+v", g, tt.want)
				}
				rest := make([]byte, len(tt.after))
				if _, err := io.ReadFull(conn, rest); err != nil || string(rest) != tt.after {
					t.Errorf("read %q, %v behind the greeting, want %q", rest, err, tt.after)
				}
			})
		}
	}
}

func TestGreetingRefused(t *testing.T) {
	secret := func() (string, error) { return "p", nil }
	tests := []struct {
		name        string
		key         Key
		password    func() (string, error)
		raw         string
		step, reply string
		unavailable bool
	}{
		{"auth", Key{Proto: 2}, secret, "-WRONGPASS x\r\n-NOAUTH a\r\n-NOAUTH a\r\n-NOAUTH a\r\n", "AUTH", "-WRONGPASS x\r\n", false},
		{"hello", Key{Proto: 3}, nil, "-NOPROTO x\r\n+OK\r\n:1\r\n+PONG\r\n", "HELLO", "-NOPROTO x\r\n", false},
		{"hello unknown", Key{Proto: 3}, nil, "-ERR unknown command `HELLO`\r\n+OK\r\n:1\r\n+PONG\r\n", "HELLO", "-ERR unknown command `HELLO`\r\n", false},
		{"select", Key{Proto: 2, DB: 99}, nil, "-ERR DB index is out of range\r\n+OK\r\n:1\r\n+PONG\r\n", "SELECT", "-ERR DB index is out of range\r\n", false},
		{"maxclients", Key{Proto: 2}, nil, "-ERR max number of clients reached\r\n", "CLIENT SETNAME", "-ERR max number of clients reached\r\n", true},
		{"maxclients and auth", Key{Proto: 2}, secret, "-ERR max number of clients reached\r\n", "AUTH", "-ERR max number of clients reached\r\n", true},
		{"protected mode", Key{Proto: 2}, nil, "-DENIED x\r\n", "CLIENT SETNAME", "-DENIED x\r\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := fake(t, func(c net.Conn) {
				readUntilPing(c)
				_, _ = io.WriteString(c, tt.raw)
			})
			d.Target.Password = tt.password
			_, _, err := d.Dial(t.Context(), tt.key, "lane")
			var he *HandshakeError
			if !errors.As(err, &he) {
				t.Fatalf("error %v", err)
			}
			if he.Step != tt.step || string(he.Reply) != tt.reply || Unavailable(err) != tt.unavailable {
				t.Errorf("%s refused with %q, unavailable %v", he.Step, he.Reply, Unavailable(err))
			}
		})
	}
}

func TestGreetingBroken(t *testing.T) {
	tests := []struct{ name, raw string }{
		{"closed at once", ""},
		{"closed in mid-reply", "+OK\r\n:7"},
		{"closed before PING", "+OK\r\n:7\r\n"},
		{"not Redis", "HTTP/1.1 400 Bad Request\r\n\r\n"},
		{"wrong answer to PING", "+OK\r\n:7\r\n:8\r\n"},
		{"endless", "$9000000000\r\n"},
		{"a large reply", "$70000\r\n"},
		{"an endless line", "+" + strings.Repeat("a", maxGreeting)},
		{"endlessly deep", strings.Repeat("*1\r\n", maxGreeting/4)},
		{"endless pushes", strings.Repeat(">1\r\n+a\r\n", maxGreeting/4) + "+OK\r\n:7\r\n+PONG\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := fake(t, func(c net.Conn) {
				readUntilPing(c)
				_, _ = io.WriteString(c, tt.raw)
			})
			conn, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane")
			if err == nil {
				_ = conn.Close()
				t.Fatal("no error")
			}
			if !Unavailable(err) {
				t.Errorf("%v does not count as unavailable", err)
			}
		})
	}
}

func TestHandshakeTimeout(t *testing.T) {
	silent := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	t.Run("own", func(t *testing.T) {
		d := fake(t, silent)
		d.Timeout = 20 * time.Millisecond
		if _, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("caller's", func(t *testing.T) {
		d := fake(t, silent)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		if _, _, err := d.Dial(ctx, Key{Proto: 2}, "lane"); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("no deadline stays", func(t *testing.T) {
		d := fake(t, replies("+OK\r\n:7\r\n+PONG\r\n"))
		var last deadlineConn
		d.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			last.Conn = c
			return &last, err
		}
		conn, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane")
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if !last.deadline.IsZero() {
			t.Errorf("left with deadline %v", last.deadline)
		}
	})
}

// deadlineConn notes the last deadline it was given.
type deadlineConn struct {
	net.Conn
	deadline time.Time
}

func (c *deadlineConn) SetDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetDeadline(t)
}
