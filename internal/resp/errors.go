package resp

// ProtocolError says that bytes are not the Redis protocol, or pass a limit. The
// stream has no known position afterwards: the connection must be closed.
type ProtocolError struct {
	// Reason is Redis's own wording where Redis has one. It holds neither CR nor LF.
	Reason string
}

// Error returns the text as Redis sends it behind "-ERR ".
func (e *ProtocolError) Error() string { return "Protocol error: " + e.Reason }

// Redis's texts (networking.c), for what clients send.
const (
	reasonInline       = "too big inline request"
	reasonCountLine    = "too big mbulk count string"
	reasonBulkLine     = "too big bulk count string"
	reasonCount        = "invalid multibulk length"
	reasonBulk         = "invalid bulk length"
	reasonPreAuthCount = "unauthenticated multibulk length"
	reasonPreAuthBulk  = "unauthenticated bulk length"
	reasonQuotes       = "unbalanced quotes in request"
)

// Our texts, for what servers send; they reach logs only.
const (
	reasonReplyType   = "unknown reply type"
	reasonReplyPush   = "push inside another reply"
	reasonReplyLine   = "malformed reply line"
	reasonReplyLength = "malformed length in reply"
	reasonReplyCount  = "reply announces too many elements"
	reasonReplyEnd    = "bulk in reply without its line end"
	reasonReplyChunk  = "streamed string without its next chunk"
	reasonReplyPairs  = "streamed map ends after a key"
	reasonReplyDepth  = "streamed replies nested too deep"
)

// reasonExpected words the refusal of a byte that stands where '$' must. Redis
// turns line ends inside error texts to spaces; NUL would end the text in C.
func reasonExpected(c byte) string {
	if c == '\r' || c == '\n' || c == 0 {
		c = ' '
	}
	return "expected '$', got '" + string([]byte{c}) + "'"
}
