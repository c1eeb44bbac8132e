package differential

import "strings"

// Episodes in which a connection waits for another.

// park appends a command that is to block, alone in its pipe.
func (d *draft) park(conn int, args ...string) {
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, park, args})
	d.next()
}

// collect appends the reading of what a parked command has brought.
func (d *draft) collect(conn int) {
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, collect, nil})
	d.next()
}

// blank puts two connections into a known state, and takes away what would keep one from waiting.
func (d *draft) blank(conn, other int) {
	d.startOver(conn)
	d.next()
	d.add(other, "RESET")
	d.line(other, "DEL parked parked2 parkedto")
	d.line(other, "XGROUP CREATE parkedgroup g $ MKSTREAM")
	d.next()
}

// parkAndWake blocks one connection until another brings what it waits for, or its time is over.
func (d *draft) parkAndWake(conn int) {
	other := d.other(conn)
	d.blank(conn, other)
	waits := []struct{ wait, wake string }{
		{"BLPOP parked parked2 20", "RPUSH parked a b"},
		{"BRPOP parked2 parked 20", "RPUSH parked a b"},
		{"BLMOVE parked parkedto LEFT RIGHT 20", "LPUSH parked x"},
		{"BRPOPLPUSH parked parkedto 20", "LPUSH parked x"},
		{"BLMPOP 20 2 parked parked2 LEFT COUNT 3", "RPUSH parked2 a b"},
		{"BZPOPMIN parked 20", "ZADD parked 1 a 2 b"},
		{"BZPOPMAX parked 0", "ZADD parked 1 a 2 b"},
		{"BZMPOP 20 1 parked MAX", "ZADD parked 1 a 2 b"},
		{"XREAD BLOCK 20000 STREAMS parked $", "XADD parked 7-1 f v"},
		{"XREADGROUP GROUP g c BLOCK 20000 STREAMS parkedgroup >", "XADD parkedgroup 9-* f v"},
		{"XREADGROUP GROUP g c BLOCK 0 NOACK STREAMS parkedgroup >", "XADD parkedgroup 9-* f v"},
		{"XREADGROUP GROUP g c BLOCK 20000 STREAMS parkedgroup >", "XGROUP DESTROY parkedgroup g"},
		{"XREADGROUP GROUP g c BLOCK 20000 STREAMS parkedgroup >", "DEL parkedgroup"},
		{"XREAD BLOCK 60 STREAMS parked $", "DEL parked"},
		{"BLPOP parked 0.05", "PING"},
		{"BLPOP parked 20", "SET parked string"},
		{"BLPOP parked 20", `EVAL "return redis.call('rpush', 'parked', 'x')" 0`},
	}
	w := waits[d.IntN(len(waits))]
	d.park(conn, words(w.wait)...)
	if d.oneIn(4) {
		d.add(other, "MULTI")
		d.line(other, w.wake)
		d.add(other, "EXEC")
	} else {
		d.line(other, w.wake)
	}
	if strings.HasPrefix(w.wake, "SET") {
		d.line(other, "DEL parked")
		d.line(other, "LPUSH parked late")
	}
	d.split()
	d.collect(conn)
	d.add(conn, d.command()...)
}

// unblock ends another's wait by its id.
func (d *draft) unblock(conn int) {
	other := d.other(conn)
	d.blank(conn, other)
	d.park(conn, words(d.pick("BLPOP parked 20", "XREAD BLOCK 20000 STREAMS parked $", "BZPOPMIN parked 20",
		"XREADGROUP GROUP g c BLOCK 20000 STREAMS parkedgroup >", "BLMOVE parked parkedto LEFT RIGHT 20"))...)
	d.line(other, "CLIENT UNBLOCK "+idOf(other))
	d.line(other, "CLIENT UNBLOCK "+idOf(conn)+d.pick("", " TIMEOUT", " ERROR", " error"))
	d.collect(conn)
	d.line(other, "CLIENT UNBLOCK "+idOf(conn)+d.pick("", " nosuch", " ERROR"))
	d.line(other, "RPUSH parked a")
	d.next()
	d.add(conn, d.command()...)
}

// abandon lets a connection leave while it waits, and others go on at the same time: one of them may
// be on the server's connection that the wait was on. Nothing is brought to who has left.
func (d *draft) abandon(conn int) {
	other := d.other(conn)
	d.blank(conn, other)
	for range d.IntN(3) { // WAIT has to travel where these did
		d.add(conn, "INCR", "own:left")
	}
	if d.oneIn(3) {
		d.next()
	}
	d.park(conn, words(d.pick("WAIT 1 0", "WAIT 1 0", "WAIT 1 20000", "BLPOP parked 20", "BLMOVE parked parkedto LEFT RIGHT 0",
		"BZPOPMIN parked 0", "XREAD BLOCK 0 STREAMS parked $", "XREADGROUP GROUP g c BLOCK 0 STREAMS parkedgroup >"))...)
	if d.oneIn(2) {
		d.add(other, d.command()...)
	}
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, drop, nil})
	d.next()
	d.alone = false
	for range 1 + d.IntN(3) {
		d.company()
	}
	d.alone, d.prefix = true, ""
	d.next()
	d.line(other, d.pick("LPUSH parked a", "ZADD parked 1 a", "XADD parkedgroup 9-* f v"))
	for _, key := range []string{"parked", "parkedto", "parkedgroup"} {
		d.add(other, "EXISTS", key)
	}
	d.split()
}

// pause stops the server for a moment, or its writes until it is told to go on.
func (d *draft) pause(conn int) {
	other := d.other(conn)
	d.blank(conn, other)
	if d.oneIn(2) {
		d.line(other, "CLIENT PAUSE 15"+d.pick("", " ALL", " WRITE"))
		d.next()
		d.pipeline(conn)
		return
	}
	d.line(other, "CLIENT PAUSE 20000 WRITE")
	d.line(other, "GET st1")
	d.park(conn, words(d.pick("SET parked x", "INCR parked", "EVAL return 0", "PUBLISH ch1 x"))...)
	d.line(other, "CLIENT UNPAUSE") // and nothing before it that would share a lane with the write
	d.collect(conn)
	d.pipeline(conn)
}
