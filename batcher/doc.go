// Package batcher moves commands of many owners over few upstream connections
// and brings each reply back to the owner whose command it answers.
//
// It knows no command names. What a command means, and which connection it may
// travel on, is decided above, in package proxy; here a command is a stretch of
// bytes that will be answered by one reply.
//
//   - Conn is one greeted upstream connection: a queue of bytes not yet written, a
//     FIFO of runs that await their replies, one reader.
//   - Lane keeps one live Conn for a key and replaces it when it is lost or retired.
//   - Policy decides when queued bytes leave.
//
// Goroutines, and what starts and ends them:
//
//   - Conn.read: one per connection, from NewConn until the socket is closed. It
//     alone hands replies to sinks and it alone fails what is left at the end.
//   - Conn.drain: started when a batch cannot be written at once or when commands
//     were queued during a write; ends when the queue is empty.
//   - the flush timer: one per connection with a flush delay, ended with it.
//   - Lane.dial: one per lane that lacks a connection, ends with success or Close.
//
// Lock order: there is none to remember. No function of this package calls a Sink
// or a socket while it holds a Conn's lock.
package batcher
