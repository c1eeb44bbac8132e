package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestPredicates(t *testing.T) {
	said := func(text string) error {
		return fmt.Errorf("wrapped: %w", &HandshakeError{Step: "SELECT", Reply: []byte("-" + text + "\r\n")})
	}
	tests := []struct {
		name                                 string
		err                                  error
		notReady, busy, refused, unavailable bool
	}{
		{"nil", nil, false, false, false, false},
		{"eof", io.EOF, false, false, false, true},
		{"timeout", context.DeadlineExceeded, false, false, false, true},
		{"loading", said("LOADING Redis is loading the dataset in memory"), true, false, false, false},
		{"masterdown", said("MASTERDOWN Link with MASTER is down"), true, false, false, false},
		{"busy", said("BUSY Redis is busy running a script."), false, true, false, false},
		{"noperm", said("NOPERM this user has no permissions"), false, false, true, false},
		{"unknown command", said("ERR unknown command `HELLO`"), false, false, true, false},
		{"unknown subcommand", said("ERR Unknown subcommand or wrong number of arguments for 'UNBLOCK'"), false, false, true, false},
		{"maxclients", said("ERR max number of clients reached"), false, false, false, true},
		{"out of range", said("ERR DB index is out of range"), false, false, false, false},
		{"a word that begins alike", said("BUSYGROUP Consumer Group name already exists"), false, false, false, false},
	}
	for _, tt := range tests {
		if got := NotReady(tt.err); got != tt.notReady {
			t.Errorf("%s: NotReady = %v", tt.name, got)
		}
		if got := Busy(tt.err); got != tt.busy {
			t.Errorf("%s: Busy = %v", tt.name, got)
		}
		if got := Refused(tt.err); got != tt.refused {
			t.Errorf("%s: Refused = %v", tt.name, got)
		}
		if got := Unavailable(tt.err); got != tt.unavailable {
			t.Errorf("%s: Unavailable = %v", tt.name, got)
		}
	}
}

func TestHandshakeErrorText(t *testing.T) {
	for reply, want := range map[string]string{
		"-ERR no\r\n":         "handshake: SELECT: ERR no",
		"!6\r\nERR no\r\n":    "handshake: SELECT: ERR no",
		"-NOPERM a 'b' c\r\n": "handshake: SELECT: NOPERM a 'b' c",
	} {
		err := error(&HandshakeError{Step: "SELECT", Reply: []byte(reply)})
		if err.Error() != want {
			t.Errorf("%q: %q", reply, err)
		}
		if he := new(HandshakeError); !errors.As(err, &he) {
			t.Error("not found by errors.As")
		}
	}
}
