package reclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"streamproxy/internal/resp"
)

// fakeServer is a model of a Redis 7 with streams: one consumer group's rules, in
// the bubble's time. It implements Upstream. What it answers is held to the real
// server by TestFakeServerIsLikeTheRealOne.
type fakeServer struct {
	latency atomic.Int64 // nanoseconds
	// fault, if set, decides the fate of one Do or Control.
	fault func(control bool, first string) fate

	mu      sync.Mutex
	offset  time.Duration // the server's clock minus ours
	streams map[string]*fakeStream
	keys    map[string]fakeKey
	lists   map[string][]string
	scripts map[string]bool
	denied  map[string]bool   // commands refused by the ACL
	guarded map[string]bool   // streams that XAUTOCLAIM is refused
	refused map[string]string // commands refused otherwise, with the error
	counts  map[string]int    // commands executed, those of scripts included
	acked   []string          // stream and id of each entry acked
	multi   bool
	queued  [][]string
	sizes   map[fakeID]int // of the values of entries that are not small
	history map[fakeID][]string
	changed chan struct{} // closed and replaced when entries arrive
}

type fate uint8

const (
	fine fate = iota
	unsent
	lost // executed, but the reply does not come
)

type fakeKey struct {
	value string
	until time.Time
}

type fakeID struct{ ms, seq uint64 }

func (i fakeID) String() string { return fmt.Sprintf("%d-%d", i.ms, i.seq) }

func (i fakeID) less(j fakeID) bool { return i.ms < j.ms || i.ms == j.ms && i.seq < j.seq }

type fakeStream struct {
	ids    []fakeID
	groups map[string]*fakeGroup
}

type fakeGroup struct {
	last      fakeID
	consumers map[string]bool
	pel       map[fakeID]*fakePending
}

type fakePending struct {
	owner string
	at    time.Time
	count int64
}

func newFakeServer() *fakeServer {
	return &fakeServer{
		streams: make(map[string]*fakeStream),
		keys:    make(map[string]fakeKey),
		lists:   make(map[string][]string),
		scripts: make(map[string]bool),
		denied:  make(map[string]bool),
		guarded: make(map[string]bool),
		counts:  make(map[string]int),
		sizes:   make(map[fakeID]int),
		history: make(map[fakeID][]string),
		changed: make(chan struct{}),
	}
}

// note keeps what happened to an entry, for whoever has to find out why.
func (f *fakeServer) note(id fakeID, what, who string) {
	f.history[id] = append(f.history[id], time.Now().Format("04:05.000")+" "+what+" "+who)
}

var errLost = errors.New("the connection was lost")

func (f *fakeServer) Do(ctx context.Context, _ Identity, commands []byte, n int) ([][]byte, error) {
	return f.serve(ctx, false, commands, n)
}

func (f *fakeServer) DoUpTo(ctx context.Context, _ Identity, commands []byte, n, most int) ([][]byte, error) {
	if Client(ctx).Err() != nil {
		return nil, ErrNotSent
	}
	list, err := f.serve(ctx, false, commands, n)
	return upTo(list, most), err
}

// upTo cuts replies as DoUpTo does.
func upTo(list [][]byte, most int) [][]byte {
	for i, r := range list {
		list[i] = r[:min(len(r), most):min(len(r), most)]
	}
	return list
}

func (f *fakeServer) Control(ctx context.Context, commands []byte, n int) ([][]byte, error) {
	return f.serve(ctx, true, commands, n)
}

