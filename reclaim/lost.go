package reclaim

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// lostLook is how many pending entries of the consumer are looked at in each stream. With
// more, nobody can tell cheaply which of them came last.
const lostLook = 100

// Assigned reports whether a blocked XREADGROUP may have been handed entries, whose reply
// was lost with its connection: its consumer has some that were delivered once and since
// the read was sent, or cannot be asked about. Those of another connection that reads in
// the same consumer's name count too. An error says that the server could not tell now.
func Assigned(ctx context.Context, up Upstream, id Identity, cmd resp.Command, sent time.Time) (bool, error) {
	r, ok := parseGroupRead(cmd)
	if !ok {
		return true, nil
	}
	var commands []byte
	streams := r.freshStreams()
	for _, s := range streams {
		commands = resp.AppendCommand(commands, "XPENDING", s, r.group, "-", "+", strconv.Itoa(lostLook), r.consumer)
	}
	replies, err := up.Do(ctx, id, commands, len(streams))
	if err != nil {
		return false, err
	}
	since := time.Since(sent) + time.Millisecond // the server's are whole ones
	for _, reply := range replies {
		if passing(reply) {
			return false, errServer{string(bytes.TrimSpace(reply))}
		}
		if r.mayHave(reply, since) {
			return true, nil
		}
	}
	return false, nil
}

// mayHave judges by what is pending for the consumer in one stream.
func (r *groupRead) mayHave(reply []byte, since time.Duration) bool {
	if code := errorCode(reply); code == "NOGROUP" || code == "WRONGTYPE" {
		return false
	}
	list, ok := parsePending(reply)
	if !ok || len(list) == lostLook {
		return true
	}
	for _, en := range list {
		if en.idle <= since && (en.count == 1 || r.claims) {
			return true
		}
	}
	return false
}

// passing reports whether a reply is an error of a server that asks for patience.
func passing(reply []byte) bool {
	switch errorCode(reply) {
	case "LOADING", "READONLY", "MASTERDOWN", "BUSY":
		return true
	}
	return false
}
