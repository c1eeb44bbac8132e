package reclaim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// sameIdle leaves the idle time of what is given back alone.
func sameIdle(streamEntries) time.Duration { return 0 }

// TestUnreadNamesFreshEntriesOnly: a stream that is read twice in one command, once its new entries
// and once the consumer's own history, has entries in the reply that somebody may be working on.
func TestUnreadNamesFreshEntriesOnly(t *testing.T) {
	const one = "*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"
	for _, tt := range []struct {
		ids  [2]string
		want int
	}{{[2]string{">", ">"}, 2}, {[2]string{">", "0"}, 0}, {[2]string{"0", ">"}, 0}, {[2]string{"0", "0"}, 0}} {
		cmd := scanCommand([]byte(commandOf("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "s", tt.ids[0], tt.ids[1])))
		r, _ := parseGroupRead(cmd)
		if n := len(unread(r, []byte("*2\r\n"+one+one), time.Now(), sameIdle)); n != tt.want {
			t.Errorf("%v: %d streams, want %d", tt.ids, n, tt.want)
		}
	}
}

// TestUnreadComesLate: by the time that a read for nobody is given back, another worker has
// claimed one of its entries and the group has lost another. Both stay as they are, and a consumer
// that was deleted stays so.
func TestUnreadComesLate(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	do("ACL", "SETUSER", "plain", "on", ">plain", "~*", "+@all", "-eval")
	up := newRealUpstream(t, srv)
	for _, user := range []string{"", "plain"} {
		t.Run("user "+user, func(t *testing.T) {
			do("FLUSHALL")
			do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
			for _, id := range []string{"1-1", "1-2", "1-3"} {
				do("XADD", "s", id, "k", "v")
			}
			args := readArgs("gone", []string{"s"})
			reply := []byte(do(args...))
			do("XCLAIM", "s", "g", "gone", "0", "1-1", "1-2", "1-3", "IDLE", "3600000", "RETRYCOUNT", "1", "JUSTID") // time passes
			arrived := time.Now().Add(-time.Hour / 2)
			do("XACK", "s", "g", "1-1")
			do("XCLAIM", "s", "g", "thief", "0", "1-2")
			cmd := scanCommand([]byte(commandOf(args...)))
			if err := ReturnUnread(t.Context(), up, Identity{User: User{Name: user}, Proto: 2}, cmd, reply, arrived); err != nil {
				t.Fatal(err)
			}
			got, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
			if len(got) != 2 || got[0].owner != "thief" || got[0].count != 2 ||
				got[1].owner != "gone" || got[1].count != 0 || got[1].idle < time.Hour/2 {
				t.Errorf("pending %+v", got)
			}
			do("XGROUP", "DELCONSUMER", "s", "g", "gone")
			if err := ReturnUnread(t.Context(), up, Identity{User: User{Name: user}, Proto: 2}, cmd, reply, arrived); err != nil {
				t.Fatal(err)
			}
			if user == "" && strings.Contains(do("XINFO", "CONSUMERS", "s", "g"), "gone") {
				t.Error("the deleted consumer is back")
			}
		})
	}
}

// unsure lets its first command be executed and its reply be lost, with what happens next.
type unsure struct {
	Upstream
	then func()
}

func (u *unsure) Do(ctx context.Context, as Identity, commands []byte, n int) ([][]byte, error) {
	replies, err := u.Upstream.Do(ctx, as, commands, n)
	if then := u.then; then != nil {
		u.then = nil
		then()
		return nil, errors.New("lost")
	}
	return replies, err
}

// TestGiveBackIsNotRepeatedOverAnother: a give-back whose reply is lost is tried again. Meanwhile its
// consumer has taken its own entry once more, which then looks just as our claim had left it; the
// entry of another owner can be told from that.
func TestGiveBackIsNotRepeatedOverAnother(t *testing.T) {
	srv := redistest.Start(t)
	do := direct(t, srv, 2)
	do("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
	aged(do, "s", "1-1", "w")
	aged(do, "s", "1-2", "dead")
	listed, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
	r := &restoration{stream: "s", group: "g", ours: "w"}
	for i, en := range listed {
		r.entries = append(r.entries, entry{id: en.id, was: &listed[i]})
	}
	do("XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "-")
	// What is sent a second time is long on its way: its idle time cannot protect the entry.
	r.at = time.Now().Add(time.Hour)
	up := &unsure{newRealUpstream(t, srv), func() { do("XAUTOCLAIM", "s", "g", "w", testMinIdleMS, "-", "COUNT", "1") }}
	if err := restoreList(t.Context(), up, Identity{Proto: 2}, []*restoration{r}); err != nil {
		t.Fatal(err)
	}
	got, _ := parsePending([]byte(do("XPENDING", "s", "g", "-", "+", "9")))
	if len(got) != 2 || got[0].owner != "w" || got[0].idle > time.Minute || got[1].owner != "dead" || got[1].idle < time.Hour {
		t.Errorf("pending %+v: what the consumer has taken again is not to be touched", got)
	}
}
