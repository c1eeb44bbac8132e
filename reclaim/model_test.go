package reclaim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/resp"
)

// The model: a consumer group's rules, workers of every kind that come, work,
// leave and die, several proxies between. A ledger follows each entry from its
// birth to its ack and knows what may never happen.

const (
	modelMinIdle  = 20 * time.Second
	modelInterval = 3 * time.Second
	modelSpan     = 4 * time.Minute
	modelStreams  = 4
)

// ledger is what happened to every entry.
type ledger struct {
	srv    *fakeServer
	strict bool // counts must be exact: nothing was lost on the way

	mu     sync.Mutex        // taken after the server's
	born   map[string]string // id -> stream
	seen   map[string][]delivery
	leaks  map[string]int // deliveries that the server made and nobody got
	acks   int
	wrongs []string
}

type delivery struct {
	consumer string
	at       time.Time
}

func (l *ledger) wrong(format string, args ...any) {
	l.wrongs = append(l.wrongs, fmt.Sprintf(format, args...))
}

var entryRe = regexp.MustCompile(`^\d+-\d+$`)

// entriesOf finds the ids of the entries in a reply of any shape.
func entriesOf(reply string) (ids []string) {
	raw := []byte(reply)
	for len(raw) > 0 {
		v, n, err := resp.Parse(raw)
		if err != nil {
			break
		}
		ids = walkEntries(v, ids)
		raw = raw[n:]
	}
	return ids
}

func walkEntries(v resp.Value, ids []string) []string {
	if len(v.Elems) == 2 && entryRe.Match(v.Elems[0].Text) && v.Elems[1].Kind == '*' && len(v.Elems[1].Elems) > 0 && len(v.Elems[1].Elems[0].Elems) == 0 {
		return append(ids, string(v.Elems[0].Text))
	}
	for _, e := range v.Elems {
		ids = walkEntries(e, ids)
	}
	return ids
}

// delivered books a reply that reached a client.
func (l *ledger) delivered(consumer, reply string) []string {
	ids := entriesOf(reply)
	l.srv.mu.Lock()
	defer l.srv.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		before := l.seen[id]
		l.seen[id] = append(before, delivery{consumer, now})
		l.srv.note(parseFakeID(id), "delivered to", consumer)
		if n := len(before); n > 0 {
			if gap := now.Sub(before[n-1].at); gap < modelMinIdle-1500*time.Millisecond {
				l.wrong("%s delivered to %s %v after %s", id, consumer, gap, before[n-1].consumer)
			}
		}
		p := l.srv.streams[l.born[id]].groups["g"].pel[parseFakeID(id)]
		if p == nil {
			continue // acked by its former owner meanwhile
		}
		if p.owner != consumer {
			l.wrong("%s delivered to %s, pending for %s", id, consumer, p.owner)
		}
		// What was lost on its way counts too, unless it has been given back as unread.
		least := int64(len(before) + 1)
		if p.count < least || l.strict && p.count != least+int64(l.leaks[id]) {
			l.wrong("%s: delivery count %d, delivered %d times and lost %d times\n\t%s", id, p.count, len(before)+1, l.leaks[id],
				strings.Join(l.srv.history[parseFakeID(id)], "\n\t"))
		}
	}
	return ids
}

// leaked books a reply of the server that reached nobody, as it would without any
// proxy.
func (l *ledger) leaked(reply string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range entriesOf(reply) {
		l.leaks[id]++
	}
}

// modelRun is one run of the model.
type modelRun struct {
	t       *testing.T
	ledger  *ledger
	srv     *fakeServer
	streams []string
	done    tally // what the engines did

	mu      sync.Mutex
	engines []*Engine
	rng     *rand.Rand
	names   int
	workers sync.WaitGroup
	ctx     context.Context
}

// chance is true with probability p.
func (m *modelRun) chance(p float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.Float64() < p
}

func (m *modelRun) pick(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

func (m *modelRun) engine() *Engine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.engines[m.rng.IntN(len(m.engines))]
}

