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

// What the proxy's own errors begin and end with; the reason stands between.
const (
	proxyError  = "-ERR streamproxy: "
	saysUnknown = "; outcome unknown\r\n"
	saysNotSent = "; command not sent\r\n"
)

// refusals begin the errors by which a server in trouble declines a command.
var refusals = []string{"-LOADING ", "-OOM ", "-BUSY ", "-MISCONF ", "-EXECABORT ", "-MASTERDOWN ", "-UNBLOCKED "}

// verdictOf judges one reply. Any other error is the server's answer; whoever asked decides whether
// it can be one.
func verdictOf(reply string) verdict {
	switch {
	case reply == "":
		return lost
	case reply[0] != '-':
		return done
	case strings.HasPrefix(reply, proxyError) && strings.HasSuffix(reply, saysUnknown):
		return unknown
	case strings.HasPrefix(reply, proxyError) && strings.HasSuffix(reply, saysNotSent):
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
		"+OK\r\n": done, "-WRONGTYPE x\r\n": done, "": lost,
		"-ERR streamproxy: upstream connection lost; outcome unknown\r\n": unknown,
		"-ERR streamproxy: upstream unavailable; command not sent\r\n":    notSent,
		"-ERR streamproxy: shutting down; command not sent\r\n":           notSent,
		"-OOM command not allowed\r\n":                                    refused, "-EXECABORT Transaction discarded\r\n": refused,
	} {
		if got := verdictOf(reply); got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
}
