// Package resp frames the Redis protocol in both directions: where a client's
// command ends (CommandScanner), where a server's reply ends (ReplyScanner),
// and how a command is written (Append functions). It knows no sockets.
//
// Both scanners are push state machines. The caller hands over whatever bytes it
// has, in pieces of any size; the scanner says how many of them belong to the
// frame under way and whether it is complete. A scanner never asks for bytes it
// has already consumed, so the cost is linear however the input is cut, and a
// buffer may be forwarded or dropped as soon as it was scanned. The rejected
// alternative, a parser that is called again from the first byte until a frame
// is whole, costs O(n²) on slow links and recurses on hostile nesting.
//
// Commands are read more strictly than Redis reads them. Redis skips the two
// bytes behind a bulk and the one behind a header's CR without looking at them;
// bytes forwarded to somebody else's connection must have one reading only.
//
// Replies are framed, never decoded: contents are checked only as far as they
// help to notice that a stream has lost its step.
package resp