// options of a run.
type modelOptions struct {
	seed    uint64
	faults  bool   // lost connections and killed proxies
	breach  string // a fault planted in the engines
	styles  []string
	engines int
}

// runModel plays one run in a bubble and returns what went wrong.
func runModel(t *testing.T, o modelOptions) (wrongs []string, seen int) {
	synctest.Test(t, func(t *testing.T) {
		m := &modelRun{t: t, srv: newFakeServer(), rng: rand.New(rand.NewPCG(o.seed, 1))}
		m.srv.latency.Store(int64(5 * time.Millisecond))
		m.srv.offset = 90 * time.Minute // clocks differ
		m.ledger = &ledger{srv: m.srv, strict: !o.faults, born: map[string]string{}, seen: map[string][]delivery{}, leaks: map[string]int{}}
		for i := range modelStreams {
			s := fmt.Sprintf("s%d", i)
			m.streams = append(m.streams, s)
			m.srv.xgroup([]string{"XGROUP", "CREATE", s, "g", "$"})
		}
		for i := range o.engines {
			m.engines = append(m.engines, m.newEngine(fmt.Sprintf("p%d", i), o))
		}
		if o.faults {
			m.srv.setFault(m.fault)
		}
		ctx, stop := context.WithTimeout(context.Background(), modelSpan)
		m.ctx = ctx
		m.chaos(o)
		stop()
		m.workers.Wait()
		m.srv.setFault(nil)
		m.finish(o)
		for _, e := range m.engines {
			e.Close()
		}
		wrongs, seen = m.ledger.wrongs, len(m.ledger.seen)
		if here, there := m.done.of("multi")+m.done.of("xautoclaim"), m.done.of("forwarded expired"); !o.faults && there*10 > here {
			wrongs = append(wrongs, fmt.Sprintf("%d claims answered here, %d forwarded for want of a result", here, there))
		}
	})
	return wrongs, seen
}

func (m *modelRun) newEngine(name string, o modelOptions) *Engine {
	cfg := DefaultConfig()
	cfg.Interval, cfg.Instance = modelInterval, name
	cfg.MaxHeldEntries = 12 // low enough to be reached
	cfg.Events.Entries = func(action, _, _ string, n int) { m.done.add(action, n) }
	cfg.Events.Local = func(c string) { m.done.add(c, 1) }
	cfg.Events.Forwarded = func(r string) { m.done.add("forwarded "+r, 1) }
	cfg.Events.Round = func(r string) { m.done.add("round "+r, 1) }
	e, err := New(cfg, m.srv)
	if err != nil {
		m.t.Fatal(err)
	}
	if o.breach != "" {
		e.breach = func(f string) bool { return f == o.breach }
	}
	e.Start()
	return e
}

func (m *modelRun) fault(bool, string) fate {
	switch m.pick(40) {
	case 0:
		return unsent
	case 1:
		return lost
	}
	return fine
}

// chaos produces entries, starts workers and, with faults, replaces proxies.
func (m *modelRun) chaos(o modelOptions) {
	for n := 0; m.ctx.Err() == nil; n++ {
		m.produce()
		if n%8 == 0 {
			style := o.styles[m.pick(len(o.styles))]
			m.workers.Go(func() { m.work(m.ctx, style, false) })
		}
		if o.faults && n%100 == 99 {
			m.replaceEngine(n, o)
		}
		time.Sleep(time.Duration(100+m.pick(800)) * time.Millisecond)
	}
}

func (m *modelRun) produce() {
	s := m.streams[m.pick(len(m.streams))]
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	m.ledger.mu.Lock()
	defer m.ledger.mu.Unlock()
	id := fmt.Sprintf("%d-%d", m.srv.now().UnixMilli(), len(m.ledger.born))
	m.srv.xadd([]string{"XADD", s, id, "k", "v"})
	m.ledger.born[id] = s
}

