package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/certs"
	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// securePatience bounds every wait of these tests.
const securePatience = 15 * time.Second

// secureProxy is a proxy that speaks TLS on both sides.
type secureProxy struct {
	*Proxy
	t         *testing.T
	server    *redistest.Server
	authority *redistest.Authority
	addr      string

	received, faults, commands, batches atomic.Int64
}

func startSecure(t *testing.T, change func(*Config)) *secureProxy {
	t.Helper()
	return startSecureBehind(t, NewHandshakes(), change)
}

func startSecureBehind(t *testing.T, gate certs.Gate, change func(*Config)) *secureProxy {
	t.Helper()
	a := redistest.NewAuthority(t)
	s := &secureProxy{t: t, authority: a, server: redistest.Start(t, redistest.WithTLS(t, a))}
	ca, cert, key := redistest.ClientFiles(t, a)
	target, err := upstream.Parse("rediss://" + s.server.TLSAddr())
	if err != nil {
		t.Fatal(err)
	}
	target.TLS = certs.ForClient(certs.Client{Files: certs.Files{CA: ca, Cert: cert, Key: key}})
	cfg := DefaultConfig()
	cfg.Upstream = target
	cfg.Events = Events{
		Received:      func(n int) { s.received.Add(int64(n)) },
		ProtocolError: func() { s.faults.Add(1) },
	}
	cfg.BatchEvents = batcher.Events{Flushed: func(_ batcher.FlushReason, commands, _ int, _ time.Duration) {
		s.commands.Add(int64(commands))
		s.batches.Add(1)
	}}
	if change != nil {
		change(&cfg)
	}
	if s.Proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = a.Issue(t, "127.0.0.1").Write(t, dir)
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	source := certs.ForServer(certs.Files{CA: a.Write(t, dir), Cert: cert, Key: key})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(tls.NewListener(Metered(l), source.Listening(gate))); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { s.Close(); serving.Wait() })
	return s
}

// identity is a client's configuration with a certificate of a.
func (s *secureProxy) identity(a *redistest.Authority) *tls.Config {
	id := a.Issue(s.t, "client.example")
	pair, err := tls.X509KeyPair(id.Cert, id.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.authority.PEM)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

func (s *secureProxy) client() *redistest.Client {
	s.t.Helper()
	nc, err := tls.Dial("tcp", s.addr, s.identity(s.authority))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = nc.Close() })
	c := redistest.NewClient(nc)
	c.Timeout = securePatience
	return c
}

func (s *secureProxy) expect(c *redistest.Client, want string, args ...string) {
	s.t.Helper()
	if got, err := c.Do(args...); err != nil || got != want {
		s.t.Fatalf("%s: got %.200q, %v; want %q", strings.Join(args, " "), got, err, want)
	}
}

// await polls until ok.
func (s *secureProxy) await(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(securePatience)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			s.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Under TLS nothing is written by the goroutine that read it, and still commands of
// many clients share batches and every reply finds its owner.
func TestSecureClientsShareBatches(t *testing.T) {
	s := startSecure(t, nil)
	const clients, rounds, depth = 32, 20, 10
	var group sync.WaitGroup
	for n := range clients {
		c := s.client()
		group.Go(func() {
			for r := range rounds {
				var raw, want strings.Builder
				for d := range depth {
					text := fmt.Sprintf("%d-%d-%d-%s", n, r, d, strings.Repeat("x", d*d*100))
					raw.WriteString(redistest.Command("ECHO", text))
					fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(text), text)
				}
				if err := c.Send(raw.String()); err != nil {
					t.Error(err)
					return
				}
				var got strings.Builder
				for range depth {
					reply, err := c.ReadReply()
					if err != nil {
						t.Error(err)
						return
					}
					got.WriteString(reply)
				}
				if got.String() != want.String() {
					t.Errorf("client %d got %.100q, want %.100q", n, got.String(), want.String())
					return
				}
			}
		})
	}
	group.Wait()
	if c, b := s.commands.Load(), s.batches.Load(); c < clients*rounds*depth || c < 2*b {
		t.Errorf("%d commands in %d batches", c, b)
	}
}

