package reclaim

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// defaultCount is how many entries XAUTOCLAIM claims if it does not say.
const defaultCount = 100

// claimCall is an XAUTOCLAIM in the form that is understood here.
type claimCall struct {
	stream, group, consumer string
	minIdle                 time.Duration
	start                   string
	count                   int
}

// parseClaim reads an XAUTOCLAIM; ok is false for a form that is left to the
// server: JUSTID, numbers out of range, options that are not known.
func parseClaim(cmd resp.Command) (c claimCall, ok bool) {
	if cmd.Len() != 6 && cmd.Len() != 8 {
		return c, false
	}
	ms, ok := integer(cmd.Arg(4))
	if !ok || ms < 0 || ms > maxMillis || len(cmd.Arg(5)) == 0 { // no start is no place to go on from
		return c, false
	}
	c = claimCall{
		stream:   string(cmd.Arg(1)),
		group:    string(cmd.Arg(2)),
		consumer: string(cmd.Arg(3)),
		minIdle:  time.Duration(ms) * time.Millisecond,
		start:    string(cmd.Arg(5)),
		count:    defaultCount,
	}
	if cmd.Len() == 8 {
		n, ok := integer(cmd.Arg(7))
		if !fold(cmd.Arg(6), "count") || !ok || n < 1 || n > math.MaxInt32 {
			return c, false
		}
		c.count = int(n)
	}
	return c, true
}

// fromStart reports whether a claim begins at the first pending entry.
func (c *claimCall) fromStart() bool {
	return c.start == "0" || c.start == "0-0" || c.start == "-"
}

// lockCall is SET key token NX, with or without a lifetime.
type lockCall struct {
	key, token []byte
	ttl        time.Duration // 0: none
}

// parseLock reads the SET by which a lock is taken; its options come in any order.
func parseLock(cmd resp.Command) (l lockCall, ok bool) {
	if cmd.Len() < 4 || cmd.Len() > 6 {
		return l, false
	}
	l.key, l.token = cmd.Arg(1), cmd.Arg(2)
	nx := false
	for i := 3; i < cmd.Len(); i++ {
		unit := time.Millisecond
		switch {
		case fold(cmd.Arg(i), "nx") && !nx:
			nx = true
			continue
		case fold(cmd.Arg(i), "px"):
		case fold(cmd.Arg(i), "ex"):
			unit = time.Second
		default:
			return l, false
		}
		i++
		n, good := lifetime(cmd.Arg(i), unit)
		if l.ttl != 0 || !good {
			return l, false
		}
		l.ttl = n
	}
	return l, nx
}

// lifetime reads a positive number of units.
func lifetime(b []byte, unit time.Duration) (time.Duration, bool) {
	n, ok := integer(b)
	if !ok || n < 1 || n > math.MaxInt64/int64(unit)/2 {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

// integer reads a number as the server does, which takes neither a plus sign nor zeros
// in front: what it refuses must not be understood here.
func integer(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(b)
}

// scriptCall is EVALSHA with one key, as the scripts of a lock are called.
type scriptCall struct {
	script     lockScript
	key, token []byte
	rest       [][]byte
}

// parseScript reads an EVALSHA of one of the lock scripts.
func parseScript(cmd resp.Command) (c scriptCall, ok bool) {
	if cmd.Len() < 5 || !bytes.Equal(cmd.Arg(2), []byte("1")) {
		return c, false
	}
	c.script = scriptOf(cmd.Arg(1))
	c.key, c.token = cmd.Arg(3), cmd.Arg(4)
	for i := 5; i < cmd.Len(); i++ {
		c.rest = append(c.rest, cmd.Arg(i))
	}
	return c, c.script != noScript
}

// GuardsLock reports whether a command is an EVALSHA of one of the lock scripts, as
// clients call them: it touches nothing but one key that holds a string.
func GuardsLock(cmd resp.Command) bool {
	_, ok := parseScript(cmd)
	return ok && fold(cmd.Arg(0), "evalsha")
}

// fold reports whether b is word in any case; the word consists of lower-case
// letters.
func fold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// millis writes a duration as the server counts them.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// cloneCommand copies a command out of its reader's buffers.
func cloneCommand(c resp.Command) resp.Command {
	return resp.Command{Raw: bytes.Clone(c.Raw), Args: slices.Clone(c.Args)}
}
