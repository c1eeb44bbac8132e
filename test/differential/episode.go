package differential

import (
	"fmt"
	"strings"
)

// episode lets one connection do something, alone on the server but for what the episode itself
// asks of others.
func (d *draft) episode(conn int) {
	d.next()
	switch k := d.IntN(40); {
	case k < 24:
		d.pipeline(conn)
	case k < 28:
		d.transaction(conn)
	case k < 30:
		d.guarded(conn)
	case k < 33:
		d.inlines(conn)
	case k < 35 && conn > 0:
		d.listen(conn)
	case k < 37 && d.conns > 1:
		d.parkAndWake(conn, (conn+1)%d.conns)
	case k < 38:
		d.silence(conn)
	case k < 39 && conn == 0:
		d.farewell(conn)
	default:
		d.add(conn, "RESET")
		d.add(conn, "HELLO", d.pick("2", "3"))
	}
}

func (d *draft) pipeline(conn int) {
	for range 1 + d.IntN(10) {
		d.add(conn, d.command()...)
	}
	d.split()
}

// transaction sends MULTI to EXEC, in one piece or in several.
func (d *draft) transaction(conn int) {
	torn := d.oneIn(2)
	step := func(args ...string) {
		d.add(conn, args...)
		if torn && d.oneIn(2) {
			d.split()
			d.next()
		}
	}
	step(d.pick("MULTI", "multi"))
	for range d.IntN(5) {
		step(d.command()...)
	}
	if d.oneIn(10) {
		step("MULTI")
	}
	step(d.pick("EXEC", "EXEC", "EXEC", "DISCARD"))
	if d.oneIn(4) {
		step(d.command()...)
	}
	d.split()
}

// guarded is a transaction under WATCH that another connection may spoil.
func (d *draft) guarded(conn int) {
	key := d.key("string")
	d.add(conn, "WATCH", key)
	d.next()
	if d.oneIn(2) {
		d.add((conn+1)%d.conns, "SET", key, "other")
		d.next()
	}
	d.add(conn, "MULTI")
	d.add(conn, "SET", key, "mine")
	if d.oneIn(2) {
		d.next()
	}
	d.add(conn, d.pick("EXEC", "EXEC", "DISCARD", "UNWATCH"))
	d.split()
}

func (d *draft) inlines(conn int) {
	for range 1 + d.IntN(3) {
		line := d.pick(`PING`, ` ping  "a b" `, `SET st1 "a\x00\n\"b"`, `set st1 'it\'s'`, `GET st1`, ``, `  `,
			`INCR st2`, `NOSUCH a b`, `ECHO ""`, `lpush li1 a b c`, `LRANGE li1 0 -1`, `EVAL "return {1,2}" 0`)
		d.ops = append(d.ops, op{conn, d.pipe, d.round, inline, []string{line}})
	}
	d.add(conn, d.command()...)
	d.split()
}

// listen subscribes, lets another connection publish, tries what a subscriber may and may not do,
// and unsubscribes by one of the ways.
func (d *draft) listen(conn int) {
	other := (conn + 1) % d.conns
	d.add(conn, "RESET") // what subscribes within a transaction is answered out of step
	d.add(conn, d.pick("SUBSCRIBE", "SSUBSCRIBE"), "ch1", "ch2")
	d.add(conn, "PSUBSCRIBE", "ch*", "x")
	d.split()
	d.next()
	for range 1 + d.IntN(3) {
		d.add(other, d.pick("PUBLISH", "SPUBLISH"), d.pick("ch1", "ch2", "x"), d.value())
	}
	d.split()
	d.next()
	d.add(conn, "PING")
	d.add(conn, "GET", "st1")
	if d.oneIn(2) {
		d.add(conn, "SUBSCRIBE", "x", "x")
		d.add(conn, "UNSUBSCRIBE", "ch1")
	}
	d.next()
	if d.oneIn(2) {
		d.add(conn, "RESET")
	} else {
		// By name: without one the server goes through a hash table.
		d.add(conn, "UNSUBSCRIBE", "ch1", "x", "ch2")
		d.add(conn, "PUNSUBSCRIBE", "x", "ch*")
		d.add(conn, "SUNSUBSCRIBE", "ch2", "ch1")
	}
	d.add(conn, "GET", "st1")
	d.split()
}

