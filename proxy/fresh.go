package proxy

import (
	"sync/atomic"

	"streamproxy/reclaim"
)

// parcel is what a reply carries that must not get lost with it. One of its methods is
// called: Written when a byte of the reply may have reached the client, Drop when none
// did.
type parcel interface {
	Written()
	Drop()
}

var (
	_ parcel = (*reclaim.Handout)(nil)
	_ parcel = (*freshEntries)(nil)
)

// freshEntries is what a blocked read of a group has brought. The server counts the
// entries as delivered; if its client never sees them they are given back.
type freshEntries struct {
	s       *session
	e       *exclusive
	written atomic.Bool
}

// Written implements parcel.
func (f *freshEntries) Written() { f.written.Store(true) }

// Drop implements parcel. It is called when the session has ended, after the last of
// its replies.
func (f *freshEntries) Drop() {
	f.s.mu.Lock()
	left := f.e.left
	f.s.mu.Unlock()
	if left {
		return // whoever calls the read back does it, see leave
	}
	commands, n, told := f.s.unread(f.e)
	if n == 0 {
		return
	}
	id, p := f.s.streamIdentity(), f.s.p
	p.wg.Go(func() {
		ctx, cancel := p.within(p.cfg.UpstreamTimeout)
		defer cancel()
		if _, err := (calls{p}).Do(ctx, id, commands, n); err != nil {
			p.log.Warn("entries read for a client that left could not be given back", "streams", n, "error", err)
			return
		}
		told()
	})
}
