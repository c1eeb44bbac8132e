package reclaim

import (
	"context"
	"testing"
	"time"
)

// canned answers every command with the same bytes.
type canned struct {
	Upstream
	reply string
}

func (c canned) Do(_ context.Context, _ Identity, _ []byte, n int) (list [][]byte, _ error) {
	for range n {
		list = append(list, []byte(c.reply))
	}
	return list, nil
}

// A lost read may have had entries if one is pending that was delivered since, or if nobody can say.
func TestAssigned(t *testing.T) {
	line := func(idle, count string) string {
		return "*1\r\n*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:" + idle + "\r\n:" + count + "\r\n"
	}
	for _, tt := range []struct {
		name, options, reply string
		want, passes         bool
	}{
		{"nothing is pending", "", "*0\r\n", false, false},
		{"from before", "", line("3600000", "1"), false, false},
		{"since", "", line("20", "1"), true, false},
		{"claimed since by itself", "", line("20", "2"), false, false},
		{"claimed since by the read", "CLAIM", line("20", "2"), true, false},
		{"the group has gone", "", "-NOGROUP No such key\r\n", false, false},
		{"it is no stream any more", "", "-WRONGTYPE Operation\r\n", false, false},
		{"not allowed to look", "", "-NOPERM this user\r\n", true, false},
		{"not now", "", "-LOADING Redis is loading\r\n", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{"XREADGROUP", "GROUP", "g", "c", "BLOCK", "0"}
			if tt.options != "" {
				args = append(args, tt.options, "1000")
			}
			cmd := scanCommand([]byte(commandOf(append(args, "STREAMS", "s", "t", ">", ">")...)))
			got, err := Assigned(t.Context(), canned{reply: tt.reply}, Identity{}, cmd, time.Now().Add(-time.Minute))
			if got != tt.want || (err != nil) != tt.passes {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// More pending entries than are looked at may hide one.
func TestAssignedAmongMany(t *testing.T) {
	reply := "*100\r\n"
	for range lostLook {
		reply += "*4\r\n$3\r\n1-1\r\n$1\r\nc\r\n:3600000\r\n:1\r\n"
	}
	cmd := scanCommand([]byte(commandOf("XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">")))
	if got, err := Assigned(t.Context(), canned{reply: reply}, Identity{}, cmd, time.Now()); !got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