// parkAndWake blocks one connection until another brings what it waits for, or its time is over.
func (d *draft) parkAndWake(conn, other int) {
	d.add(conn, "RESET")
	d.add(conn, "HELLO", d.pick("2", "3"))
	d.next()
	d.add(other, "RESET")
	d.add(other, "DEL", "parked", "parked2", "parkedto")
	d.add(other, "XGROUP", "CREATE", "parkedgroup", "g", "$", "MKSTREAM")
	d.next()
	waits := []struct{ wait, wake string }{
		{"BLPOP parked parked2 20", "RPUSH parked a b"},
		{"BRPOP parked2 parked 20", "RPUSH parked a b"},
		{"BLMOVE parked parkedto LEFT RIGHT 20", "LPUSH parked x"},
		{"BRPOPLPUSH parked parkedto 20", "LPUSH parked x"},
		{"BLMPOP 20 2 parked parked2 LEFT COUNT 3", "RPUSH parked2 a b"},
		{"BZPOPMIN parked 20", "ZADD parked 1 a 2 b"},
		{"BZMPOP 20 1 parked MAX", "ZADD parked 1 a 2 b"},
		{"XREAD BLOCK 20000 STREAMS parked $", "XADD parked 7-1 f v"},
		{"XREADGROUP GROUP g c BLOCK 20000 STREAMS parkedgroup >", "XADD parkedgroup 9-* f v"},
		{"BLPOP parked 0.05", "PING"},
		{"BLPOP parked 20", "SET parked string"},
	}
	w := waits[d.IntN(len(waits))]
	d.ops = append(d.ops, op{conn, d.pipe, d.round, park, strings.Fields(w.wait)})
	d.next()
	d.add(other, strings.Fields(w.wake)...)
	if strings.HasPrefix(w.wake, "SET") {
		d.add(other, "DEL", "parked")
		d.add(other, "LPUSH", "parked", "late")
	}
	d.split()
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, collect, nil})
	d.next()
	d.add(conn, d.command()...)
}

// silence switches replies off and on again.
func (d *draft) silence(conn int) {
	d.add(conn, "CLIENT", "REPLY", d.pick("OFF", "SKIP"))
	d.add(conn, "INCR", d.key("string"))
	d.add(conn, "CLIENT", "REPLY", "ON")
	d.add(conn, d.command()...)
	d.split()
}

// farewell ends a connection by QUIT or by what is no command at all.
func (d *draft) farewell(conn int) {
	d.add(conn, "RESET")
	d.add(conn, d.command()...)
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, last, []string{d.pick(
		"*1\r\n$4\r\nQUIT\r\n", "QUIT\r\n", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nquit\r\n",
		"*1\r\n:1\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n", "*x\r\n", "*1\r\n$x\r\n", "GET \"a\r\n", "*3000000000\r\n",
		"*1\r\n$999999999999\r\n", "*1\r\n$4\r\nPING\r\n*1\r\n%1\r\n")}})
}

// company is one round in which several connections have pipelines under way at the same time.
// Their keys are their own, so that the order between them shows nowhere; every pipe carries
// something that only its connection can get back.
func (d *draft) company() {
	d.round++
	for conn := range d.conns {
		if d.oneIn(4) {
			continue
		}
		d.pipe++
		d.prefix = fmt.Sprintf("own%d:", conn)
		for i := range 1 + d.IntN(8) {
			switch d.IntN(8) {
			case 0:
				d.add(conn, "ECHO", fmt.Sprintf("connection %d, pipe %d, command %d", conn, d.pipe, i))
			case 1:
				d.add(conn, "INCR", d.prefix+"n")
			case 2:
				d.add(conn, "MULTI")
				d.add(conn, d.command()...)
				d.add(conn, "INCR", d.prefix+"n")
				d.add(conn, "EXEC")
			default:
				d.add(conn, d.command()...)
			}
		}
		d.split()
	}
}
