// Package reclaim knows what stream consumers mean: which of their entries nobody
// has seen, and what has to be said to the server about them. It knows no sockets;
// what it decides travels as commands that package proxy sends.
//
// # What it does
//
// A worker that asks for abandoned entries before every read pays round trips for
// an answer that is nearly always "nothing". Here that answer is known: one proxy
// probes every stream once per interval, all proxies share the result through a
// lease, and an XAUTOCLAIM is answered on the spot until a probe finds something.
// Then the entry is claimed in the name of the consumer that asks, when it asks.
//
// # Invariants
//
//   - Nothing is answered here but for a profile: a stream, group and min-idle for
//     which this very user's own XAUTOCLAIM has succeeded, with a probe that found
//     nothing within the last four intervals.
//   - Safety never rests on the lease, nor on what another proxy says. It rests on
//     XAUTOCLAIM and XCLAIM, which move an entry atomically and only if it is idle. A
//     wrong "hot" costs a round trip; a wrong "cold" costs an interval.
//   - A claimed entry belongs to one place at a time: a batch held for a consumer, a
//     Handout on its way to a client, or a give-back. It leaves a place by moving.
//   - Nothing is acked or deleted here, and nothing is claimed with a lower min-idle
//     or a higher COUNT than the client's, nor for a consumer without a connection.
//   - A give-back is guarded by the server: it touches an entry only while that still
//     bears the mark of our claim, so it may be repeated.
//
// Rejected: one background reader that claims and keeps entries in store for
// whoever asks. Entries would age in the proxy, a crash would hide them for a whole
// min-idle, and they would have to be claimed for a consumer that may never come.
//
// # How it is called
//
// An Engine is one per upstream server. Per client connection there is a Session,
// called only by that connection's reader:
//
//	Join, Become, Leave   the connection begins, changes its identity, ends
//	Command               a command that is Interesting, shared or blocking
//	Block                 a whole transaction, MULTI and EXEC included
//
// What a client sends without being shown to its session, and what Meddles or Hides, is
// announced to Engine.Unseen.
//
// Both judge before the command is sent and return a Verdict. Forward is the zero
// value and means: send it as it is. A Verdict may hand out a Watch, a Task, a
// Parked and a Handout; each must be brought to its end:
//
//	Watch    Seen with the replies, or with nil when they will not come
//	Task     Run, in a goroutine that is not an upstream reader, after everything
//	         earlier of the session was answered and before anything later of it is
//	         judged; its verdict is final
//	Parked   Nil when the blocked read was answered with a null, which may be to be
//	         sent again; End when it was answered otherwise or its client has left
//	Handout  Written as soon as one byte of the reply may have reached the client,
//	         Drop if none did
//
// Reads of a group that were answered to nobody are the caller's own to give back,
// see Unread.
//
// # Goroutines and locks
//
// Engine.run is started by Start and ended by Close; it starts jobs (a round, a
// learning, a give-back), each bounded by jobTimeout and joined by Close. One mutex
// guards all state; it is never held across a call to Upstream.
package reclaim
