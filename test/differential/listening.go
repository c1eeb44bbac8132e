package differential

// Episodes with subscribers.

// listen subscribes, lets another connection publish, tries what a subscriber may and may not do,
// and unsubscribes by one of the ways.
func (d *draft) listen(conn int) {
	other := d.other(conn)
	d.add(conn, "RESET") // what subscribes within a transaction is answered out of step
	if d.oneIn(2) {
		d.add(conn, "HELLO", "3")
	}
	d.add(conn, d.pick("SUBSCRIBE", "SSUBSCRIBE"), "ch1", "ch2")
	d.add(conn, "PSUBSCRIBE", "ch*", "x")
	d.split()
	d.next()
	if d.oneIn(2) {
		d.add(other, "PUBSUB", d.pick("NUMSUB", "SHARDNUMSUB"), "ch1", "ch2", "none")
		d.add(other, "PUBSUB", "NUMPAT")
	}
	for range 1 + d.IntN(3) {
		d.add(other, d.pick("PUBLISH", "SPUBLISH"), d.pick("ch1", "ch2", "x"), d.value())
	}
	if d.oneIn(4) {
		d.add(other, "MULTI")
		d.add(other, "PUBLISH", "ch1", d.value())
		d.add(other, "EVAL", "return redis.call('publish', 'ch2', 'from a script')", "0")
		d.add(other, "EXEC")
	}
	d.split()
	d.next()
	d.add(conn, "PING")
	d.add(conn, "GET", "st1")
	if d.oneIn(2) {
		d.add(conn, "SUBSCRIBE", "x", "x")
		d.add(conn, "UNSUBSCRIBE", "ch1")
	}
	if d.oneIn(3) {
		d.pipeline(conn)
	}
	d.next()
	switch d.IntN(5) {
	case 0:
		d.add(conn, "RESET")
	case 1: // stays one, and meets what comes next
		return
	default:
		// By name: without one the server goes through a hash table.
		d.add(conn, "UNSUBSCRIBE", "ch1", "x", "ch2")
		d.add(conn, "PUNSUBSCRIBE", "x", "ch*")
		d.add(conn, "SUNSUBSCRIBE", "ch2", "ch1")
	}
	d.add(conn, "GET", "st1")
	d.split()
}

// chatter lets one connection subscribe, publish to itself and run commands, all of it in one
// pipeline: only RESP3 allows that.
func (d *draft) chatter(conn int) {
	d.add(conn, "RESET")
	d.add(conn, "HELLO", "3")
	for range 2 + d.IntN(8) {
		switch d.IntN(7) {
		case 0:
			d.add(conn, "SUBSCRIBE", d.pick("ch1", "ch2"), d.pick("x", "ch1"))
		case 1:
			d.add(conn, d.pick("UNSUBSCRIBE", "SUNSUBSCRIBE", "PUNSUBSCRIBE"), d.pick("ch1", "ch*"))
		case 2:
			d.add(conn, d.pick("PSUBSCRIBE", "SSUBSCRIBE"), d.pick("ch*", "x"))
		case 3, 4:
			d.add(conn, d.pick("PUBLISH", "SPUBLISH"), d.pick("ch1", "ch2", "x"), d.value())
		default:
			d.add(conn, d.command()...)
		}
	}
	d.split()
	d.next()
	d.add(conn, d.pick("RESET", "PING", "HELLO"))
}