func TestSecureListenerWantsACertificate(t *testing.T) {
	s := startSecure(t, nil)
	good := s.client()
	s.expect(good, "+PONG\r\n", "PING")
	anonymous := s.identity(s.authority)
	anonymous.Certificates = nil
	old := s.identity(s.authority)
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for n, tt := range []struct {
		config *tls.Config
		says   string
	}{
		{anonymous, "certificate required"},
		{s.identity(redistest.NewAuthority(t)), "unknown certificate authority"},
		{old, "protocol version not supported"},
	} {
		nc, err := tls.Dial("tcp", s.addr, tt.config)
		if err == nil { // since TLS 1.3 a refusal comes after the client's last word
			_ = nc.SetReadDeadline(time.Now().Add(securePatience))
			_, err = nc.Read(make([]byte, 1))
			_ = nc.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("got %v, want %q", err, tt.says)
		}
		s.await("the fault is counted", func() bool { return s.faults.Load() == int64(n+1) })
	}
	plain, err := redistest.Dial(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if got, err := plain.Do("PING"); err == nil && strings.HasPrefix(got, "+PONG") {
		t.Errorf("served without TLS: %q", got)
	}
	s.await("the fault is counted", func() bool { return s.faults.Load() == 4 })
	s.expect(good, "+PONG\r\n", "PING")
	s.await("the refused are forgotten", func() bool { return s.Stats().Clients == 1 })
}

// Clients that begin a handshake and say no more neither keep others out nor hold up
// the end; one that only connects is no fault.
func TestSecureHandshakeKeepsNobodyWaiting(t *testing.T) {
	s := startSecure(t, nil)
	for range 3 {
		nc, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write([]byte("\x16\x03\x01")); err != nil {
			t.Fatal(err)
		}
	}
	s.await("they are sessions", func() bool { return s.Stats().Clients == 3 })
	s.expect(s.client(), "+PONG\r\n", "PING")
	probe, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = probe.Close()
	s.expect(s.client(), "+PONG\r\n", "PING")
	if n := s.faults.Load(); n != 0 {
		t.Errorf("%d faults", n)
	}
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(secureTime / 2):
		t.Error("unfinished handshakes hold up the end")
	}
}

func TestSecureMaxClients(t *testing.T) {
	s := startSecure(t, func(c *Config) { c.MaxClients = 1 })
	c := s.client()
	s.expect(c, "+PONG\r\n", "PING")
	if nc, err := tls.Dial("tcp", s.addr, s.identity(s.authority)); err == nil {
		_ = nc.Close()
		t.Error("one client too many was served")
	}
	s.expect(c, "+PONG\r\n", "PING")
}

// A client that ends its sending direction gets everything it asked for.
func TestSecureHalfClose(t *testing.T) {
	s := startSecure(t, nil)
	c := s.client()
	const n = 500
	if err := c.Send(strings.Repeat(redistest.Command("INCR", "n"), n)); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got, err := c.ReadReply(); err != nil || got != fmt.Sprintf(":%d\r\n", i+1) {
			t.Fatalf("reply %d: %q, %v", i, got, err)
		}
	}
	// io.EOF alone is an end that the proxy has confirmed.
	if got, err := c.ReadReply(); err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
}

