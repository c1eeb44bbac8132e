package reclaim

import "testing"

// TestUnreadNamesFreshEntriesOnly: a stream that is read twice in one command, once its new entries
// and once the consumer's own history, has entries in the reply that somebody may be working on.
func TestUnreadNamesFreshEntriesOnly(t *testing.T) {
	const one = "*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"
	for _, tt := range []struct {
		ids  [2]string
		want int
	}{{[2]string{">", ">"}, 2}, {[2]string{">", "0"}, 0}, {[2]string{"0", ">"}, 0}, {[2]string{"0", "0"}, 0}} {
		cmd := scanCommand([]byte(commandOf("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "s", tt.ids[0], tt.ids[1])))
		if _, n := Unread(cmd, []byte("*2\r\n"+one+one)); n != tt.want {
			t.Errorf("%v: %d commands, want %d", tt.ids, n, tt.want)
		}
	}
}
