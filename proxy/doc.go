// Package proxy serves clients: it accepts their connections, frames and
// classifies what they send, and routes each command to the connection that may
// carry it: a shared lane, a private connection, or a local answer.
//
// The files, by noun:
//
//	proxy, serve, shutdown, sweep, health   the process-wide object and its life
//	secure, plain                           a client that connects with TLS
//	partings                                the ends of clients' connections
//	session, intake, chunks, execute        one client: its reader and its commands
//	ahead                                   what it sends behind a command that blocks
//	identity, prover, turns, failures       who it is, and how that is asked
//	replies, output, insist                 what it is answered, in order, at its pace
//	class, table, options, version          which command is what, on which server
//	submit, weight, strangers               class shared: the lane, what is too heavy for it, who waits
//	exclusive, large, pin, leave            commands that need a connection of their own
//	deny, sift                              commands that clients may not send
//	streams, parked, rearm, fresh, calls    what stream consumers mean, see package reclaim
//	recall, witness, dismiss                blocked commands that are to end
//	state, clientcmd, local, urgent         the other classes, one handler each
//	hub, spares                             upstream connections by key
//
// Goroutines: one reader per session, from accept to the end of its connection;
// a session's writer while its client's socket is full; a leaver while a blocked
// command of a client that has left is being called back; the sweeper, the
// keeper of the ceiling, the health check and partings, one each per Proxy. All end with Proxy.Close.
//
// Locks: a session's mu guards what its reader shares with upstream readers. It is
// never held across a call into batcher or a socket; that of the strangers is taken after it. Proxy.mu and hub.mu guard
// maps; Proxy.mu is taken before those of the registry, the spares and a batcher
// connection, and never with a session's.
package proxy
