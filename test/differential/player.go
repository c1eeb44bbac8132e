package differential

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"streamproxy/internal/redistest"
)

const (
	// parkTime is how long a command that is to block may take until the server says so.
	parkTime = 500 * time.Millisecond
	// inlineWrite is the size up to which a pipe is written before its replies are read.
	inlineWrite = 16 << 10
)

// player plays scripts on one side.
type player struct {
	addr    string
	server  *redistest.Server // what is behind addr
	timeout time.Duration     // for one reply
	conns   map[int]*redistest.Client
	asks    bool           // the script names ids of connections
	ids     map[int]string // if so
	parked  map[int][]op
	heard   []outcome
}

func newPlayer(addr string, server *redistest.Server, timeout time.Duration) *player {
	return &player{addr: addr, server: server, timeout: timeout,
		conns: map[int]*redistest.Client{}, ids: map[int]string{}, parked: map[int][]op{}}
}

// play returns what each pipe of the script brought, in the order of the script.
func (p *player) play(s script) []outcome {
	defer func() {
		for _, c := range p.conns {
			_ = c.Close()
		}
	}()
	p.asks = s.asks()
	for _, round := range s.rounds() {
		sent := make([]chan struct{}, len(round))
		for i, pipe := range round {
			if pipe[0].verb != drop { // which leaves what it waits for
				p.collect(pipe[0].conn)
			}
			sent[i] = p.send(s, pipe)
		}
		for i, pipe := range round {
			p.receive(pipe)
			<-sent[i]
		}
	}
	for conn := range 16 {
		p.collect(conn)
	}
	return p.heard
}

// client returns a connection, made if it is not there or was closed.
func (p *player) client(conn int) *redistest.Client {
	if c := p.conns[conn]; c != nil {
		return c
	}
	c, err := redistest.Dial(p.addr)
	if err != nil {
		panic(fmt.Sprintf("differential: %v", err)) // nothing to compare with
	}
	c.Timeout = p.timeout
	p.conns[conn] = c
	delete(p.ids, conn)
	if p.asks {
		if reply, err := c.Do("CLIENT", "ID"); err == nil && reply[0] == ':' {
			p.ids[conn] = strings.TrimSpace(reply[1:])
		}
	}
	return c
}

// id is what the server, or the proxy, calls a connection.
func (p *player) id(conn int) string {
	p.client(conn)
	return p.ids[conn]
}

// send writes a pipe, a large one beside the reading; the channel is closed when that is done.
func (p *player) send(s script, pipe []op) chan struct{} {
	done := make(chan struct{})
	var b strings.Builder
	for _, o := range pipe {
		b.WriteString(o.filled(p.id).bytes())
	}
	if mixes(pipe[0].verb) {
		b.WriteString(redistest.Command("PING", token(pipe)))
	}
	if b.Len() == 0 {
		close(done)
		return done
	}
	c := p.client(pipe[0].conn)
	write := func() {
		defer close(done)
		for _, piece := range s.pieces(pipe[0].pipe, b.String()) {
			if c.Send(piece) != nil {
				return // the reading will say why
			}
		}
	}
	if b.Len() > inlineWrite {
		go write()
	} else {
		write()
	}
	return done
}

// token is what the PING at the end of a pipe says: with its reply the pipe has been answered,
// however many replies that took.
func token(pipe []op) string { return fmt.Sprintf("=end of pipe %d=", pipe[0].pipe) }

// receive reads what a pipe brings, or remembers it as parked.
func (p *player) receive(pipe []op) {
	conn := pipe[0].conn
	switch pipe[0].verb {
	case park:
		p.parked[conn] = pipe
		p.awaitBlocked(len(p.parked))
	case collect: // done before it was sent
	case drop:
		p.leave(conn)
	case last:
		p.read(pipe, func(string) bool { return false })
	default:
		end, n := token(pipe), 0
		p.read(pipe, func(frame string) bool {
			if !aside(frame) {
				n++
			}
			return strings.Contains(frame, end) || n > len(pipe)
		})
	}
}

// read collects frames until one is the last, the connection ends, or nothing comes.
func (p *player) read(pipe []op, isLast func(frame string) bool) {
	conn := pipe[0].conn
	c := p.client(conn)
	o := outcome{pipe: pipe}
	for {
		frame, err := c.ReadReply()
		if err != nil {
			o.end = closed
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				o.end = silent
			}
			p.close(conn)
			break
		}
		if isOverheard(frame) {
			if frame = overheard(frame); frame != "" {
				o.frames = append(o.frames, frame)
			}
			continue
		}
		o.frames = append(o.frames, frame)
		if isLast(frame) {
			break
		}
	}
	p.heard = append(p.heard, o)
}

// close ends a connection; the next use makes another.
func (p *player) close(conn int) {
	if c := p.conns[conn]; c != nil {
		_ = c.Close()
		delete(p.conns, conn)
	}
}

// leave ends a connection from the client's side. What it waited for is nobody's once the server
// has noticed.
func (p *player) leave(conn int) {
	p.close(conn)
	if p.parked[conn] != nil {
		delete(p.parked, conn)
		p.awaitBlocked(len(p.parked))
	}
}

// collect reads what a parked command of the connection brings, if there is one.
func (p *player) collect(conn int) {
	if pipe := p.parked[conn]; pipe != nil {
		delete(p.parked, conn)
		p.read(pipe, func(frame string) bool { return !aside(frame) })
	}
}

// awaitBlocked waits until the server has n blocked clients, or until that takes too long: a
// script that has been shrunk may not block any more.
func (p *player) awaitBlocked(n int) {
	want := fmt.Sprintf("blocked_clients:%d\r\n", n)
	for end := time.Now().Add(parkTime); time.Now().Before(end); {
		if strings.Contains(p.server.Do("INFO", "clients"), want) {
			return
		}
	}
}

// asides begin what a server sends beside the replies to commands, in the RESP2 form.
var asides = []string{
	"$9\r\nsubscribe", "$10\r\npsubscribe", "$10\r\nssubscribe",
	"$11\r\nunsubscribe", "$12\r\npunsubscribe", "$12\r\nsunsubscribe",
	"$7\r\nmessage", "$8\r\npmessage", "$8\r\nsmessage",
}

// aside tells a message or an acknowledgement of a subscription from a reply.
func aside(frame string) bool {
	if frame[0] == '>' {
		return true
	}
	if !strings.HasPrefix(frame, "*3\r\n") && !strings.HasPrefix(frame, "*4\r\n") {
		return false
	}
	for _, a := range asides {
		if strings.HasPrefix(frame[4:], a) {
			return true
		}
	}
	return false
}
