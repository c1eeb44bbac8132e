package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/redis/rueidis"
)

// HandshakeError is the server's refusal to take a connection as it was asked.
type HandshakeError struct {
	// Step is the command that was refused: AUTH, HELLO, SELECT or PING.
	Step string
	// Reply is the server's error as it came, CRLF included, fit to be forwarded.
	Reply []byte
}

// Error names the step and quotes the server.
func (e *HandshakeError) Error() string {
	return fmt.Sprintf("handshake: %s: %s", e.Step, errorText(e.Reply))
}

// ReplyError is the server's error reply to a command.
type ReplyError struct {
	// Reply is the error as it came, CRLF included.
	Reply []byte
}

// Error quotes the server.
func (e *ReplyError) Error() string { return errorText(e.Reply) }

// noPasswordError is a dial that was not begun for want of the password: the last client who had
// proven it has left, or a file cannot be read. It tells nothing of the server.
type noPasswordError struct{ err error }

func (e *noPasswordError) Error() string { return e.err.Error() }
func (e *noPasswordError) Unwrap() error { return e.err }

// errorText strips the framing of an error reply: "-ERR x\r\n" or "!5\r\nERR x\r\n".
func errorText(reply []byte) string {
	if len(reply) > 0 && reply[0] == '!' {
		_, reply, _ = bytes.Cut(reply, []byte("\r\n"))
	}
	return strings.TrimPrefix(strings.TrimSuffix(string(reply), "\r\n"), "-")
}

// serverText returns what the server said when err is, or wraps, its own error
// reply; empty when it never answered.
func serverText(err error) string {
	var he *HandshakeError
	if errors.As(err, &he) {
		return errorText(he.Reply)
	}
	var reply *ReplyError
	if errors.As(err, &reply) {
		return errorText(reply.Reply)
	}
	var re *rueidis.RedisError
	if errors.As(err, &re) && !re.IsNil() {
		return re.Error()
	}
	return ""
}

func hasCode(text string, codes ...string) bool {
	code, _, _ := strings.Cut(text, " ")
	for _, c := range codes {
		if code == c {
			return true
		}
	}
	return false
}

// NotReady says whether the server answered that it cannot serve yet: LOADING
// its data set, or MASTERDOWN on a replica that serves no stale data.
func NotReady(err error) bool { return notReadyText(serverText(err)) }

func notReadyText(text string) bool { return hasCode(text, "LOADING", "MASTERDOWN") }

// Busy says whether the server answered that a slow script or function holds it.
func Busy(err error) bool { return hasCode(serverText(err), "BUSY") }

// NotNow says whether the server answered that it can do nothing for anybody at present: a slow script
// holds it, or it loads its data, or has lost its master.
func NotNow(err error) bool { return Busy(err) || notReadyText(serverText(err)) }

// Refused says whether the server answered that it will not run this command
// for this user, now or later: denied by ACL, or unknown to it.
func Refused(err error) bool {
	text := serverText(err)
	lower := strings.ToLower(text)
	return hasCode(text, "NOPERM", "NOAUTH") || strings.Contains(lower, "unknown command") ||
		strings.Contains(lower, "unknown subcommand")
}

// Denied says whether the server answered that the credentials are not, or no longer,
// right: the user is gone or switched off, or its password has changed.
func Denied(err error) bool { return hasCode(serverText(err), "WRONGPASS", "NOAUTH") }

// Forbidden says whether the server let the user in, but not do what the connection begins with.
func Forbidden(err error) bool { return hasCode(serverText(err), "NOPERM") }

// Unavailable says whether err means that the server could not be reached, broke
// off, or had no room, so that another attempt is sensible. It is false for nil
// and for every other answer of the server.
func Unavailable(err error) bool {
	if err == nil {
		return false
	}
	text := serverText(err)
	return text == "" || maxClientsText(text)
}

// NoRoom says whether err is of a connection that there was no room for: the server has as many
// clients as it may have, or this process as many descriptors.
func NoRoom(err error) bool {
	return maxClientsText(serverText(err)) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// maxClientsText recognises the line with which Redis turns away a connection
// over its own limit, before it reads a byte from it. The control plane's library
// drops the ERR.
func maxClientsText(text string) bool {
	return strings.HasPrefix(strings.TrimPrefix(text, "ERR "), "max number of clients")
}