// replaceEngine ends a proxy, in order or not, and starts another.
func (m *modelRun) replaceEngine(n int, o modelOptions) {
	fresh := m.newEngine(fmt.Sprintf("q%d", n), o)
	m.mu.Lock()
	old := m.engines[0]
	m.engines = append(m.engines[1:], fresh)
	m.mu.Unlock()
	if m.chance(0.5) {
		old.Drain(context.Background())
	}
	old.Close()
}

// finish lets one healthy worker do what is left, and takes stock.
func (m *modelRun) finish(o modelOptions) {
	left := modelMinIdle + 8*modelInterval + 10*time.Second
	if o.faults {
		left += modelMinIdle
	}
	ctx, stop := context.WithTimeout(context.Background(), left)
	defer stop()
	m.work(ctx, o.styles[0], true)
	l := m.ledger
	m.srv.mu.Lock()
	defer m.srv.mu.Unlock()
	for id, s := range l.born {
		if len(l.seen[id]) == 0 {
			l.wrong("%s was never delivered", id)
		}
		if p := m.srv.streams[s].groups["g"].pel[parseFakeID(id)]; p != nil {
			l.wrong("%s was never acked: %s, count %d, idle %v", id, p.owner, p.count, time.Since(p.at))
		}
	}
	if n := m.srv.counts["XACK"]; n != l.acks {
		l.wrong("%d acks, of which workers sent %d", n, l.acks)
	}
}

// worker is one consumer process.
type worker struct {
	m        *modelRun
	c        *testClient
	name     string
	cursors  map[string]string
	healthy  bool
	leaving  bool
	finished bool
}

// work lives one worker's life. A healthy one does not leave before ctx ends.
func (m *modelRun) work(ctx context.Context, style string, healthy bool) {
	m.mu.Lock()
	m.names++
	w := &worker{m: m, name: fmt.Sprintf("w%d", m.names), healthy: healthy, cursors: map[string]string{}}
	m.mu.Unlock()
	if style == "shared" {
		w.name = "shared"
	}
	w.c = newTestClient(m.t, m.engine(), m.srv, Identity{Proto: 2})
	w.c.gone = func() bool { return w.leaving }
	defer w.c.s.Leave()
	for ctx.Err() == nil && !w.finished {
		got := w.read(style)
		w.process(got)
		if style != "parked" || len(got) > 0 {
			w.pass(style)
		}
		if style != "parked" {
			time.Sleep(300 * time.Millisecond)
		}
	}
}

// run sends a command and books what comes back.
func (w *worker) run(send func() (string, error), fresh []string) []string {
	if w.finished {
		return nil
	}
	w.leaving = !w.healthy && w.m.chance(0.004)
	var got []string
	w.c.written = func(reply string, _ bool) { got = w.m.ledger.delivered(w.name, reply) }
	reply, err := send()
	switch err {
	case nil:
	case errGone:
		w.finished = true
		w.abandon(reply, fresh)
	default:
		w.finished = !w.healthy && w.m.chance(0.3) // many clients end on an error
	}
	return got
}

// abandon is what becomes of a reply whose client has left: the proxy gives back
// what was read fresh; what the server claimed by itself is lost on the way; what
// the engine claimed is the engine's business.
func (w *worker) abandon(reply string, fresh []string) {
	last := w.c.actions[len(w.c.actions)-1]
	switch {
	case fresh != nil && strings.HasPrefix(reply, "*") && !w.c.dropped:
		cmd := scanCommand([]byte(commandOf(fresh...)))
		if ReturnUnread(context.Background(), w.m.srv, w.c.id, cmd, []byte(reply), time.Now()) != nil {
			w.m.ledger.leaked(reply)
		}
	case last == Forward || !w.c.dropped:
		w.m.ledger.leaked(reply)
	}
}

func (w *worker) read(style string) []string {
	args := readArgs(w.name, w.m.streams, "COUNT", "3")
	if style != "parked" {
		return w.run(func() (string, error) { return w.c.try(args...) }, args)
	}
	args = readArgs(w.name, w.m.streams, "COUNT", "3", "BLOCK", []string{"2000", "9000", "0"}[w.m.pick(3)])
	return w.run(func() (string, error) { return w.c.blockingRead(w.m.ctx, w.m.srv, args) }, args)
}

