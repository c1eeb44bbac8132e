package differential

// happening is something that a connection does with nothing else under way on the server but
// what it asks of others itself.
type happening struct {
	weight int
	// company: it needs a second connection.
	company bool
	play    func(d *draft, conn int)
}

// happenings are drawn by weight.
var happenings = []happening{
	{240, false, (*draft).pipeline},
	{40, false, (*draft).transaction},
	{20, false, (*draft).guarded},
	{20, false, (*draft).inlines},
	{20, true, (*draft).listen},
	{10, false, (*draft).chatter},
	{20, true, (*draft).parkAndWake},
	{8, true, (*draft).unblock},
	{12, true, (*draft).abandon},
	{4, true, (*draft).pause},
	{10, false, (*draft).silence},
	{10, false, (*draft).farewell},
	{8, true, (*draft).kill},
	{8, false, (*draft).mode},
	{12, true, (*draft).track},
	{6, true, (*draft).eavesdrop},
	{12, false, (*draft).identify},
	{4, false, (*draft).starve},
	{1, false, (*draft).demote},
	{12, false, (*draft).sizes},
	{6, false, (*draft).load},
	{8, false, (*draft).greet},
	{10, false, (*draft).introduce},
	{6, false, (*draft).leave},
	{10, false, (*draft).startOver},
}

var happeningWeights = func() (sum int) {
	for _, h := range happenings {
		sum += h.weight
	}
	return sum
}()

func (d *draft) episode(conn int) {
	d.next()
	for {
		k := d.IntN(happeningWeights)
		for i := range happenings {
			h := &happenings[i]
			if k -= h.weight; k >= 0 {
				continue
			}
			if h.company && d.conns == 1 {
				break
			}
			h.play(d, conn)
			return
		}
	}
}

// other is a connection beside conn, itself if there is no other.
func (d *draft) other(conn int) int { return (conn + 1) % d.conns }

// step appends a command and sometimes ends the pipe behind it.
func (d *draft) step(conn int, torn bool, args ...string) {
	d.add(conn, args...)
	if torn && d.oneIn(2) {
		d.split()
		d.next()
	}
}

// line appends a command given in the inline form.
func (d *draft) line(conn int, text string) { d.add(conn, words(text)...) }

func (d *draft) pipeline(conn int) {
	for range 1 + d.IntN(10) {
		d.add(conn, d.command()...)
	}
	d.split()
}

// transaction sends MULTI to EXEC, in one piece or in several.
func (d *draft) transaction(conn int) {
	torn := d.oneIn(2)
	d.step(conn, torn, d.pick("MULTI", "multi"))
	for range d.IntN(5) {
		d.step(conn, torn, d.command()...)
	}
	if d.oneIn(10) {
		d.step(conn, torn, "MULTI")
	}
	d.step(conn, torn, d.pick("EXEC", "EXEC", "EXEC", "DISCARD"))
	if d.oneIn(4) {
		d.step(conn, torn, d.command()...)
	}
	d.split()
}

// guarded is a transaction under WATCH that another connection may spoil.
func (d *draft) guarded(conn int) {
	key := d.key("string")
	d.add(conn, "WATCH", key)
	if d.oneIn(3) {
		d.add(conn, d.command()...)
	}
	d.next()
	if d.oneIn(2) {
		d.add(d.other(conn), "SET", key, "other")
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
			`INCR st2`, `NOSUCH a b`, `ECHO ""`, `lpush li1 a b c`, `LRANGE li1 0 -1`, `EVAL "return {1,2}" 0`,
			`MULTI`, `EXEC`, `HELLO 3`, `HELLO 2`, `SELECT 1`, `BLPOP li0 0.001`, `CLIENT GETNAME`, `RESET`)
		d.ops = append(d.ops, op{conn, d.pipe, d.round, inline, []string{line}})
	}
	d.add(conn, d.command()...)
	d.split()
}

// silence switches replies off and on again. Within a transaction that makes an array shorter than
// it says, and the reading of it wait in vain: rarely.
func (d *draft) silence(conn int) {
	if !d.oneIn(20) {
		d.add(conn, "RESET")
	}
	torn := d.oneIn(3)
	d.add(conn, "CLIENT", "REPLY", d.pick("OFF", "SKIP", "ON"))
	for range 1 + d.IntN(3) {
		d.add(conn, "INCR", d.key("string"))
	}
	if torn {
		d.add(conn, "CLIENT", "REPLY", d.pick("SKIP", "OFF", "nosuch"))
		d.add(conn, d.command()...)
	}
	d.add(conn, "CLIENT", "REPLY", "ON")
	d.add(conn, d.command()...)
	d.split()
}

// farewell ends a connection by QUIT or by what is no command at all.
func (d *draft) farewell(conn int) {
	if !d.oneIn(3) {
		d.add(conn, "RESET")
	}
	d.add(conn, d.command()...)
	d.next()
	before := d.pick("", "", "*1\r\n$4\r\nPING\r\n", "*2\r\n$3\r\nGET\r\n$3\r\nst1\r\n", "*1\r\n$5\r\nMULTI\r\n",
		"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n")
	d.ops = append(d.ops, op{conn, d.pipe, d.round, last, []string{before + d.pick(
		"*1\r\n$4\r\nQUIT\r\n", "QUIT\r\n", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nquit\r\n", "*2\r\n$4\r\nQUIT\r\n$1\r\nx\r\n",
		"*1\r\n:1\r\n", "*2\r\n$3\r\nGET\r\n$-1\r\n", "*x\r\n", "*1\r\n$x\r\n", "GET \"a\r\n", "*3000000000\r\n",
		"*1\r\n$999999999999\r\n", "*1\r\n$4\r\nPING\r\n*1\r\n%1\r\n", "*1\r\n$\r\n", "*1\r\n$-5\r\n", "*1\r\n\r\n",
		"*99999999999999999999\r\n", "*1\r\nPING\r\n", "SET 'a b\r\n", "*2\r\n$4\r\nECHO\r\n*1\r\n")}})
}

// startOver puts the connection back to its beginning.
func (d *draft) startOver(conn int) {
	d.add(conn, "RESET")
	d.add(conn, "HELLO", d.pick("2", "3"))
}

// leave closes the connection from the client's side, with a transaction open or without one.
func (d *draft) leave(conn int) {
	d.add(conn, "RESET")
	for range d.IntN(4) {
		d.line(conn, d.pick("MULTI", "WATCH st1", "INCR st1", "HELLO 3"))
	}
	d.next()
	d.ops = append(d.ops, op{conn, d.pipe, d.round, drop, nil})
	d.next()
	d.add(conn, d.command()...)
}
