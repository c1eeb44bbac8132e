package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"streamproxy/reclaim"
)

func TestFormatStreams(t *testing.T) {
	got := formatStreams(reclaim.On, []reclaim.StreamInfo{
		{Group: "g", Stream: "cold", MinIdle: time.Minute, State: "cold", Age: 1234 * time.Millisecond, Consumers: 2, Leading: true},
		{DB: 3, User: "app", Group: "my group", Stream: "new\r\nline", MinIdle: 30 * time.Minute, State: "unknown", Age: -1, Why: "rounds fail"},
		{Group: "g", Stream: "hot", MinIdle: time.Minute, State: "hot", FirstID: "5-0", FirstOwner: "w\xff", Held: 4},
	})
	want := strings.Join([]string{
		`# reclaim on: 3 streams, 1 hot, 1 cold, 1 unknown; 4 entries held`,
		`state    age   db  user  group       stream         min-idle  consumers  held  lease  first  owner    forwarded because`,
		`hot      0s    0   -     g           hot            1m0s      0          4     -      5-0    "w\xff"  -`,
		`unknown  -     3   app   "my group"  "new\r\nline"  30m0s     0          0     -      -      -        rounds fail`,
		`cold     1.2s  0   -     g           cold           1m0s      2          0     ours   -      -        -`,
		``,
	}, "\r\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Whatever clients call their streams, and however many they have, the answer is one
// that fits into memory: a long name widens every line.
func TestStreamListIsBounded(t *testing.T) {
	var list []reclaim.StreamInfo
	for i := range maxStreamLines + 7 {
		list = append(list, reclaim.StreamInfo{Group: "g", Stream: fmt.Sprint(i), State: "cold"})
	}
	list[500].State = "hot"
	list[500].Stream = strings.Repeat("ä", 1<<20)
	got := formatStreams(reclaim.Observe, list)
	lines := strings.Split(strings.TrimSuffix(got, "\r\n"), "\r\n")
	if len(lines) != maxStreamLines+3 || lines[len(lines)-1] != "# and 7 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	if !strings.HasPrefix(lines[2], "hot ") || !strings.Contains(lines[2], strings.Repeat("ä", maxShownName/2)+"... ") {
		t.Errorf("the hot one is not the first: %.200q", lines[2])
	}
	if len(got) > 300*maxStreamLines {
		t.Errorf("%d bytes", len(got))
	}
}

func TestShownName(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "orders", "tasks:{1}": "tasks:{1}", "": `""`, "-": `"-"`, "a b": `"a b"`, "a\tb": `"a\tb"`, "ü": "ü", `q"`: `"q\""`,
	} {
		if got := shownName(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}