func (f *fakeServer) serve(ctx context.Context, control bool, commands []byte, n int) ([][]byte, error) {
	list := splitCommands(commands)
	if len(list) != n {
		return nil, fmt.Errorf("announced %d commands, sent %d", n, len(list))
	}
	fate := fine
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	if fault != nil {
		fate = fault(control, strings.ToUpper(list[0][0]))
	}
	if fate == unsent {
		return nil, fmt.Errorf("down: %w", ErrNotSent)
	}
	if !sleep(ctx, time.Duration(f.latency.Load())) {
		return nil, fmt.Errorf("%w: %w", ctx.Err(), ErrNotSent)
	}
	f.mu.Lock()
	f.multi, f.queued = false, nil
	var replies [][]byte
	for _, args := range list {
		replies = append(replies, []byte(f.do(args)))
	}
	f.mu.Unlock()
	if !sleep(ctx, time.Duration(f.latency.Load())) {
		return nil, ctx.Err()
	}
	if fate == lost {
		return nil, errLost
	}
	return replies, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// splitCommands takes a pipeline apart.
func splitCommands(raw []byte) (list [][]string) {
	for len(raw) > 0 {
		cmd := scanCommand(raw)
		var args []string
		for i := range cmd.Len() {
			args = append(args, string(cmd.Arg(i)))
		}
		list = append(list, args)
		raw = raw[len(cmd.Raw):]
	}
	return list
}

// scanCommand reads the first command of raw.
func scanCommand(raw []byte) resp.Command {
	s := resp.NewCommandScanner(resp.DefaultLimits())
	n, done, err := s.Scan(raw)
	if err != nil || !done {
		panic(fmt.Sprintf("not a command: %q: %v", raw, err))
	}
	return resp.Command{Raw: raw[:n], Args: slices.Clone(s.Args())}
}

func (f *fakeServer) now() time.Time { return time.Now().Add(f.offset) }

// do runs one command with the lock held.
func (f *fakeServer) do(args []string) string {
	name := strings.ToUpper(args[0])
	f.counts[name]++
	text := f.refused[name]
	if f.denied[name] || name == "XAUTOCLAIM" && f.guarded[args[1]] {
		text = "-NOPERM this user has no permissions to run the '" + strings.ToLower(name) + "' command\r\n"
	}
	if text != "" {
		f.multi = f.multi && name != "EXEC"
		if f.multi {
			f.queued = append(f.queued, nil)
		}
		return text
	}
	if f.multi && name != "EXEC" {
		f.queued = append(f.queued, args)
		return "+QUEUED\r\n"
	}
	if run := fakeCommands[name]; run != nil {
		return run(f, args)
	}
	return "-ERR unknown command '" + args[0] + "'\r\n"
}

var fakeCommands map[string]func(*fakeServer, []string) string

func init() {
	fakeCommands = map[string]func(*fakeServer, []string) string{
		"MULTI": func(f *fakeServer, _ []string) string { f.multi, f.queued = true, nil; return "+OK\r\n" },
		"EXEC":  (*fakeServer).exec, "TIME": (*fakeServer).time,
		"GET": (*fakeServer).get, "SET": (*fakeServer).set,
		"EVAL": (*fakeServer).eval, "EVALSHA": (*fakeServer).evalSHA, "SCRIPT": (*fakeServer).script,
		"RPUSH": (*fakeServer).rpush, "PEXPIRE": func(*fakeServer, []string) string { return ":1\r\n" },
		"XADD": (*fakeServer).xadd, "XGROUP": (*fakeServer).xgroup, "XINFO": (*fakeServer).xinfo,
		"XREADGROUP": (*fakeServer).xreadgroup, "XACK": (*fakeServer).xack,
		"XDEL": (*fakeServer).xdel, "DEL": (*fakeServer).del, "UNLINK": (*fakeServer).del,
		"RENAME": (*fakeServer).rename, "FLUSHALL": (*fakeServer).flush, "FLUSHDB": (*fakeServer).flush,
		"XPENDING": (*fakeServer).xpending, "XCLAIM": (*fakeServer).xclaim, "XAUTOCLAIM": (*fakeServer).xautoclaim,
	}
}

func (f *fakeServer) exec([]string) string {
	f.multi = false
	if slices.ContainsFunc(f.queued, func(a []string) bool { return a == nil }) {
		return "-EXECABORT Transaction discarded because of previous errors.\r\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(f.queued))
	for _, args := range f.queued {
		b.WriteString(fakeCommands[strings.ToUpper(args[0])](f, args))
	}
	return b.String()
}

func (f *fakeServer) time([]string) string {
	now := f.now()
	return array(bulkOf(strconv.FormatInt(now.Unix(), 10)), bulkOf(strconv.Itoa(now.Nanosecond()/1000)))
}

func (f *fakeServer) value(key string) (string, bool) {
	k, ok := f.keys[key]
	if ok && !k.until.IsZero() && !time.Now().Before(k.until) {
		delete(f.keys, key)
		return "", false
	}
	return k.value, ok
}

func (f *fakeServer) get(args []string) string {
	if v, ok := f.value(args[1]); ok {
		return bulkOf(v)
	}
	return "$-1\r\n"
}

func (f *fakeServer) set(args []string) string {
	k := fakeKey{value: args[2]}
	for i := 3; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "NX":
			if _, ok := f.value(args[1]); ok {
				return "$-1\r\n"
			}
		case "PX":
			i++
			ms, _ := strconv.Atoi(args[i])
			k.until = time.Now().Add(time.Duration(ms) * time.Millisecond)
		}
	}
	f.keys[args[1]] = k
	return "+OK\r\n"
}

