package reclaim

import (
	"time"

	"streamproxy/internal/resp"
)

// What is claimed here is in memory as a whole before it is passed on. Nobody knows how
// large entries are before they have come, so a claim asks for few of a stream at first, and
// then for as many as are about a portion, by what has come so far. Each reply is read up to a
// bound, and what is longer is cut: its entries go back, and the command goes to the server,
// whose reply passes through in pieces.

const (
	// largeReply bounds one reply to a claim where MaxClaimBytes does not.
	largeReply = 8 << 20
	// smallReply is what one may have in any case.
	smallReply = 256 << 10
	// portion is about how many bytes one claim asks for: others' replies may stand behind them, and
	// a client that has left meanwhile leaves them to be given back.
	portion = 1 << 20
	// fewEntries is how many entries are asked for of which nothing is known.
	fewEntries = 100
	// strangersEntries is how many a client is given that has had no reply yet.
	strangersEntries = 10
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

// portionOf is how many of a target's entries, of count, one claim asks for. The lock is held.
func (c *Config) portionOf(t *target, count int) int {
	if t.entrySize == 0 {
		return min(count, fewEntries)
	}
	return min(count, claimMost, max(1, min(portion, c.maxReply()/2)/t.entrySize))
}

// weigh learns from n entries of size bytes how large the target's are: at once that they are larger,
// by and by that they are smaller. The lock is held.
func (t *target) weigh(size int64, n int) {
	if n == 0 {
		return
	}
	each := int(size/int64(n)) + 1
	t.entrySize = max(each, (3*t.entrySize+each)/4)
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
