package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

const (
	// maxGreeting bounds one reply of the handshake and the pushes before it, in bytes.
	// HELLO's is some 200, more where modules are loaded; a peer that sends more than
	// this is no Redis.
	maxGreeting = 64 << 10
	// minReply is the shortest reply there is: a type byte and CRLF.
	minReply = 3
)

// errGreeting is a peer whose greeting is not that of a Redis server.
var errGreeting = errors.New("handshake: unexpected reply")

// handshake is one greeting: commands sent in one write, their replies read in
// order. PING comes last, because it alone tells whether the server can serve.
type handshake struct {
	steps   []step
	request []byte
}

// step is one command of the greeting and what becomes of its reply.
type step struct {
	name string
	take func(g *Greeting, reply []byte) error
}

func newHandshake(k Key, user string, password *string, name string) *handshake {
	h := &handshake{}
	switch {
	case k.Proto == 3 && password != nil:
		if user == "" && !k.User.Proven() {
			user = "default"
		}
		h.add("HELLO", takeHello, "HELLO", "3", "AUTH", user, *password)
	case k.Proto == 3:
		h.add("HELLO", takeHello, "HELLO", "3")
	case password != nil && (user != "" || k.User.Proven()):
		h.add("AUTH", must("AUTH"), "AUTH", user, *password)
	case password != nil:
		h.add("AUTH", must("AUTH"), "AUTH", *password)
	}
	if k.DB != 0 {
		h.add("SELECT", takeSelect, "SELECT", strconv.Itoa(k.DB))
	}
	if name != "" {
		h.add("CLIENT SETNAME", takeName(name), "CLIENT", "SETNAME", name)
	}
	h.add("CLIENT ID", takeID, "CLIENT", "ID")
	h.add("PING", takePing, "PING")
	return h
}

func (h *handshake) add(name string, take func(*Greeting, []byte) error, args ...string) {
	h.steps = append(h.steps, step{name, take})
	h.request = resp.AppendCommand(h.request, args...)
}

// run performs the handshake and leaves conn without a deadline.
func (h *handshake) run(ctx context.Context, conn net.Conn) (Greeting, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	g, err := h.exchange(conn)
	if !stop() {
		return Greeting{}, fmt.Errorf("handshake: %w", context.Cause(ctx))
	}
	return g, err
}

func (h *handshake) exchange(conn net.Conn) (Greeting, error) {
	var g Greeting
	_, writeErr := conn.Write(h.request)
	r := exactReader{conn: conn}
	for i, s := range h.steps {
		// A server that turns a connection away says so before it reads: its words
		// may wait here although the write failed.
		reply, err := r.next(len(h.steps) - i - 1)
		if err != nil {
			return Greeting{}, fmt.Errorf("handshake: %s: %w", s.name, errors.Join(writeErr, err))
		}
		if refusesConnection(reply) {
			return Greeting{}, &HandshakeError{Step: s.name, Reply: reply}
		}
		if err := s.take(&g, reply); err != nil {
			return Greeting{}, err
		}
	}
	return g, nil
}

// refusesConnection recognises errors that answer the connection itself and not
// a command: over maxclients, and protected mode.
func refusesConnection(reply []byte) bool {
	if !isError(reply) {
		return false
	}
	text := errorText(reply)
	return maxClientsText(text) || hasCode(text, "DENIED")
}

func isError(reply []byte) bool { return reply[0] == '-' || reply[0] == '!' }

func must(name string) func(*Greeting, []byte) error {
	return func(_ *Greeting, reply []byte) error {
		if isError(reply) {
			return &HandshakeError{Step: name, Reply: reply}
		}
		if !bytes.Equal(reply, []byte("+OK\r\n")) {
			return fmt.Errorf("%w to %s: %.40q", errGreeting, name, reply)
		}
		return nil
	}
}

func takeHello(g *Greeting, reply []byte) error {
	g.Hello = reply
	if isError(reply) {
		return &HandshakeError{Step: "HELLO", Reply: reply}
	}
	if reply[0] != '%' && reply[0] != '|' {
		return fmt.Errorf("%w to HELLO: %.40q", errGreeting, reply)
	}
	return nil
}

func takeSelect(g *Greeting, reply []byte) error {
	g.Select = reply
	return must("SELECT")(g, reply)
}

// takeName accepts refusal: ACLs and old servers may have none of it.
func takeName(name string) func(*Greeting, []byte) error {
	return func(g *Greeting, reply []byte) error {
		if !isError(reply) {
			g.Name = name
		}
		return nil
	}
}

// takeID accepts refusal too: servers before 5.0 and many embedded ones know no
// ids. Without one what blocks on the connection cannot be called back.
func takeID(g *Greeting, reply []byte) error {
	if reply[0] == ':' {
		g.ID, _ = strconv.ParseInt(string(bytes.TrimSpace(reply[1:])), 10, 64)
	}
	return nil
}

// takePing accepts every error but notes the ones that ask for patience. Others,
// NOAUTH or BUSY, are the client's to see in reply to its own commands.
func takePing(g *Greeting, reply []byte) error {
	if isError(reply) {
		text := errorText(reply)
		if notReadyText(text) {
			g.NotReady = text
		}
		g.NoAuth = hasCode(text, "NOAUTH")
		return nil
	}
	if !bytes.Equal(reply, []byte("+PONG\r\n")) {
		return fmt.Errorf("%w to PING: %.40q", errGreeting, reply)
	}
	return nil
}

// exactReader reads replies without taking a byte that follows the last of
// them: each read asks for no more than must still come. That costs some more
// system calls for each connection and keeps it a plain net.Conn.
type exactReader struct {
	conn net.Conn
	scan resp.ReplyScanner
	buf  [512]byte
	have []byte // read into buf, not yet framed
}

// next reads one reply that later others will follow. Pushes are skipped: a
// server may send one at any time.
func (r *exactReader) next(later int) ([]byte, error) {
	for skipped := 0; skipped <= maxGreeting; {
		reply, err := r.frame(later)
		if err != nil || r.scan.Kind() != '>' {
			return reply, err
		}
		skipped += len(reply)
	}
	return nil, fmt.Errorf("%w: pushes without end", errGreeting)
}

func (r *exactReader) frame(later int) ([]byte, error) {
	r.scan.Reset()
	var reply []byte
	for {
		n, done, err := r.scan.Scan(r.have)
		reply = append(reply, r.have[:n]...)
		r.have = r.have[n:]
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errGreeting, err)
		case done:
			return reply, nil
		case r.scan.Announced() > maxGreeting:
			return nil, fmt.Errorf("%w: over %d bytes", errGreeting, maxGreeting)
		}
		if err := r.fill(later); err != nil {
			return nil, err
		}
	}
}

// fill reads some of what the reply under way and later others still lack.
func (r *exactReader) fill(later int) error {
	missing := max(r.scan.Announced()-r.scan.Size(), 1)
	if r.scan.Size() == 0 {
		missing = minReply
	}
	missing += int64(later) * minReply
	n, err := r.conn.Read(r.buf[:min(missing, int64(len(r.buf)))])
	r.have = r.buf[:n]
	if n > 0 {
		return nil
	}
	return err
}
