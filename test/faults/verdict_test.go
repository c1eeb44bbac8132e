//go:build faults

package faults

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// verdict is what became of a command, as far as its client was told.
type verdict uint8

const (
	done    verdict = iota // the server's answer
	refused                // the server said that it did not execute it
	notSent                // the proxy said that the server has not seen it
	unknown                // the proxy said that nobody knows
	lost                   // the connection ended without an answer
	numVerdicts
)

// String names the verdict as results and the page do.
func (v verdict) String() string {
	return [numVerdicts]string{"answered", "refused", "not sent", "unknown", "lost"}[v]
}

// certain reports whether a command with this verdict cannot have been executed.
func (v verdict) certain() bool { return v == refused || v == notSent }

// doubtful reports whether it may have been executed or not.
func (v verdict) doubtful() bool { return v == unknown || v == lost }

const (
	replyUnknown = "-ERR streamproxy: upstream connection lost; outcome unknown\r\n"
	replyNotSent = "-ERR streamproxy: upstream unavailable; command not sent\r\n"
)

// refusals begin the errors by which a server in trouble declines a command.
var refusals = []string{"-LOADING ", "-OOM ", "-BUSY ", "-MISCONF ", "-EXECABORT ", "-MASTERDOWN "}

// verdictOf judges one reply. Any other error is the server's answer; whoever asked decides whether
// it can be one.
func verdictOf(reply string) verdict {
	switch {
	case reply == "":
		return lost
	case reply[0] != '-':
		return done
	case reply == replyUnknown:
		return unknown
	case reply == replyNotSent:
		return notSent
	}
	for _, r := range refusals {
		if strings.HasPrefix(reply, r) {
			return refused
		}
	}
	return done
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestVerdictOf(t *testing.T) {
	for reply, want := range map[string]verdict{
		"+OK\r\n": done, "-WRONGTYPE x\r\n": done, "": lost, replyUnknown: unknown, replyNotSent: notSent,
		"-OOM command not allowed\r\n": refused, "-EXECABORT Transaction discarded\r\n": refused,
	} {
		if got := verdictOf(reply); got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
}
