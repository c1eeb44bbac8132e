package proxy

import "testing"

func TestBlockOption(t *testing.T) {
	for _, tc := range []struct {
		line  string
		pos   int
		ms    int64
		class Class
	}{
		{"XREAD BLOCK 0 STREAMS s $", 2, 0, ClassBlocking},
		{"XREAD Block 5000 STREAMS s $", 2, 5000, ClassBlocking},
		{"xread count 5 block 10 streams s 0", 4, 10, ClassBlocking},
		{"XREAD BLOCK 10 BLOCK 20 STREAMS s 0", 4, 20, ClassBlocking},
		{"XREAD STREAMS BLOCK 0", 0, 0, ClassShared},
		{"XREAD STREAMS s BLOCK 0 0", 0, 0, ClassShared},
		{"XREAD COUNT BLOCK STREAMS s 0", 0, 0, ClassShared},
		{"XREAD COUNT STREAMS BLOCK 0 STREAMS s 0", 4, 0, ClassBlocking},
		{"XREAD BLOCK STREAMS STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK BLOCK STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK -1 STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK 1.5 STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK 007 STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK +7 STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK '' STREAMS s 0", 2, -1, ClassBlocking},
		{"XREAD BLOCK 9223372036854775807 STREAMS s 0", 2, 1<<63 - 1, ClassBlocking},
		{"XREAD BLOCK 9223372036854775808 STREAMS s 0", 2, -1, ClassBlocking},

		{"XREADGROUP GROUP g c STREAMS s >", 0, 0, ClassShared},
		{"XREADGROUP GROUP g c COUNT 1 NOACK STREAMS s >", 0, 0, ClassShared},
		{"XREADGROUP GROUP g c COUNT 10 BLOCK 2000 STREAMS s1 s2 > >", 7, 2000, ClassBlocking},
		{"XREADGROUP GROUP BLOCK STREAMS STREAMS s >", 0, 0, ClassShared},
		{"XREADGROUP GROUP STREAMS BLOCK BLOCK 5 STREAMS s >", 5, 5, ClassBlocking},
		{"XREADGROUP BLOCK 5 GROUP STREAMS STREAMS STREAMS s >", 2, 5, ClassBlocking},
		{"XREADGROUP NOACK BLOCK 5 GROUP g c STREAMS s >", 3, 5, ClassBlocking},
		{"XREADGROUP GROUP g c CLAIM 60000 STREAMS s >", 0, 0, ClassShared},
		{"XREADGROUP GROUP g c CLAIM BLOCK STREAMS s >", 0, 0, ClassShared},
		{"XREADGROUP GROUP g c CLAIM 60000 BLOCK 5 STREAMS s >", 7, 5, ClassBlocking},

		// What is not understood is kept apart, blocking or not.
		{"XREADGROUP GROUP g c NEWER 5 STREAMS s >", 0, 0, ClassBlocking},
		{"XREADGROUP GROUP g c NEWER STREAMS BLOCK 0 STREAMS s >", 0, 0, ClassBlocking},
		{"XREADGROUP GROUP g c NEWER BLOCK 0 STREAMS s >", 6, 0, ClassBlocking},
		{"XREAD COUNT 5 BLOCK", 0, 0, ClassBlocking},
		{"XREAD BLOCK 0 STREAMS", 2, 0, ClassBlocking},
		{"XREADGROUP BLOCK 0 GROUP g", 2, 0, ClassBlocking},
		{"XREAD", 0, 0, ClassBlocking},
	} {
		pos, ms, ok := blockOption(words(tc.line))
		if pos != tc.pos || ms != tc.ms || ok != (tc.pos > 0) {
			t.Errorf("%s: value %d at %d (%v), want %d at %d", tc.line, ms, pos, ok, tc.ms, tc.pos)
		}
		if got := DefaultTable().Classify(words(tc.line)).Class; got != tc.class {
			t.Errorf("%s: class %s, want %s", tc.line, got, tc.class)
		}
	}
}

func TestBlockTimeout(t *testing.T) {
	for _, tc := range []struct {
		line string
		pos  int
		ms   int64
	}{
		{"BLPOP k 0", 2, 0},
		{"blpop 1 2 3 1.5", 4, 1500},
		{"BRPOP k 0.0001", 2, 1},
		{"BRPOPLPUSH a b 2", 3, 2000},
		{"BLMOVE a b LEFT RIGHT 3", 5, 3000},
		{"BZPOPMIN z 1e1", 2, 10000},
		{"BZPOPMAX z 0.25", 2, 250},
		{"BLMPOP 0.5 2 9 8 LEFT COUNT 7", 1, 500},
		{"BZMPOP 4 1 9 MIN", 1, 4000},
		{"BLPOP k -1", 2, -1},
		{"BLPOP k nan", 2, -1},
		{"BLPOP k inf", 2, -1},
		{"BLPOP k 1e300", 2, -1},
		{"BLPOP k soon", 2, -1},
		{"BLPOP k ''", 2, -1},
		{"BLPOP", 0, 0},
		{"BLMPOP", 0, 0},
		{"LPOP k 5", 0, 0},
		{"XREAD BLOCK 5 STREAMS s 0", 0, 0},
		{"'' 5", 0, 0},
	} {
		pos, ms, ok := blockTimeout(words(tc.line))
		if pos != tc.pos || ms != tc.ms || ok != (tc.pos > 0) {
			t.Errorf("%s: timeout %d at %d (%v), want %d at %d", tc.line, ms, pos, ok, tc.ms, tc.pos)
		}
	}
}
