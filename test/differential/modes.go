package differential

import "strings"

// Episodes that change a connection for good, and what undoes that.

// mode puts a connection into a mode, in one pipe with what comes before and behind it.
func (d *draft) mode(conn int) {
	if d.oneIn(3) {
		d.add(conn, d.command()...)
	}
	if d.oneIn(8) { // which a server refuses while replies to what came before are pending
		d.next()
		d.line(conn, d.pick("SCRIPT DEBUG NO", "SCRIPT DEBUG nosuch"))
	}
	d.line(conn, d.pick("CLIENT NO-EVICT on", "CLIENT NO-EVICT off", "CLIENT NO-TOUCH on", "CLIENT NO-TOUCH off",
		"CLIENT CAPA nosuch", "CLIENT IMPORT-SOURCE on", "CLIENT NO-EVICT maybe", "CLIENT TRACKING OFF",
		"READONLY", "READWRITE", "ASKING", "REPLCONF listening-port 1", "REPLCONF nosuch x", "REPLCONF ack 0",
		"DEBUG SLEEP 0", "DEBUG PROTOCOL integer", "CLIENT CACHING YES"))
	d.pipeline(conn)
	d.next()
	if d.oneIn(2) {
		d.add(conn, "RESET")
		d.add(conn, d.command()...)
	}
}

// track follows keys for client-side caching, while this and another connection change them.
func (d *draft) track(conn int) {
	other := d.other(conn)
	// A new connection: the server remembers what one has read beyond RESET, and tells it of that when
	// it tracks again. Behind the proxy what was reset is another.
	d.ops = append(d.ops, op{conn, d.pipe, d.round, drop, nil})
	d.next()
	d.add(conn, "RESET")
	redirect := d.oneIn(4)
	broadcast := false
	switch {
	case redirect:
		d.add(other, "RESET")
		d.next()
		d.add(other, "SUBSCRIBE", "__redis__:invalidate")
		d.next()
		d.line(conn, "CLIENT TRACKING ON REDIRECT "+idOf(other))
	default:
		d.add(conn, "HELLO", d.pick("3", "3", "3", "2"))
		how := d.pick("", "", "NOLOOP", "OPTIN", "OPTOUT", "BCAST", "BCAST PREFIX st PREFIX li", "OPTIN OPTOUT", "PREFIX x", "REDIRECT 99")
		broadcast = strings.HasPrefix(how, "BCAST")
		d.line(conn, "CLIENT TRACKING "+d.pick("ON", "on")+" "+how)
	}
	d.line(conn, d.pick("CLIENT CACHING YES", "CLIENT CACHING NO", "CLIENT GETREDIR", "CLIENT TRACKINGINFO", "GET li0"))
	for range 1 + d.IntN(4) {
		d.add(conn, d.pick("GET", "STRLEN", "get"), d.key("string"))
	}
	d.split()
	writer := other
	if redirect {
		writer = conn
	}
	for range 1 + d.IntN(3) {
		d.next()
		// What is broadcast is gathered by turns of the server's loop, and how a pipe falls into these
		// is a matter of time.
		d.add(writer, d.pick("INCR", "DEL", "APPEND"), d.key("string"))
		if !broadcast {
			d.add(writer, d.command()...)
		}
	}
	d.next()
	d.add(conn, "PING")
	if redirect {
		d.next()
		d.add(other, "PING")
	}
	for range d.IntN(3) { // on, off and on again
		d.next()
		how := d.pick("OFF", "ON", "ON NOLOOP", "OFF NOLOOP", "nosuch", "ON BCAST")
		broadcast = broadcast || how == "ON BCAST"
		d.line(conn, "CLIENT TRACKING "+how)
		d.line(conn, "CLIENT TRACKINGINFO")
	}
	d.next()
	// What is broadcast is gathered, see above; a target that was reset is another connection behind the
	// proxy.
	if redirect || broadcast || !d.oneIn(4) {
		d.add(conn, "RESET")
		d.add(other, "RESET")
		d.next()
		d.add(conn, "CLIENT", "TRACKINGINFO")
	}
}

// eavesdrop monitors another connection.
func (d *draft) eavesdrop(conn int) {
	other := d.other(conn)
	d.add(conn, "RESET")
	d.add(other, "RESET")
	d.next()
	d.add(conn, "MONITOR")
	d.next()
	for range 1 + d.IntN(4) {
		switch d.IntN(5) {
		case 0:
			d.add(other, "EVAL", "return redis.call('incr', KEYS[1])", "1", monitored+"n")
		case 1:
			d.add(other, "MULTI")
			d.add(other, "SET", monitored+"k", d.value())
			d.add(other, "EXEC")
		case 2:
			d.add(other, "SELECT", d.pick("0", "1"))
		case 3:
			d.add(other, "BLPOP", monitored+"none", "0.001")
		default:
			d.add(other, d.pick("SET", "APPEND", "LPUSH", "get"), monitored+d.pick("a", "b"), d.value())
		}
	}
	d.split()
	d.next()
	d.add(conn, d.pick("PING", "GET", "MONITOR"))
	d.next()
	if d.oneIn(3) {
		d.ops = append(d.ops, op{conn, d.pipe, d.round, drop, nil})
	} else {
		d.add(conn, "RESET")
	}
	d.next()
	d.add(other, "SET", monitored+"unseen", "x")
	d.add(conn, d.command()...)
}

// kill ends a connection by its id, from another or from itself.
func (d *draft) kill(conn int) {
	other := d.other(conn)
	d.add(conn, "RESET")
	d.add(other, "RESET")
	d.next()
	switch d.IntN(4) {
	case 0:
		d.ops = append(d.ops, op{conn, d.pipe, d.round, last, words("CLIENT KILL ID " + idOf(conn) + " SKIPME no")})
	case 1:
		d.line(other, "SUBSCRIBE ch1")
		d.next()
		d.line(conn, "CLIENT KILL TYPE pubsub")
	case 2:
		d.line(conn, "CLIENT KILL "+d.pick("ID "+idOf(conn), "ID "+idOf(conn)+" SKIPME yes", "127.0.0.1:1", "ID 0", "ID x",
			"ID 987654321", "NOSUCH x", "TYPE nosuch", "ADDR 127.0.0.1:1", "USER nobody", "LADDR 127.0.0.1:1", "SKIPME maybe", "ID"))
		d.line(conn, "CLIENT LIST "+d.pick("ID "+idOf(conn), "TYPE pubsub", "TYPE nosuch", "ID", "ID x"))
	default:
		d.line(conn, "CLIENT KILL ID "+idOf(other)+d.pick("", "", " SKIPME yes", " SKIPME no"))
	}
	d.next()
	d.add(other, "PING") // the end of the old one
	d.next()
	d.add(other, d.command()...)
	d.add(conn, d.command()...)
}
