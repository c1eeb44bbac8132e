package proxy

import (
	"bytes"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/resp"
)

// discarding is the end of a transaction whose client has left it open: the server forgets it, and
// the connection, if that is shown to be clean, goes back to the spares. Clients may do that by the
// thousand each second, so nobody waits for it: whoever reads the reply settles it.
type discarding struct {
	hub  *hub
	conn *batcher.Conn
	late *time.Timer // ends what takes too long
	said []byte      // the reply, as far as it has come
}

var _ batcher.Sink = (*discarding)(nil)

// giveBackOpen returns a connection with an open transaction to the spares of a hub, once the server
// has forgotten that.
func (p *Proxy) giveBackOpen(h *hub, c *batcher.Conn, open tx) {
	command := "UNWATCH"
	if open.multi {
		command = "DISCARD"
	}
	d := &discarding{hub: h, conn: c, late: time.AfterFunc(provenTime, c.Close)}
	if c.Submit(d, nil, resp.AppendCommand(nil, command), 1) != nil {
		d.over(false)
	}
}

// over gives back the connection, and then the place among the transactions.
func (d *discarding) over(clean bool) {
	if intime := d.late.Stop(); clean && intime {
		d.conn.SetPatient(false) // of a blocking command that was queued
		d.hub.giveBack(d.conn)
	} else {
		d.conn.Close()
	}
	<-d.hub.p.txSlots
}

// Reply implements batcher.Sink.
func (d *discarding) Reply(b []byte, done, _ int) {
	if len(d.said) <= len(replyOK) { // more would only say again that it is something else
		d.said = append(d.said, b...)
	}
	if done > 0 {
		d.over(bytes.Equal(d.said, replyOK))
	}
}

// Fail implements batcher.Sink.
func (d *discarding) Fail(int, error) { d.over(false) }

// Flush implements batcher.Sink.
func (d *discarding) Flush() {}

// Pace implements batcher.Sink.
func (d *discarding) Pace(int64, time.Duration) bool { return true }
