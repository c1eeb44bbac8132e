package reclaim

import (
	"testing"
	"time"
)

func TestElementsAndFrames(t *testing.T) {
	list, err := elements([]byte("*3\r\n:1\r\n*2\r\n+a\r\n$-1\r\n$2\r\nhi\r\n"))
	if err != nil || len(list) != 3 || string(list[1]) != "*2\r\n+a\r\n$-1\r\n" || string(list[2]) != "$2\r\nhi\r\n" {
		t.Errorf("%q %v", list, err)
	}
	for _, s := range []string{"", "*", "+OK\r\n", "*2\r\n:1\r\n", "*x\r\n", "*1\r\n$5\r\nab\r\n"} {
		if list, err := elements([]byte(s)); err == nil {
			t.Errorf("%q: %q", s, list)
		}
	}
	if list, err := elements([]byte("*-1\r\n")); err != nil || len(list) != 0 {
		t.Errorf("null: %q %v", list, err)
	}
	two, err := frames([]byte("+OK\r\n*0\r\n"), 2)
	if err != nil || string(two[1]) != "*0\r\n" {
		t.Errorf("%q %v", two, err)
	}
	if _, err := frames([]byte("+OK\r\n"), 2); err == nil {
		t.Error("one reply is two")
	}
}

func TestErrorCode(t *testing.T) {
	for raw, want := range map[string]string{
		"-NOGROUP No such key\r\n": "NOGROUP",
		"-ERR\r\n":                 "ERR",
		"-NOSCRIPT No matching sc": "NOSCRIPT",
		"!11\r\nNOPERM that\r\n":   "NOPERM",
		"+OK\r\n":                  "",
		"":                         "",
	} {
		if got := errorCode([]byte(raw)); got != want {
			t.Errorf("%q: %q", raw, got)
		}
	}
}

func TestIsNull(t *testing.T) {
	for _, s := range []string{"", "*-1\r\n", "$-1\r\n", "_\r\n"} {
		if !isNull([]byte(s)) {
			t.Errorf("%q is not", s)
		}
	}
	for _, s := range []string{"*0\r\n", "*1\r\n:1\r\n", "%0\r\n", "-ERR\r\n", ":-1\r\n"} {
		if isNull([]byte(s)) {
			t.Errorf("%q is", s)
		}
	}
}

func TestEmptyClaim(t *testing.T) {
	for _, s := range []string{emptySeven, "*2\r\n$3\r\n0-0\r\n*0\r\n"} {
		if !emptyClaim([]byte(s)) {
			t.Errorf("%q is not", s)
		}
	}
	for _, s := range []string{"", "*0\r\n", "*3\r\n$3\r\n5-0\r\n*0\r\n*0\r\n", "*3\r\n$3\r\n0-0\r\n*1\r\n:1\r\n*0\r\n",
		"-NOGROUP x\r\n", "*3\r\n$3\r\n0-0\r\n$1\r\n0\r\n*0\r\n"} {
		if emptyClaim([]byte(s)) {
			t.Errorf("%q is", s)
		}
	}
}

// TestClaimReplyOfOldServers: before 7.0 there is no list of deleted entries, and a
// hole where one was.
func TestClaimReplyOfOldServers(t *testing.T) {
	raw := "*2\r\n$3\r\n0-0\r\n*3\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n$-1\r\n*2\r\n$3\r\n1-3\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"
	b, ok := newBatch(nil, nil, Identity{}, []byte(raw), time.Now())
	if !ok || b.ids() != 2 || len(b.entries) != 3 {
		t.Fatalf("%+v %v", b, ok)
	}
	if got := string(b.reply()); got != raw {
		t.Errorf("%q", got)
	}
}

func TestBatchKnowsWhatIsLeft(t *testing.T) {
	raw := "*3\r\n$3\r\n1-4\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$3\r\n1-2\r\n"
	b, ok := newBatch(nil, nil, Identity{}, []byte(raw), time.Now())
	if !ok || b.deletedN != 1 || string(b.reply()) != raw {
		t.Fatalf("%+v", b)
	}
	listed := []pendingEntry{{id: "1-1", owner: "a", count: 3}, {id: "1-2"}, {id: "1-4", owner: "b", count: 2}}
	b.know(listed)
	if was := b.entries[0].was; was == nil || was.owner != "a" || was.count != 3 {
		t.Errorf("%+v", was)
	}
	if h := b.rest(listed, time.Now()); h == nil || h.id != "1-4" || h.owner != "b" {
		t.Errorf("%+v", h)
	}
	if h := b.rest(listed[:2], time.Now()); h != nil {
		t.Errorf("%+v", h)
	}
}

func TestReadReply(t *testing.T) {
	list := []readEntries{{"s", [][]byte{[]byte("*2\r\n$3\r\n1-1\r\n*0\r\n")}}}
	if got := string(readReply(2, list)); got != "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n" {
		t.Errorf("%q", got)
	}
	if got := string(readReply(3, list)); got != "%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n" {
		t.Errorf("%q", got)
	}
}
