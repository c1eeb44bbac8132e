package batcher

import "time"

// FlushReason says why a batch left when it did (see Policy).
type FlushReason uint8

// The reasons, in the order of the policy's rules. Drain is a flush that did
// not ask the policy, because the proxy is shutting down.
const (
	FlushIdle FlushReason = iota
	FlushNobody
	FlushFull
	FlushDelay
	FlushDrain
	numFlushReasons
)

var flushReasonNames = [numFlushReasons]string{"idle", "nobody", "full", "delay", "drain"}

// String returns the reason as it stands in the metric's label.
func (r FlushReason) String() string { return flushReasonNames[r] }

// FlushReasons lists every reason, for collectors that create their series ahead.
func FlushReasons() []FlushReason {
	return []FlushReason{FlushIdle, FlushNobody, FlushFull, FlushDelay, FlushDrain}
}

// Events tells an observer what happens on upstream connections. Every field is
// optional; the functions are called from the data path, without any lock held,
// and must not block. Kind is the role of a connection: lane, private, control.
type Events struct {
	// Flushed reports one batch handed to the socket: commands and bytes in it, and
	// how long its first byte had waited.
	Flushed func(reason FlushReason, commands, bytes int, waited time.Duration)
	// RoundTrip reports one sample: from a write on an idle connection to the first
	// byte that came back.
	RoundTrip func(d time.Duration)
	// DelayChosen reports the flush delay in force after a new round-trip sample.
	DelayChosen func(d time.Duration)
	// Opened and Closed bracket the life of an upstream connection.
	Opened func(kind string)
	Closed func(kind string)
	// Failed reports a connection that ended while it was wanted. Reason is one of
	// eof, read, write, protocol, timeout, dial, handshake.
	Failed func(reason string)
	// Reconnected reports that a lane has a connection again after it had lost one.
	Reconnected func()
	// PushDropped reports a RESP3 push that no client had subscribed to.
	PushDropped func()
}