// process acks what it got, later, unless the worker dies of it.
func (w *worker) process(ids []string) {
	for _, id := range ids {
		if w.finished {
			return
		}
		if !w.healthy && w.m.chance(0.08) {
			w.finished = true
			return
		}
		time.Sleep(time.Duration(w.m.pick(200)) * time.Millisecond)
		w.m.ledger.mu.Lock()
		s := w.m.ledger.born[id]
		w.m.ledger.mu.Unlock()
		for tries := 0; tries < 3; tries++ {
			_, err := w.c.try("XACK", s, "g", id)
			if !errors.Is(err, ErrNotSent) {
				w.m.ledger.mu.Lock()
				w.m.ledger.acks++
				w.m.ledger.mu.Unlock()
			}
			if err == nil || err == errGone {
				break
			}
		}
	}
}

// pass asks every stream for abandoned entries, in its manner.
func (w *worker) pass(style string) {
	ms := millis(modelMinIdle)
	for i, s := range w.m.streams {
		token := fmt.Sprintf("%s-%d-%d", w.name, i, time.Now().UnixNano())
		lock := "autoclaim:g:" + s
		var got []string
		switch style {
		case "form", "parked", "shared":
			got = w.run(func() (string, error) { return w.c.tryBlock(formOf(s, "g", w.name, ms, "2", token)...) }, nil)
		case "lock":
			if r, err := w.c.try("GET", lock); err != nil || !strings.HasPrefix(r, "$-1") {
				continue
			}
			if r, err := w.c.try("SET", lock, token, "NX", "PX", "60000"); err != nil || r != "+OK\r\n" {
				continue
			}
			got = w.run(func() (string, error) { return w.c.try("XAUTOCLAIM", s, "g", w.name, ms, "0-0", "COUNT", "2") }, nil)
			_, _ = w.c.try("EVALSHA", lockSHAs[scriptRelease], "1", lock, token)
		default:
			got = w.runCursor(s, ms)
		}
		w.process(got)
	}
}

// runCursor goes on where the last reply ended.
func (w *worker) runCursor(s, ms string) []string {
	start := w.cursors[s]
	if start == "" {
		start = "0-0"
	}
	return w.run(func() (string, error) {
		r, err := w.c.try("XAUTOCLAIM", s, "g", w.name, ms, start, "COUNT", "1")
		if v, _, perr := resp.Parse([]byte(r)); perr == nil && len(v.Elems) > 1 {
			w.cursors[s] = string(v.Elems[0].Text)
		}
		return r, err
	}, nil)
}

var allStyles = []string{"form", "lock", "cursor", "parked", "shared"}

func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			styles := slices.Clone(allStyles)
			wrongs, seen := runModel(t, modelOptions{seed: seed, styles: styles, engines: 2})
			report5(t, wrongs)
			if seen < 100 {
				t.Errorf("only %d entries", seen)
			}
		})
	}
}

func TestModelWithLostConnectionsAndKilledProxies(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			wrongs, _ := runModel(t, modelOptions{seed: 100 + seed, styles: allStyles, engines: 3, faults: true})
			report5(t, wrongs)
		})
	}
}

func report5(t *testing.T, wrongs []string) {
	t.Helper()
	for i, s := range wrongs {
		if i == 5 {
			t.Errorf("and %d more", len(wrongs)-i)
			break
		}
		t.Error(s)
	}
}

// TestModelCatchesPlantedFaults shows that the ledger can be wrong: each fault must
// be noticed within a few runs.
func TestModelCatchesPlantedFaults(t *testing.T) {
	for _, fault := range []string{"twice", "forget", "cold"} {
		t.Run(fault, func(t *testing.T) {
			for seed := range uint64(8) {
				wrongs, _ := runModel(t, modelOptions{seed: seed, styles: []string{"form", "cursor"}, engines: 2, breach: fault})
				if len(wrongs) > 0 {
					t.Logf("seed %d: %s", seed, wrongs[0])
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
