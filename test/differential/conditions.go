package differential

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"

	"streamproxy/internal/redistest"
)

// Episodes about who the client is and how the server is.

// users exist on both servers from the beginning, so that no script changes what a proven identity
// may do. All may ask for what the proxy answers itself, which does not look into their rules.
var users = []string{
	"reader on >readerpass ~* &* +@read +@connection +@transaction",
	"tenant on >tenantpass ~own* &own* +@all -@admin -@dangerous",
	"plain on >plainpass ~* &* +@all -multi -client|unblock -subscribe",
	"bare on >barepass ~st* +get +set +select +@connection +@transaction",
	"gone off >gonepass ~* &* +@all",
}

// addUsers makes them.
func addUsers(s *redistest.Server) {
	for _, u := range users {
		s.Do(append([]string{"ACL", "SETUSER"}, strings.Fields(u)...)...)
	}
}

// identify proves to be somebody, in one of the ways, and goes on as that.
func (d *draft) identify(conn int) {
	// Redis from 7.2 on does not answer a wrong password while replies are pending, nor within EXEC.
	d.add(conn, "RESET")
	d.next()
	name := d.pick("reader", "tenant", "plain", "bare", "gone", "nobody")
	password := name + "pass"
	if d.oneIn(8) {
		password = "wrong"
	}
	switch d.IntN(4) {
	case 0:
		d.add(conn, "HELLO", d.pick("2", "3"), "AUTH", name, password)
	case 1:
		// In this order: Redis 7.0 keeps the name that stood before a wrong password.
		d.add(conn, "hello", "3", "auth", name, password, "setname", "me")
	default:
		d.add(conn, d.pick("AUTH", "auth"), name, password)
	}
	d.add(conn, "ACL", "WHOAMI")
	if d.oneIn(3) {
		d.transaction(conn)
	}
	d.pipeline(conn)
	if d.oneIn(2) {
		d.next()
		d.add(conn, d.pick("RESET", "AUTH", "HELLO"))
		d.add(conn, "ACL", "WHOAMI")
	}
}

// greet is what HELLO may be told.
func (d *draft) greet(conn int) {
	for range 1 + d.IntN(3) {
		d.line(conn, d.pick("HELLO", "HELLO 3", "hello 2", "HELLO 4", "HELLO 03", "HELLO x", "HELLO 3 AUTH", "HELLO 3 AUTH default",
			"HELLO 3 AUTH default wrong", "HELLO 3 SETNAME", "HELLO 3 SETNAME me", "HELLO 2 SETNAME you SETNAME me", "HELLO 2 NOSUCH",
			"HELLO 3 NOSUCH", "HELLO 2 AUTH default any SETNAME me", "HELLO 3 AUTH reader readerpass SETNAME me", "HELLO 1"))
		d.line(conn, d.pick("CLIENT GETNAME", "PING", "CLIENT ID", "HGETALL ha1", "GET none", "ACL WHOAMI"))
	}
	d.split()
	if d.oneIn(2) {
		d.next()
		d.pipeline(conn)
	}
}

// introduce changes within a transaction what the client is known by, and asks for it behind that.
func (d *draft) introduce(conn int) {
	if d.oneIn(2) {
		d.line(conn, d.pick("CLIENT SETNAME you", "HELLO 3", "HELLO 2", "WATCH st1", "WATCH st1"))
	}
	if d.oneIn(4) {
		d.line(conn, d.pick("HELLO 3", "CLIENT SETNAME me", "SELECT 1", "GET none", "HELLO 2 SETNAME me"))
	}
	torn := d.oneIn(2)
	d.step(conn, torn, "MULTI")
	for range 1 + d.IntN(4) {
		if d.oneIn(3) {
			d.step(conn, torn, d.command()...)
			continue
		}
		d.step(conn, torn, words(d.pick("CLIENT SETNAME me", "CLIENT SETNAME you", `CLIENT SETNAME ""`, `CLIENT SETNAME "a b"`, "HELLO 3", "HELLO 2",
			"HELLO 3 SETNAME me", "HELLO 2 SETNAME you", "SELECT 1", "SELECT 99", "MULTI", "WATCH st1", "GET none"))...)
	}
	d.step(conn, torn, d.pick("EXEC", "EXEC", "EXEC", "EXEC", "DISCARD"))
	for range 1 + d.IntN(3) {
		d.line(conn, d.pick("CLIENT GETNAME", "CLIENT GETNAME", "GET none", "CLIENT SETNAME me", "UNWATCH"))
	}
	d.split()
	d.next()
	d.line(conn, "CLIENT GETNAME")
	d.split()
}

// starve leaves the server no memory for what needs some.
func (d *draft) starve(conn int) {
	d.add(conn, "RESET")
	d.add(conn, "CONFIG", "SET", "maxmemory", "1")
	d.next()
	if d.oneIn(2) {
		d.transaction(conn)
	}
	d.pipeline(d.other(conn))
	d.next()
	d.add(conn, "DISCARD")
	d.add(conn, "RESET")
	d.add(conn, "CONFIG", "SET", "maxmemory", "0")
}

// demote makes the server the replica of nobody who answers: it refuses to write.
func (d *draft) demote(conn int) {
	d.add(conn, "RESET")
	d.add(conn, d.pick("REPLICAOF", "SLAVEOF"), "127.0.0.1", "1")
	d.next()
	d.pipeline(conn)
	if d.oneIn(2) {
		d.transaction(d.other(conn))
	}
	d.next()
	d.add(conn, "RESET")
	d.add(conn, d.pick("REPLICAOF", "SLAVEOF"), "NO", "ONE")
}

// load has the server keep a script, and forget it.
func (d *draft) load(conn int) {
	text := d.pick(scripts...)
	sum := sha1.Sum([]byte(text))
	sha := hex.EncodeToString(sum[:])
	for range 2 {
		d.add(conn, "SCRIPT", "LOAD", text)
		d.add(conn, d.pick("EVALSHA", "EVALSHA_RO", "evalsha"), sha, "1", d.key("string"), d.value())
		d.add(conn, "SCRIPT", d.pick("EXISTS", "SHOW"), sha)
		d.add(conn, d.command()...)
		if d.oneIn(2) {
			d.add(conn, "SCRIPT", "FLUSH", d.pick("SYNC", "ASYNC"))
		}
	}
	d.split()
}

// sizes sends and asks for values of sizes close to a threshold, in company of small commands.
func (d *draft) sizes(conn int) {
	block := d.oneIn(4)
	if block {
		d.add(conn, "MULTI")
	}
	for range 1 + d.IntN(3) {
		key, value := d.key("string"), strings.Repeat("s", d.around())
		switch d.IntN(6) {
		case 0:
			d.add(conn, "ECHO", value)
		case 1:
			d.add(conn, "EVAL", "return string.rep('x', ARGV[1])", "0", strconv.Itoa(d.around()))
		case 2:
			d.add(conn, "NOSUCH", value)
		case 3:
			d.add(conn, append([]string{"DEL"}, strings.Fields(strings.Repeat("manykeys ", d.around()/16))...)...)
		default:
			d.add(conn, "SET", key, value)
			d.add(conn, "GET", key)
		}
		d.add(conn, d.command()...)
	}
	if block {
		d.add(conn, "EXEC")
	}
	d.split()
}
