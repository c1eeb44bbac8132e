package proxy

import "time"

// Events tells an observer what clients do. Every field is optional; the
// functions are called from the data path and must not block.
type Events struct {
	// Accepted reports a connection attempt: "ok", "maxclients", "memory", "error".
	Accepted func(result string)
	// Closed reports the end of a client connection that was accepted with "ok".
	Closed func()
	// Commands reports n commands of one class read from a client.
	Commands func(class Class, n int)
	// Received and Sent report bytes read from and written to clients.
	Received func(n int)
	Sent     func(n int)
	// Served reports one sampled command: the time from its last byte read to its
	// reply handed to the client's socket, and the part of it not spent upstream.
	Served func(total, overhead time.Duration)
	// ProtocolError reports a client that sent something that is not RESP.
	ProtocolError func()
	// Limited reports a client that has met a limit.
	Limited func(l Limit)
	// PrivateWait reports how long a command waited for a private connection.
	PrivateWait func(d time.Duration)
}
