package reclaim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/resp"
)

// commandSeeds are the forms that the parsers of commands know, and near misses.
var commandSeeds = []string{
	"XAUTOCLAIM s g c 60000 0-0 COUNT 10", "XAUTOCLAIM s g c 60000 0-0", "XAUTOCLAIM s g c -1 0", "XAUTOCLAIM s g c 9223372036854775807 - COUNT 0",
	"SET autoclaim:g:s t NX PX 60000", "set k v ex 9223372036854775807 nx", "SET k v NX NX", "SET k v PX",
	"EVALSHA " + lockSHAs[scriptRelease] + " 1 k t", "EVALSHA C3F8721CBB97F72BC19E972846BD7AAF91901658 1 k t 5",
	"XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >", "XREADGROUP GROUP STREAMS STREAMS STREAMS STREAMS >", "XREADGROUP GROUP g c BLOCK",
	"XREADGROUP GROUP g c NOACK CLAIM 5 BLOCK -9223372036854775808 STREAMS a b > 0",
	"XCLAIM s g c 0 1-1 IDLE 5 JUSTID", "XACK s g 1-1 x 99999999999999999999-1", "XGROUP DELCONSUMER s g c", "SCRIPT EXISTS " + lockSHAs[scriptExtend],
}

// FuzzCommandForms: what a parser accepts says the same when it is written canonically,
// and nothing makes it panic. The arguments are separated by spaces.
func FuzzCommandForms(f *testing.F) {
	for _, s := range commandSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		cmd := scanCommand([]byte(commandOf(args...)))
		if c, ok := parseClaim(cmd); ok {
			again, ok := parseClaim(scanCommand([]byte(commandOf("XAUTOCLAIM", c.stream, c.group, c.consumer, millis(c.minIdle), c.start, "COUNT", strconv.Itoa(c.count)))))
			if !ok || again != c {
				t.Errorf("%q: %+v became %+v, %v", line, c, again, ok)
			}
		}
		if l, ok := parseLock(cmd); ok {
			if l.ttl < 0 || !slices.ContainsFunc(args[3:], func(a string) bool { return strings.EqualFold(a, "nx") }) {
				t.Errorf("%q: %+v", line, l)
			}
		}
		if r, ok := parseGroupRead(cmd); ok {
			if len(r.streams) == 0 || r.count < 0 || !strings.EqualFold(args[len(args)-2*len(r.streams)-1], "streams") {
				t.Errorf("%q: %+v", line, r)
			}
		}
		if c, ok := parseScript(cmd); ok && !strings.EqualFold(args[1], lockSHAs[c.script]) {
			t.Errorf("%q: %+v", line, c)
		}
		if kindOf(cmd.Arg(0)) == kindMove {
			setsIdle(cmd)
		}
		for i := range cmd.Len() {
			ms, seq := splitID(string(cmd.Arg(i)))
			if id := strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10); lessID(id, id) {
				t.Errorf("%q is less than itself", id)
			}
		}
	})
}

// replySeeds are replies as servers give them, and values of a lease.
var replySeeds = []string{
	"*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n", "*3\r\n$3\r\n5-0\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*-1\r\n*1\r\n$3\r\n2-0\r\n",
	"*1\r\n*4\r\n$3\r\n1-0\r\n$1\r\nc\r\n:70000\r\n:1\r\n", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
	"%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*-1\r\n", "*1\r\n*8\r\n$4\r\nname\r\n$1\r\ng\r\n$9\r\nconsumers\r\n:1\r\n$7\r\npending\r\n:60000\r\n$17\r\nlast-delivered-id\r\n$3\r\n9-9\r\n",
	"-NOPERM no\r\n", "-\r\n", "!10\r\nNOGROUP no\r\n", "_\r\n", "*-1\r\n", "$-1\r\n", ":1\r\n", "+OK\r\n", "+QUEUED\r\n", "*2\r\n:1700000000\r\n:5\r\n",
	"*2\r\n$10\r\n1700000000\r\n$1\r\n5\r\n", "*2\r\n:0\r\n$42\r\n{\"by\":\"x\",\"at\":946684800001,\"hot\":[{\"s\":9}]}\r\n",
	"*2\r\n:0\r\n$54\r\n{\"by\":\"x\",\"n\":1,\"at\":9e18,\"skip\":[-1],\"watch\":[[-5,7]]}\r\n",
	"*5\r\n:1\r\n$16\r\n{\"by\":\"fuzz\"}xxx\r\n:946684800\r\n:1\r\n*1\r\n$1\r\ns\r\n",
}

// FuzzReplyForms: the readers of replies agree with the framer about where a reply
// ends, and take any frame there is without a panic.
func FuzzReplyForms(f *testing.F) {
	for _, s := range replySeeds {
		f.Add([]byte(s))
	}
	read := scanCommand([]byte(commandOf("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if list, err := elements(raw); err == nil {
			whole := 0
			for _, e := range list {
				whole += len(e)
			}
			if end := bytes.Index(raw, crlf); !bytes.Equal(bytes.Join(list, nil), raw[end+2:end+2+whole]) {
				t.Errorf("%q cut into %q", raw, list)
			}
		}
		if list, ok := parsePending(raw); ok {
			(&page{from: "-"}).turn(list, time.Minute)
		}
		call, _ := parseGroupRead(read)
		for _, back := range unread(call, raw, time.Time{}, sameIdle) {
			commands := back.appendScript(nil)
			if got, err := countCommands(commands); err != nil || got != 1 {
				t.Errorf("%q is given back by %q: %d commands, %v", raw, commands, got, err)
			}
		}
		groupInfo(raw, "g")
		textOf(raw)
		if code := errorCode(raw); code != "" && !isError(raw) {
			t.Errorf("%q has the code %q", raw, code)
		}
		var r report
		if json.Unmarshal(raw, &r) == nil {
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("%q cannot be written again: %v", raw, err)
			}
		}
	})
}

