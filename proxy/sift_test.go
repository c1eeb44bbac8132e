package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// What a pinned session sends is sifted however it arrives, and the denials stand in the places of
// the commands.
func TestPinnedSessionsAreSifted(t *testing.T) {
	const deny = "flushall"
	body := strings.Repeat(redistest.Command("FLUSHALL"), 8<<10) // longer than what is held
	forms := []struct{ name, send, want string }{
		{"plain", redistest.Command("GET", "a") + redistest.Command("FlushAll", "ASYNC") + redistest.Command("GET", "b"),
			bulkReply("a") + noPerm("flushall") + bulkReply("b")},
		{"inline", "GET a\r\n\r\nflushall\n\"flush\\x61ll\"\r\n*0\r\nGET b\r\n",
			bulkReply("a") + noPerm("flushall") + noPerm("flushall") + bulkReply("b")},
		{"subcommand", redistest.Command("OBJECT", "freq", "k") + redistest.Command("OBJECT", "help") + redistest.Command("GET", "b"),
			noPerm("object|freq") + bulkReply("help") + bulkReply("b")},
		{"within a transaction", redistest.Command("MULTI") + redistest.Command("FLUSHALL") + redistest.Command("GET", "a") + redistest.Command("EXEC"),
			"+OK\r\n" + noPerm("flushall") + "+QUEUED\r\n" + execAbort},
		{"beside what the server does not know", redistest.Command("NONESUCH") + redistest.Command("FLUSHALL") + redistest.Command("NONESUCH"),
			"-ERR unknown command 'nonesuch', with args beginning with: \r\n" + noPerm("flushall") + "-ERR unknown command 'nonesuch', with args beginning with: \r\n"},
		{"large that is denied", redistest.Command("MSETNX", "k", body) + redistest.Command("GET", "b"), noPerm("msetnx") + bulkReply("b")},
		{"large that is not", redistest.Command("SET", "k", body) + redistest.Command("FLUSHALL"), bulkReply("k") + noPerm("flushall")},
	}
	for _, quote := range []string{"'", "`"} {
		for _, tt := range forms {
			for _, size := range []int{1, 7, 64 << 10} {
				if size == 1 && len(tt.send) > 1<<10 {
					continue // the pieces are what a network makes of a large one
				}
				t.Run(tt.name, func(t *testing.T) {
					_, p := startStrict(t, quote, nil, deny, "object|freq", "msetnx")
					c := p.client()
					expect(t, c, bulkReply("MONITOR"), "MONITOR")
					go func() {
						for rest := tt.send; rest != ""; {
							n := min(size*(1+len(tt.send)/(1<<10)), len(rest))
							if c.Send(rest[:n]) != nil {
								return // the replies that are missing show
							}
							rest = rest[n:]
						}
					}()
					got := make([]byte, len(tt.want))
					if _, err := io.ReadFull(c.Conn, got); err != nil || string(got) != tt.want {
						t.Fatalf("got %.300q, %v; want %.300q", got, err, tt.want)
					}
				})
			}
		}
	}
}

// What the proxy cannot frame is not passed on: the server might read a command in it. What came
// before is answered, and the error follows that.
func TestPinnedSessionsEndAtWhatIsNoCommand(t *testing.T) {
	for name, send := range map[string]string{
		"a length that can be read in two ways": "*1\r\n$08\r\nFLUSHALL\r\n",
		"a line without an end of quotes":       "GET \"a\r\nFLUSHALL\r\n",
		"a bulk without its end":                "*2\r\n$3\r\nGET\r\n$1\r\nab\r\n" + redistest.Command("FLUSHALL"),
		"a large one without its end": "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + strings.Repeat("x", 100000) + "yy" +
			redistest.Command("FLUSHALL"),
	} {
		t.Run(name, func(t *testing.T) {
			f, p := startStrict(t, "'", nil, "flushall")
			c := p.client()
			expect(t, c, bulkReply("MONITOR"), "MONITOR")
			if err := c.Send(redistest.Command("GET", "before") + send + redistest.Command("GET", "behind")); err != nil {
				t.Fatal(err)
			}
			if got, err := c.ReadReply(); err != nil || got != bulkReply("before") {
				t.Fatalf("%q, %v", got, err)
			}
			if got, err := c.ReadReply(); err != nil || !strings.HasPrefix(got, "-ERR Protocol error") {
				t.Fatalf("%q, %v", got, err)
			}
			expectEnd(t, c)
			if n := f.count("GET behind"); n != 0 {
				t.Error("what follows has been executed")
			}
		})
	}
}

