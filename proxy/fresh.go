package proxy

import "streamproxy/reclaim"

// parcel is what a reply carries that must not get lost with it. One of its methods is
// called: Written when a byte of the reply may have reached the client, Drop when none
// did.
type parcel interface {
	Written()
	Drop()
}

var (
	_ parcel = (*reclaim.Handout)(nil)
	_ parcel = freshEntries{}
)

// freshEntries is what a blocked read of a group has brought. The server counts the
// entries as delivered; if its client never sees them they are given back.
type freshEntries struct {
	s *session
	e *exclusive
}

// Written implements parcel.
func (f freshEntries) Written() {}

// Drop implements parcel. It is called when the session has ended, after the last of
// its replies, and while its user is known yet.
func (f freshEntries) Drop() { f.s.returnUnread(f.e) }