func (f *fakeServer) rpush(args []string) string {
	f.lists[args[1]] = append(f.lists[args[1]], args[2:]...)
	return fmt.Sprintf(":%d\r\n", len(f.lists[args[1]]))
}

func (f *fakeServer) script(args []string) string {
	if strings.EqualFold(args[1], "LOAD") {
		f.scripts[lockSHAs[scriptRelease]] = true
		return bulkOf(lockSHAs[scriptRelease])
	}
	var out []string
	for _, sha := range args[2:] {
		if f.scripts[sha] {
			out = append(out, ":1\r\n")
		} else {
			out = append(out, ":0\r\n")
		}
	}
	return array(out...)
}

func (f *fakeServer) evalSHA(args []string) string {
	if !f.scripts[args[1]] {
		return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
	}
	if v, ok := f.value(args[3]); !ok || v != args[4] {
		return ":0\r\n"
	}
	delete(f.keys, args[3])
	return ":1\r\n"
}

// eval runs the engine's own scripts, as Go.
func (f *fakeServer) eval(args []string) string {
	switch args[1] {
	case takeScript:
		return f.evalTake(args[3], args[4], args[5:])
	case storeScript:
		return f.evalStore(args[3], args[4], args[5:])
	case resignScript:
		if v, ok := f.value(args[3]); ok && strings.HasPrefix(v, args[5]) {
			delete(f.keys, args[3])
			return ":1\r\n"
		}
		return ":0\r\n"
	case restoreScript:
		return f.evalRestore(args[3], args[4], args[5], args[6], args[7:])
	}
	return "-ERR unknown script\r\n"
}

func (f *fakeServer) evalTake(lease, back string, argv []string) string {
	v, ok := f.value(lease)
	if ok && !strings.HasPrefix(v, argv[0]) {
		return array(":0\r\n", bulkOf(v))
	}
	if !ok {
		v = argv[0] + "}"
		f.set([]string{"SET", lease, v, "PX", argv[1]})
	}
	now := f.now()
	var hints []string
	for _, h := range f.lists[back] {
		hints = append(hints, bulkOf(h))
	}
	return array(":1\r\n", bulkOf(v), bulkOf(strconv.FormatInt(now.Unix(), 10)),
		bulkOf(strconv.Itoa(now.Nanosecond()/1000)), array(hints...))
}

func (f *fakeServer) evalStore(lease, back string, argv []string) string {
	if v, ok := f.value(lease); !ok || !strings.HasPrefix(v, argv[0]) {
		return ":0\r\n"
	}
	f.set([]string{"SET", lease, argv[2], "PX", argv[1]})
	n, _ := strconv.Atoi(argv[3])
	f.lists[back] = f.lists[back][min(n, len(f.lists[back])):]
	return ":1\r\n"
}

func (f *fakeServer) evalRestore(stream, group, ours, since string, list []string) string {
	g, errText := f.group(stream, group)
	if g == nil {
		return errText
	}
	ms, _ := strconv.ParseInt(since, 10, 64)
	var out []string
	for ; len(list) >= 4; list = list[4:] {
		id := parseFakeID(list[0])
		count, _ := strconv.ParseInt(list[2], 10, 64)
		idle, _ := strconv.ParseInt(list[3], 10, 64)
		p := g.pel[id]
		if p == nil || p.owner != ours || p.count != count+1 || time.Since(p.at) < time.Duration(ms)*time.Millisecond {
			continue
		}
		if p.owner = list[1]; !g.consumers[list[1]] {
			p.owner = ours
		}
		p.at, p.count = p.at.Add(-time.Duration(idle)*time.Millisecond), count
		f.note(id, "restored", p.owner)
		out = append(out, bulkOf(list[0]))
	}
	return array(out...)
}

func bulkOf(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func array(elems ...string) string {
	return fmt.Sprintf("*%d\r\n%s", len(elems), strings.Join(elems, ""))
}

func parseFakeID(s string) fakeID {
	ms, seq := splitID(s)
	return fakeID{ms, seq}
}

// sortedPEL lists a group's pending ids in order.
func (g *fakeGroup) sortedPEL() []fakeID {
	return slices.SortedFunc(maps.Keys(g.pel), func(a, b fakeID) int {
		switch {
		case a.less(b):
			return -1
		case b.less(a):
			return 1
		}
		return 0
	})
}

func (f *fakeServer) executed(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[name]
}

func (f *fakeServer) keyCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.keys)
}

func (f *fakeServer) setFault(fault func(control bool, first string) fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}
