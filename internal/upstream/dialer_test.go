package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

func dialerFor(t *testing.T, url string) *Dialer {
	t.Helper()
	target, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return &Dialer{
		Target:      target,
		Timeout:     5 * time.Second,
		UserTimeout: 30 * time.Second,
		Name:        func(kind string) string { return ConnName("a host", kind) },
	}
}

func mustDial(t *testing.T, d *Dialer, k Key) (*redistest.Client, Greeting) {
	t.Helper()
	conn, g, err := d.Dial(t.Context(), k, "lane")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return redistest.NewClient(conn), g
}

func expect(t *testing.T, c *redistest.Client, want string, args ...string) {
	t.Helper()
	got, err := c.Do(args...)
	if err != nil || got != want {
		t.Errorf("%s: %q, %v; want %q", strings.Join(args, " "), got, err, want)
	}
}

func TestDialRealServer(t *testing.T) {
	s := redistest.Start(t)
	null := map[int]string{2: "$-1\r\n", 3: "_\r\n"}
	for _, url := range []string{s.URL(), "unix://" + s.Socket()} {
		for _, k := range []Key{{Proto: 2}, {Proto: 3}, {Proto: 2, DB: 3}, {Proto: 3, DB: 15}} {
			c, g := mustDial(t, dialerFor(t, url), k)
			expect(t, c, null[k.Proto], "GET", "missing")
			info, err := c.Do("CLIENT", "INFO")
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{
				fmt.Sprintf("id=%d ", g.ID), fmt.Sprintf(" db=%d ", k.DB), " name=streamproxy:a_host:lane ",
			} {
				if !strings.Contains(info, part) {
					t.Errorf("%s %+v: %q lacks %q", url, k, info, part)
				}
			}
			if g.NotReady != "" || (k.Proto == 3) != (g.Hello != nil) || (k.DB != 0) != (g.Select != nil) {
				t.Errorf("greeting %+v", g)
			}
		}
	}
}

// The whole greeting is one write, or a connection would cost several round trips.
func TestDialIsOneRoundTrip(t *testing.T) {
	s := redistest.Start(t, redistest.WithPassword("p"))
	d := dialerFor(t, s.URL())
	var writes atomic.Int32
	d.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return countingConn{c, &writes}, err
	}
	mustDial(t, d, Key{DB: 2, Proto: 3})
	if writes.Load() != 1 {
		t.Errorf("%d writes", writes.Load())
	}
}

type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func TestDialSelectOutOfRange(t *testing.T) {
	s := redistest.Start(t)
	_, _, err := dialerFor(t, s.URL()).Dial(t.Context(), Key{Proto: 2, DB: 16}, "lane")
	var he *HandshakeError
	if !errors.As(err, &he) || he.Step != "SELECT" || string(he.Reply) != "-ERR DB index is out of range\r\n" {
		t.Errorf("error %v", err)
	}
}

func TestDialMaxClients(t *testing.T) {
	s := redistest.Start(t, redistest.WithArgs("--maxclients", "1"))
	hold, _ := mustDial(t, dialerFor(t, s.URL()), Key{Proto: 2})
	for range 20 {
		if _, _, err := dialerFor(t, s.URL()).Dial(t.Context(), Key{Proto: 2}, "lane"); !Unavailable(err) {
			t.Errorf("error %v", err)
		}
	}
	expect(t, hold, "+PONG\r\n", "PING")
}

func TestDialUsers(t *testing.T) {
	s := redistest.Start(t)
	s.Do("ACL", "SETUSER", "alice", "on", ">wonder", "+@all", "~*")
	s.Do("ACL", "SETUSER", "bob", "on", ">build", "+ping", "+acl|whoami")
	s.Do("ACL", "SETUSER", "carol", "on", "nopass", "+@all")
	passwords := map[string]string{"alice": "wonder", "bob": "build"}
	for _, proto := range []int{2, 3} {
		d := dialerFor(t, "redis://alice:wonder@"+s.Addr())
		d.PasswordOf = func(user User) (string, error) { return passwords[user.Name], nil }
		for _, user := range []string{"", "alice", "bob", "carol"} {
			c, g := mustDial(t, d, Key{Proto: proto, User: User{Name: user}})
			if user == "" {
				user = "alice"
			}
			expect(t, c, fmt.Sprintf("$%d\r\n%s\r\n", len(user), user), "ACL", "WHOAMI")
			// An ACL without CLIENT must not keep the connection from being used.
			if (user == "bob") != (g.ID == 0) {
				t.Errorf("%s: id %d", user, g.ID)
			}
		}
		_, _, err := d.Dial(t.Context(), Key{Proto: proto, User: User{Name: "mallory"}}, "lane")
		var he *HandshakeError
		if !errors.As(err, &he) || !strings.HasPrefix(string(he.Reply), "-WRONGPASS") {
			t.Errorf("unknown user: %v", err)
		}
		d.PasswordOf = nil
		if _, _, err := d.Dial(t.Context(), Key{Proto: proto, User: User{Name: "bob"}}, "lane"); err == nil {
			t.Error("a user without known password was dialled")
		}
	}
}

func TestDialRotatedPassword(t *testing.T) {
	s := redistest.Start(t)
	d := dialerFor(t, s.URL())
	password := "first"
	d.Target.Password = func() (string, error) { return password, nil }
	control, err := NewControl(d)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	s.Do("CONFIG", "SET", "requirepass", "first")
	mustDial(t, d, Key{Proto: 2})
	if err := control.Ping(t.Context()); err != nil {
		t.Error(err)
	}

	c, _ := mustDial(t, d, Key{Proto: 3})
	expect(t, c, "+OK\r\n", "CONFIG", "SET", "requirepass", "second")
	if _, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane"); err == nil {
		t.Error("the old password was still accepted")
	}
	password = "second"
	mustDial(t, d, Key{Proto: 2})
	if reply, err := c.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"); err != nil || reply[0] != ':' {
		t.Fatalf("kill: %q, %v", reply, err)
	}
	awaitPing(t, control)

	d.Target.Password = func() (string, error) { return "", errors.New("no such file") }
	if _, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("unreadable password: %v", err)
	}
}

// The name is looked up at each dial: what it meant a moment ago is not kept.
func TestDialFollowsTheName(t *testing.T) {
	first, second := redistest.Start(t), redistest.Start(t)
	d := dialerFor(t, "redis://db.example:6379")
	current := first
	var asked []string
	d.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		asked = append(asked, addr)
		return new(net.Dialer).DialContext(ctx, network, current.Addr())
	}
	for _, s := range []*redistest.Server{first, second} {
		current = s
		c, _ := mustDial(t, d, Key{Proto: 2})
		s.Do("SET", "who", s.Addr())
		expect(t, c, s.Do("GET", "who"), "GET", "who")
	}
	if len(asked) != 2 || asked[0] != "db.example:6379" || asked[1] != asked[0] {
		t.Errorf("dialled %q", asked)
	}
}

func TestDialNobody(t *testing.T) {
	d := dialerFor(t, fmt.Sprintf("redis://127.0.0.1:%d", redistest.FreePort(t)))
	if _, _, err := d.Dial(t.Context(), Key{Proto: 2}, "lane"); !Unavailable(err) {
		t.Errorf("error %v", err)
	}
}

func TestConnName(t *testing.T) {
	if got := ConnName("höst 1\n", "lane"); got != "streamproxy:h_st_1_:lane" {
		t.Errorf("got %q", got)
	}
}
