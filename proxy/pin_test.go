package proxy

import (
	"strings"
	"testing"
)

// Whatever the pieces in which replies come, all of them are passed on but the end that is held, and
// what is held is the longest that may begin it.
func TestPipeHoldsTheEndOfReset(t *testing.T) {
	for _, stream := range []string{
		"$1\r\na\r\n+OK\r\n",
		"+RESET\r\n+OK\r\n",
		"*3\r\n>3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n+OK\r\n+OK\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n+OK\r\n+RESET\r\n+OK\r\n",
		"+RESET\r\n-NOPERM no\r\n+OK\r\n",
		"$5\r\n+RESE\r\n",
		"",
	} {
		for i := range 2 * (len(stream) + 1) {
			size, skipped := 1+i/2, i%2 > 0
			r := &pipe{s: &session{resetSkipped: skipped}}
			var passed strings.Builder
			for rest := stream; rest != ""; {
				n := min(size, len(rest))
				passed.Write(r.holdEnd([]byte(rest[:n])))
				rest = rest[n:]
			}
			if got := passed.String() + string(r.hold); got != stream {
				t.Fatalf("pieces of %d: %q became %q", size, stream, got)
			}
			if ends := strings.HasSuffix(stream, resetEnd); (string(r.hold) == resetEnd) != ends {
				t.Errorf("pieces of %d: %q leaves %q held", size, stream, r.hold)
			}
			if ends := skipped && strings.HasSuffix(stream, quitReply) && !strings.HasSuffix(stream, resetEnd); (string(r.hold) == quitReply) != ends {
				t.Errorf("pieces of %d, RESET is skipped: %q leaves %q held", size, stream, r.hold)
			}
		}
	}
}
