package differential

import "fmt"

// company is one round in which several connections have pipelines under way at the same time.
// Their keys and channels are their own, so that the order between them shows nowhere; every pipe
// carries something that only its connection can get back.
func (d *draft) company() {
	d.round++
	for conn := range d.conns {
		if d.oneIn(4) {
			continue
		}
		d.pipe++
		d.prefix = fmt.Sprintf("own%d:", conn)
		for i := range 1 + d.IntN(8) {
			d.beside(conn, i)
		}
		d.split()
	}
}

// beside appends what a connection may do beside others.
func (d *draft) beside(conn, i int) {
	own := d.prefix
	switch d.IntN(48) {
	case 0, 1, 2, 3, 4, 5:
		d.add(conn, "ECHO", fmt.Sprintf("connection %d, pipe %d, command %d", conn, d.pipe, i))
	case 6, 7, 8, 9:
		d.add(conn, "INCR", own+"n")
	case 10, 11, 12, 13, 14:
		d.add(conn, "MULTI")
		d.add(conn, d.command()...)
		d.add(conn, "INCR", own+"n")
		d.add(conn, "EXEC")
	case 15: // in several rounds
		d.add(conn, d.pick("MULTI", "EXEC", "DISCARD", "UNWATCH"))
	case 16:
		d.add(conn, "WATCH", own+"n")
	case 17:
		d.add(conn, "HELLO", "3")
		d.add(conn, d.pick("SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE"), own+"ch1")
		d.add(conn, "PSUBSCRIBE", own+"*")
		d.add(conn, d.pick("PUBLISH", "SPUBLISH"), own+"ch1", d.value())
		d.add(conn, d.pick("GET", "RESET", "PUNSUBSCRIBE"), own+"*")
	case 18:
		d.add(conn, d.pick("PUBLISH", "SPUBLISH"), own+"ch1", d.value())
	case 19:
		d.add(conn, "RESET")
	case 20:
		d.add(conn, "AUTH", "tenant", "tenantpass")
	case 21: // a giant now and then, beside which the others must not wait for ever
		d.add(conn, "EVAL", "return string.rep(ARGV[1], ARGV[2])", "0", fmt.Sprint("giant of ", conn, " "), d.pick("1000", "5000", "100000"))
	case 22:
		d.add(conn, "CLIENT", "TRACKING", d.pick("ON", "OFF"), "NOLOOP") // see track
		d.add(conn, "GET", own+"n")
	case 23:
		d.add(conn, "CLIENT", d.pick("NO-EVICT", "NO-TOUCH"), d.pick("ON", "OFF"))
	default:
		d.add(conn, d.command()...)
	}
}
