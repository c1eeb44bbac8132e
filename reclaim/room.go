package reclaim

import (
	"time"

	"streamproxy/internal/resp"
)

// What is claimed here is in memory as a whole before it is passed on. Nobody knows how
// large entries are before they have come, so each reply is read up to a bound, and what
// is longer is cut: its entries go back, and the command goes to the server, whose reply
// passes through in pieces.

const (
	// largeReply bounds one reply to a claim where MaxClaimBytes does not.
	largeReply = 8 << 20
	// smallReply is what one may have in any case.
	smallReply = 256 << 10
	// claimShares is into how many replies MaxClaimBytes is shared.
	claimShares = 16
	// largeFor is for how many intervals a stream whose entries were too large is left to
	// the server.
	largeFor = 10
)

// maxReply is how long one reply to a claim may be.
func (c *Config) maxReply() int {
	if c.MaxClaimBytes == 0 {
		return largeReply
	}
	return int(min(max(c.MaxClaimBytes/claimShares, smallReply), largeReply))
}

// reserve makes room for n replies to claims, if the bound allows. The lock is held.
func (e *Engine) reserve(n int) bool {
	if !e.roomFor(n) {
		return false
	}
	e.reserved += n
	return true
}

// roomFor reports whether there is room for n more replies. The lock is held.
func (e *Engine) roomFor(n int) bool {
	return e.cfg.MaxClaimBytes == 0 || e.reserved+n <= claimShares
}

// maxHeld bounds the bytes that are held for consumers.
func (c *Config) maxHeld() int64 {
	if c.MaxClaimBytes == 0 {
		return c.MaxHeldBytes
	}
	return min(c.MaxHeldBytes, c.MaxClaimBytes)
}

// enlarge notes that a target's entries are too large to be claimed here. The lock is held.
func (e *Engine) enlarge(t *target, now time.Time) {
	if !t.isLarge(now) {
		t.giant = ""
		e.cfg.Logger.Info("entries are too large to be claimed here; the server is asked for them",
			"stream", t.stream, "group", t.group)
	}
	t.large = now.Add(largeFor * e.cfg.Interval)
}

func (t *target) isLarge(now time.Time) bool { return now.Before(t.large) }

// isWhole reports whether a reply was not cut.
func isWhole(raw []byte) bool {
	_, n, err := resp.Parse(raw)
	return err == nil && n == len(raw)
}

// wholeElements cuts an array whose end may be missing into the raw frames of the elements
// that are there, and reports whether these are all.
func wholeElements(raw []byte) (list [][]byte, all bool) {
	n, pos := arrayHead(raw)
	for range n {
		_, size, err := resp.Parse(raw[pos:])
		if err != nil {
			return list, false
		}
		list = append(list, raw[pos:pos+size:pos+size])
		pos += size
	}
	return list, pos > 0 || isError(raw) || isNull(raw)
}