// A large command that pins its session is framed to its end: nothing in it is taken for a command,
// and what follows is sifted.
func TestLargeCommandPins(t *testing.T) {
	for _, denied := range [][]string{nil, {"flushall"}} {
		f, p := startStrict(t, "'", nil, denied...)
		c := p.client()
		filler := strings.Repeat(redistest.Command("RESET"), 8<<10)
		if err := c.Send(redistest.Command("MONITOR", "x", filler) + redistest.Command("FLUSHALL")); err != nil {
			t.Fatal(err)
		}
		want := bulkReply("FLUSHALL")
		if denied != nil {
			want = noPerm("flushall")
		}
		for _, want := range []string{bulkReply("x"), want} {
			if got, err := c.ReadReply(); err != nil || got != want {
				t.Fatalf("denied %v: got %.80q, %v; want %.80q", denied, got, err, want)
			}
		}
		if n := f.count("RESET"); n != 0 {
			t.Errorf("denied %v: %d times a part of an argument was executed", denied, n)
		}
	}
}

// A command of a pinned session that the proxy has to look at is seen in whatever pieces it comes, and
// no byte of it has left before.
func TestCommandsInPiecesAreSeen(t *testing.T) {
	p := startProxy(t, startFake(t), func(c *Config) { c.RequirePass = func() (string, error) { return "pw", nil } })
	nobody := p.identities.nobody.user
	for line, want := range map[string]string{
		"RESET":             redistest.Command("RESET") + redistest.Command("QUIT"),
		"AUTH pw":           redistest.Command("AUTH", "default", ""),
		"AUTH default x":    redistest.Command("AUTH", nobody, ""),
		"HELLO 3":           redistest.Command("HELLO", "3"),
		"CLIENT REPLY SKIP": redistest.Command("CLIENT", "REPLY", "SKIP"),
	} {
		for _, raw := range []string{redistest.Command(strings.Fields(line)...), line + "\r\n"} {
			for at := 1; at < len(raw); at++ {
				near, far := net.Pipe()
				s := newSession(p.Proxy, near)
				out := takeBuffer()
				if n, stop := s.siftOne(out, []byte(raw[:at])); n != 0 || !stop || len(out.b) > 0 {
					t.Errorf("%q: %d bytes are taken, %q is sent", raw[:at], n, out.b)
				}
				n, _ := s.siftOne(out, []byte(raw))
				if n != len(raw) || string(out.b) != want || s.resetting != (line == "RESET") || s.skipping != strings.HasSuffix(line, "SKIP") {
					t.Errorf("%q and the rest: %q is sent, want %q; resetting %v, skipping %v", raw[:at], out.b, want, s.resetting, s.skipping)
				}
				out.release()
				near.Close()
				far.Close()
			}
		}
	}
}