// While a blocking command is under way no more of what follows is read than a client may have
// kept, and its end or the client's is noticed all the same.
func TestSecureReadAheadIsBounded(t *testing.T) {
	const most = 4 << 20
	s := startSecure(t, func(c *Config) { c.ClientBufferLimit = most })
	const value, n = 64 << 10, 512
	flood := func(c *redistest.Client) (sent chan error) {
		if err := c.SendCommand("BLPOP", "list", "0"); err != nil {
			t.Fatal(err)
		}
		s.await("it blocks", func() bool { return s.server.Info("clients", "blocked_clients") == "1" })
		sent = make(chan error, 1)
		before := s.received.Load()
		go func() { sent <- c.Send(strings.Repeat(redistest.Command("STRLEN", strings.Repeat("k", value-100)), n)) }()
		s.await("some is read", func() bool { return s.received.Load()-before >= most })
		other := s.client()
		for range 100 {
			s.expect(other, "+PONG\r\n", "PING")
		}
		if got := s.received.Load() - before; got > most+2*moreInput+100*64 {
			t.Errorf("%d bytes were read ahead", got)
		}
		return sent
	}
	c := s.client()
	sent := flood(c)
	s.server.Do("RPUSH", "list", "x")
	want := "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"
	for i := range n + 1 {
		if got, err := c.ReadReply(); err != nil || got != want {
			t.Fatalf("reply %d: %q, %v", i, got, err)
		}
		want = ":0\r\n"
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	c = s.client()
	sent = flood(c)
	tcp := c.Conn.(*tls.Conn).NetConn().(*net.TCPConn)
	_ = tcp.SetLinger(0) // an orderly end would queue behind what is not read
	_ = tcp.Close()
	if err := <-sent; err == nil {
		t.Error("everything was sent to nobody")
	}
	s.await("the blocked command is called back", func() bool { return s.server.Info("clients", "blocked_clients") == "0" })
}

// A client that has sent more than a small chunk holds no large one while it is silent.
func TestSecureSilenceHoldsNoChunk(t *testing.T) {
	s := startSecure(t, nil)
	c := s.client()
	for _, n := range []int{smallChunk + 1, 2 * smallChunk, 12 << 10, 40 << 10} {
		text := strings.Repeat("x", n)
		s.expect(c, fmt.Sprintf("$%d\r\n%s\r\n", n, text), "ECHO", text)
		s.await("nothing is held but by TLS", func() bool {
			sealed := int64(0)
			for _, one := range s.sessions.all() {
				one.mu.Lock()
				sealed += one.sealed
				one.mu.Unlock()
			}
			return s.Stats().BufferedBytes == sealed
		})
	}
}

// A connection that is lost with something in flight tells nothing under TLS.
func TestSecureLoss(t *testing.T) {
	s := startSecure(t, nil)
	c := s.client()
	s.expect(c, ":1\r\n", "INCR", "n")
	s.server.Stop()
	if err := c.Send(strings.Repeat(redistest.Command("INCR", "n"), 3)); err != nil {
		t.Fatal(err)
	}
	s.await("they are in flight", func() bool { return s.Stats().InFlight >= 3 })
	s.server.Kill()
	for i := range 3 {
		if got, err := c.ReadReply(); err != nil || got != "-"+textUnknown+"\r\n" {
			t.Errorf("reply %d: %q, %v", i, got, err)
		}
	}
}

// A server that says nothing any more is given up in time, whatever lies unsent.
func TestSecureSilence(t *testing.T) {
	s := startSecure(t, func(c *Config) { c.UpstreamTimeout = 300 * time.Millisecond })
	c, large := s.client(), s.client()
	s.expect(c, "+OK\r\n", "SET", "k", "v")
	s.server.Stop()
	defer s.server.Cont()
	if err := c.SendCommand("GET", "k"); err != nil {
		t.Fatal(err)
	}
	body := redistest.Command("SET", "large", strings.Repeat("x", 64<<20))
	sent := make(chan error, 1)
	go func() { sent <- large.Send(body) }()
	if got, err := c.ReadReply(); err != nil || got != "-"+textUnknown+"\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	// Its end was never written, so it cannot have been executed.
	if got, err := large.ReadReply(); err != nil || got != "-"+textNotSent+"\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// Values of every path's size come back as they were, while small ones go on beside.
func TestSecureSizes(t *testing.T) {
	s := startSecure(t, nil)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	small := s.client()
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if got, err := small.Do("ECHO", "small"); err != nil || got != "$5\r\nsmall\r\n" {
				stopped <- fmt.Errorf("%.40q, %w", got, err)
				return
			}
		}
	}()
	c := s.client()
	for _, n := range []int{0, smallChunk - 40, smallChunk, 16 << 10, 64<<10 - 1, 64 << 10, chunkSize + 1, 1 << 20, 5 << 20} {
		value := strings.Repeat("v", n)
		s.expect(c, "+OK\r\n", "SET", "k", value)
		s.expect(c, fmt.Sprintf("$%d\r\n%s\r\n", n, value), "GET", "k")
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// What keeps a connection of its own works over TLS, and goes when its client goes.
func TestSecurePrivate(t *testing.T) {
	s := startSecure(t, nil)
	watcher, other := s.client(), s.client()
	s.expect(watcher, "+OK\r\n", "WATCH", "k")
	s.expect(watcher, "+OK\r\n", "MULTI")
	s.expect(watcher, "+QUEUED\r\n", "INCR", "k")
	s.expect(other, "+OK\r\n", "SET", "k", "5")
	s.expect(watcher, "*-1\r\n", "EXEC")
	subscriber := s.client()
	s.expect(subscriber, "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "SUBSCRIBE", "c")
	s.expect(other, ":1\r\n", "PUBLISH", "c", "hello")
	if got, err := subscriber.ReadReply(); err != nil || got != "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n" {
		t.Errorf("%q, %v", got, err)
	}
	parked := s.client()
	if err := parked.SendCommand("BLPOP", "list", "0"); err != nil {
		t.Fatal(err)
	}
	s.await("it blocks", func() bool { return s.server.Info("clients", "blocked_clients") == "1" })
	_ = parked.Close()
	_ = subscriber.Close()
	s.await("it is called back", func() bool { return s.server.Info("clients", "blocked_clients") == "0" })
	parked = s.client()
	if err := parked.Send(redistest.Command("BLPOP", "list", "0") + strings.Repeat(redistest.Command("PING"), much/14)); err != nil {
		t.Fatal(err)
	}
	s.await("the next one blocks", func() bool { return s.server.Info("clients", "blocked_clients") == "1" })
	_ = parked.Close()
	s.await("it is called back", func() bool { return s.server.Info("clients", "blocked_clients") == "0" })
	s.await("the subscription ends", func() bool { return s.server.Do("PUBSUB", "NUMSUB", "c") == "*2\r\n$1\r\nc\r\n:0\r\n" })
	s.expect(other, ":0\r\n", "PUBLISH", "c", "nobody")
	s.expect(other, ":1\r\n", "RPUSH", "list", "x")
}

func TestSampler(t *testing.T) {
	var s sampler
	now := time.Unix(1000, 0)
	for i, tt := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {time.Second, 0}, {time.Second, 0}, {sampleEvery, 3}, {sampleEvery, 1}} {
		now = now.Add(tt.after)
		if got := s.take(now); got != tt.want {
			t.Errorf("call %d: %d, want %d", i, got, tt.want)
		}
	}
}