func countCommands(b []byte) (n int, err error) {
	scan := resp.NewCommandScanner(resp.DefaultLimits())
	for len(b) > 0 {
		m, done, err := scan.Scan(b)
		if err != nil || !done {
			return n, errors.Join(err, errShape)
		}
		b = b[m:]
		n++
	}
	return n, nil
}

// hostile is an upstream that answers each question with whatever comes next of a
// list: any server, and anybody who can write the proxies' keys.
type hostile struct {
	mu      sync.Mutex
	replies [][]byte
	at      int
}

func (h *hostile) answer(n int) (list [][]byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range n {
		h.at++
		r := h.replies[h.at%len(h.replies)]
		if len(r) == 0 {
			return nil, ErrNotSent
		}
		list = append(list, r)
	}
	return list, nil
}

func (h *hostile) Do(_ context.Context, _ Identity, commands []byte, n int) ([][]byte, error) {
	if got, err := countCommands(commands); err != nil || got != n {
		panic("the engine sent what is not its number of commands")
	}
	return h.answer(n)
}

func (h *hostile) DoUpTo(ctx context.Context, as Identity, commands []byte, n, most int) ([][]byte, error) {
	list, err := h.Do(ctx, as, commands, n)
	return upTo(list, most), err
}

func (h *hostile) Control(ctx context.Context, commands []byte, n int) ([][]byte, error) {
	return h.Do(ctx, Identity{}, commands, n)
}

// frameCount counts the complete replies of which raw consists: nothing else reaches
// reclaim, because lanes cut what they pass on.
func frameCount(raw []byte) (n int, whole bool) {
	var scan resp.ReplyScanner
	for len(raw) > 0 {
		m, done, err := scan.Scan(raw)
		if err != nil || !done {
			return n, false
		}
		raw = raw[m:]
		n++
	}
	return n, true
}

// FuzzHostileServer runs a client's commands, one on each line, before a server that
// answers with the given replies in turn, one on each second line. Whatever it says:
// no panic, answers from here are whole replies, and the engine ends.
func FuzzHostileServer(f *testing.F) {
	commands := strings.Join([]string{"XREADGROUP GROUP g c COUNT 1 BLOCK 10 STREAMS s >", "XAUTOCLAIM s g c 60000 0-0 COUNT 10",
		"GET autoclaim:g:s", "SET autoclaim:g:s t NX PX 60000", "XAUTOCLAIM s g c 60000 0-0 COUNT 10", "XACK s g 1-0", "XCLAIM s g c 0 1-0"}, "\n")
	for i := range replySeeds {
		f.Add(commands, []byte(strings.Join(replySeeds[i:], "\x00")), uint8(i))
		f.Add(strings.Join(commandSeeds, "\n"), []byte(strings.Join(replySeeds[:i+1], "\x00")), uint8(i))
	}
	f.Fuzz(func(t *testing.T, commands string, replies []byte, minutes uint8) {
		h := &hostile{}
		for r := range bytes.SplitSeq(replies, []byte{0}) {
			if n, whole := frameCount(r); whole && n <= 1 {
				h.replies = append(h.replies, r)
			}
		}
		lines := strings.Split(commands, "\n")
		if len(h.replies) == 0 || len(lines) > 40 || len(commands) > 4000 {
			return // more than is worth the time
		}
		synctest.Test(t, func(t *testing.T) { playHostile(t, h, lines, time.Duration(minutes)*time.Minute/16) })
	})
}

// playHostile sends each line and lets time pass between them, so that rounds are run.
func playHostile(t *testing.T, h *hostile, lines []string, between time.Duration) {
	cfg := DefaultConfig()
	cfg.Instance = "fuzz"
	cfg.Groups = []GroupRule{{Pattern: "g*", MinIdle: time.Minute}}
	e, err := New(cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	e.Start()
	s := e.Join(Identity{Proto: 2})
	for _, line := range lines {
		raw := []byte(commandOf(strings.Split(line, " ")...))
		cmd := scanCommand(raw)
		if !e.Interesting(cmd) {
			continue
		}
		playVerdict(t, h, s.Command(cmd), raw)
		time.Sleep(between)
	}
	s.Leave()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e.Drain(ctx)
	e.Close()
}

// playVerdict does what a proxy does with a verdict on one command.
func playVerdict(t *testing.T, h *hostile, v Verdict, raw []byte) {
	if v.Action == Defer {
		v = v.Task.Run(t.Context())
	}
	switch v.Action {
	case Fail:
		return
	case Answer:
		if n, whole := frameCount(v.Reply); n != 1 || !whole {
			t.Fatalf("%q is answered by %q", raw, v.Reply)
		}
		if v.Handout != nil {
			v.Handout.Written()
		}
		return
	case Defer:
		t.Fatal("a task's verdict was deferred again")
	}
	replies, err := h.Do(t.Context(), Identity{}, append(bytes.Clone(v.Ahead), raw...), v.AheadN+1)
	reply := bytes.Join(replies, nil)
	if err != nil {
		reply = nil
	}
	if v.Watch != nil {
		v.Watch.Seen(reply)
	}
	switch {
	case v.Parked == nil:
	case err != nil || !isNull(reply):
		v.Parked.End(reply)
	default:
		if o := v.Parked.Nil(t.Context(), reply); o.Handout != nil {
			o.Handout.Drop()
		} else if o.Again {
			v.Parked.End(nil)
		}
	}
}
