package proxy

import (
	"errors"

	"github.com/tidwall/redcon"

	"streamproxy/batcher"
)

// What clients are told when a command fails here and not at the server. Each
// begins with an error code as Redis's own do; the first three say whether sending
// the command again is safe.
const (
	textUnknown    = "ERR streamproxy: upstream connection lost; outcome unknown"
	textNotSent    = "ERR streamproxy: upstream unavailable; command not sent"
	textStopping   = "ERR streamproxy: shutting down; command not sent"
	textMaxClients = "ERR max number of clients reached"
	textNoAuth     = "NOAUTH Authentication required."
	textNoAuthHi   = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"
	textWrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	textTxLimit    = "ERR streamproxy: limit of transactions reached (--private-max); command not sent"
	textMemory     = "ERR streamproxy: memory limit reached; closing"
	textShort      = "ERR streamproxy: memory limit reached; command not sent"
	textBarred     = "NOPERM streamproxy: the user may no longer SELECT this database; command not sent"
	textNoRoom     = "ERR streamproxy: no room for a name or credentials that long (--memory-limit)"
)

// The first three as they travel.
var (
	replyUnknown  = redcon.AppendError(nil, textUnknown)
	replyNotSent  = redcon.AppendError(nil, textNotSent)
	replyStopping = redcon.AppendError(nil, textStopping)
	replyShort    = redcon.AppendError(nil, textShort)
	replyBarred   = redcon.AppendError(nil, textBarred)
	replyOK       = redcon.AppendOK(nil)
)

// failureReply is the reply to a command that failed with err.
func failureReply(err error) []byte {
	if errors.Is(err, batcher.ErrUnknown) {
		return replyUnknown
	}
	return replyNotSent
}
