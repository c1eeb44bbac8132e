package resp

import (
	"strings"
	"testing"
)

// The fast way takes a value whole or leaves it alone; it never takes part of one
// and never one that the byte-wise way refuses.
func TestWholeValue(t *testing.T) {
	for _, in := range append(replySeeds(), "$-1\r\n", "$-2\r\n", "$01\r\nx\r\n", ":+\r\n", ":1\r") {
		want := 0
		if end, kind, v := (&replyParser{b: []byte(in)}).value(0, 0, true); v == whole && strings.IndexByte("+-:$(", kind) >= 0 {
			want = end
		}
		if strings.IndexByte("+-:$(", in[0]) < 0 || strings.HasPrefix(in, "$?") {
			want = 0
		}
		if got := wholeValue([]byte(in)); got != want {
			t.Errorf("%.60q: %d, want %d", in, got, want)
		}
	}
}