// A RESET that the server carries out in silence, because the command before it asked for that, is
// expected to be silent, also where commands are denied.
func TestASilentResetIsExpected(t *testing.T) {
	for _, deny := range [][]string{nil, {"flushall"}} {
		p := startProxy(t, startFake(t), func(c *Config) { c.Deny = deny })
		for line, silent := range map[string]bool{"CLIENT REPLY SKIP": true, "CLIENT REPLY ON": false} {
			near, far := net.Pipe()
			s := newSession(p.Proxy, near)
			out := takeBuffer()
			for _, line := range []string{line, "RESET"} {
				_, _ = s.siftOne(out, []byte(redistest.Command(strings.Fields(line)...)))
			}
			if !s.resetting || s.resetSkipped != silent {
				t.Errorf("denied %v, %s: resetting %v, in silence %v", deny, line, s.resetting, s.resetSkipped)
			}
			out.release()
			near.Close()
			far.Close()
		}
	}
}

// No byte of a large command leaves before it is known which one it is: on a connection for commands
// that the proxy does not know, a HELLO could have made the server let somebody else in.
func TestALargeCommandIsHeldUntilItIsKnown(t *testing.T) {
	p := startProxy(t, startFake(t), nil)
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s := newSession(p.Proxy, near)
	raw := []byte("*20000\r\n$5\r\nHELLO\r\n$1\r\n3\r\n")
	known := strings.Index(string(raw), "$1")
	for n := 1; n < known; n++ {
		if took := s.execute(raw[:n]); took != 0 || s.body != nil {
			t.Fatalf("%q: %d bytes are taken", raw[:n], took)
		}
	}
	if took := s.execute(raw[:known]); took != known || s.body == nil || s.body.e != nil {
		t.Errorf("%d bytes are taken, want %d; %+v", took, known, s.body)
	}
}

// Whatever the pieces in which replies come, those to stand-ins are replaced, and nothing else is
// changed or kept.
func TestUnmask(t *testing.T) {
	d, err := newDenials([]string{"flushall", "config|set"})
	if err != nil {
		t.Fatal(err)
	}
	refusal := func(name string) string { return "-ERR unknown command '" + name + "', with args beginning with: \r\n" }
	stream := "+OK\r\n-ERR unk\r\n" + refusal(d.token+"1") + "$5\r\n-ERR \r\n" + refusal("get") + refusal(d.token+"0") +
		refusal(d.token+"2") + refusal(d.token) + refusal(d.token[:len(d.token)-1]) + "-ERR unknown command\r\n-"
	want := strings.ReplaceAll(stream, refusal(d.token+"1"), noPerm("config|set"))
	want = strings.ReplaceAll(want, refusal(d.token+"0"), noPerm("flushall"))
	for size := 1; size <= len(stream); size++ {
		var got strings.Builder
		r, found := &pipe{}, 0
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			pass, some := r.unmask(d, []byte(rest[:n]))
			got.Write(pass)
			found += some
			rest = rest[n:]
		}
		if all := got.String() + string(r.masked); all != want || found != 2 {
			t.Fatalf("pieces of %d: %d found, %q", size, found, all)
		}
	}
}

// The beginning of a reply that looked like one to a stand-in is passed on when the rest of it comes,
// also after the last stand-in has been answered, and when there is no rest.
func TestPipeKeepsNothing(t *testing.T) {
	d, err := newDenials([]string{"flushall"})
	if err != nil {
		t.Fatal(err)
	}
	nc, other := net.Pipe()
	defer nc.Close()
	defer other.Close()
	s := &session{p: &Proxy{denials: d}, standIns: 1, nc: nc}
	s.cond.L = &s.mu
	r := &pipe{s: s}
	want := noPerm("flushall") + "-ERR unknown command 'x'\r\n-ERR unk"
	for _, piece := range []string{"-ERR unknown command '" + d.token + "0', with args", " beginning with: \r\n-ERR unknown com", "mand 'x'\r\n-ERR unk"} {
		r.Reply([]byte(piece), 0, 0)
	}
	r.Fail(0, io.EOF)
	var got strings.Builder
	for b := s.out.take(0); b != nil; b = s.out.take(0) {
		got.Write(b.b)
	}
	if got.String() != want || s.standIns != 0 {
		t.Errorf("%q, %d stand-ins open", got.String(), s.standIns)
	}
}
