package batcher

import (
	"strings"
	"testing"
	"time"
)

func TestPolicyConfigValidate(t *testing.T) {
	valid := DefaultPolicyConfig()
	with := func(change func(*PolicyConfig)) PolicyConfig {
		c := valid
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		config PolicyConfig
		faults int
	}{
		"default":          {valid, 0},
		"zero":             {PolicyConfig{}, 2},
		"fixed":            {with(func(c *PolicyConfig) { c.Auto, c.Delay = false, time.Second }), 0},
		"smallest caps":    {with(func(c *PolicyConfig) { c.MaxBytes, c.MaxCommands = 1, 1 }), 0},
		"largest caps":     {with(func(c *PolicyConfig) { c.MaxBytes, c.MaxCommands = 64<<20, 1<<20 }), 0},
		"beyond the caps":  {with(func(c *PolicyConfig) { c.MaxBytes, c.MaxCommands = 64<<20+1, 1<<20+1 }), 2},
		"negative":         {PolicyConfig{Delay: -1, MaxBytes: -1, MaxCommands: -1}, 3},
		"too long":         {with(func(c *PolicyConfig) { c.Auto, c.Delay = false, time.Second+1 }), 1},
		"both auto, fixed": {with(func(c *PolicyConfig) { c.Delay = time.Millisecond }), 1},
	} {
		err := tc.config.Validate()
		faults := 0
		if err != nil {
			faults = len(strings.Split(err.Error(), "\n"))
		}
		if faults != tc.faults {
			t.Errorf("%s: %d faults, want %d: %v", name, faults, tc.faults, err)
		}
	}
}

// fixed returns a policy with delay d that expects company: arrivals came
// often until time now.
func fixed(d time.Duration, now int64) *Policy {
	p := NewPolicy(PolicyConfig{Delay: d, MaxBytes: 1000, MaxCommands: 10})
	for i := range int64(100) {
		p.Arrived(now-(100-i)*int64(d)/100, 1)
	}
	return p
}

func TestDecide(t *testing.T) {
	const now, d = int64(time.Hour), int64(time.Millisecond)
	busy := State{Now: now, FirstQueued: now, Commands: 1, Bytes: 10, InFlight: 1, IdleActive: 1}
	with := func(change func(*State)) State {
		s := busy
		change(&s)
		return s
	}
	send := func(r FlushReason) Decision { return Decision{Send: true, Reason: r} }
	for name, tc := range map[string]struct {
		state State
		want  Decision
	}{
		"nothing queued":         {with(func(s *State) { s.Commands = 0 }), Decision{}},
		"nothing queued or sent": {with(func(s *State) { s.Commands, s.InFlight = 0, 0 }), Decision{}},
		"idle":                   {with(func(s *State) { s.InFlight = 0 }), send(FlushIdle)},
		"idle before full":       {with(func(s *State) { s.InFlight, s.Commands = 0, 10 }), send(FlushIdle)},
		"nobody":                 {with(func(s *State) { s.IdleActive = 0 }), send(FlushNobody)},
		"full of commands":       {with(func(s *State) { s.Commands = 10 }), send(FlushFull)},
		"full of bytes":          {with(func(s *State) { s.Bytes = 1000 }), send(FlushFull)},
		"nearly full":            {with(func(s *State) { s.Commands, s.Bytes = 9, 999 }), Decision{At: now + d}},
		"just queued":            {busy, Decision{At: now + d}},
		"queued a while ago":     {with(func(s *State) { s.FirstQueued = now - d + 1 }), Decision{At: now + 1}},
		"waited enough":          {with(func(s *State) { s.FirstQueued = now - d }), send(FlushDelay)},
		"waited too long":        {with(func(s *State) { s.FirstQueued = now - 10*d }), send(FlushDelay)},
		"clock stepped back":     {with(func(s *State) { s.FirstQueued = now + d }), Decision{At: now + 2*d}},
	} {
		if got := fixed(time.Duration(d), now).Decide(tc.state); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestDecideWithoutDelay(t *testing.T) {
	p := NewPolicy(PolicyConfig{MaxBytes: 1000, MaxCommands: 10})
	got := p.Decide(State{Now: 5, FirstQueued: 5, Commands: 1, InFlight: 100, IdleActive: 100})
	if want := (Decision{Send: true, Reason: FlushNobody}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A batch's deadline comes from its first command alone, and only moves nearer
// when the delay changes on the way.
func TestDeadlineIsNeverRearmed(t *testing.T) {
	const ms = int64(time.Millisecond)
	now := int64(time.Hour)
	p := fixed(10*time.Millisecond, now)
	state := State{FirstQueued: now, InFlight: 1, IdleActive: 1}
	for _, step := range []struct {
		name            string
		at, delay, want int64
	}{
		{"first command", 0, 10, 10},
		{"second command", 3, 10, 10},
		{"shorter delay", 4, 8, 8},
		{"longer delay", 5, 20, 8},
	} {
		state.Now, p.delay = now+step.at*ms, time.Duration(step.delay*ms)
		state.Commands++
		p.Arrived(state.Now, 1)
		if got := p.Decide(state); got.Send || got.At != now+step.want*ms {
			t.Errorf("%s: %+v, want At %d ms after the first", step.name, got, step.want)
		}
	}
	state.FirstQueued, state.Commands = state.Now, 1
	if got := p.Decide(state); got.At != state.Now+20*ms {
		t.Errorf("next batch: %+v, want the longer delay", got)
	}
}

func TestAutoDelay(t *testing.T) {
	for _, tc := range []struct{ rtt, want time.Duration }{
		{50 * time.Microsecond, 0},
		{399 * time.Microsecond, 0},
		{400 * time.Microsecond, 20 * time.Microsecond},
		{419 * time.Microsecond, 20 * time.Microsecond},
		{time.Millisecond, 50 * time.Microsecond},
		{19999 * time.Microsecond, 999 * time.Microsecond},
		{20 * time.Millisecond, time.Millisecond},
		{28 * time.Millisecond, time.Millisecond},
		{time.Minute, time.Millisecond},
	} {
		want := tc.want
		if want < minDelay {
			want = 0
		}
		p := NewPolicy(DefaultPolicyConfig())
		if changed := p.ObserveRoundTrip(0, tc.rtt); changed != (want != 0) || p.Delay() != want {
			t.Errorf("round trip %v: delay %v (changed %v), want %v", tc.rtt, p.Delay(), changed, want)
		}
		if p.ObserveRoundTrip(1, tc.rtt) {
			t.Errorf("round trip %v: the same sample again changed the delay", tc.rtt)
		}
	}
}

func TestFixedDelay(t *testing.T) {
	for _, d := range []time.Duration{0, minDelay - 1, minDelay, time.Second} {
		p := NewPolicy(PolicyConfig{Delay: d, MaxBytes: 1, MaxCommands: 1})
		want := d
		if d < minDelay {
			want = 0
		}
		if changed := p.ObserveRoundTrip(0, 28*time.Millisecond); changed || p.Delay() != want {
			t.Errorf("delay %v: %v in force (changed %v), want %v", d, p.Delay(), changed, want)
		}
	}
}

func TestActiveWindow(t *testing.T) {
	p := NewPolicy(DefaultPolicyConfig())
	for _, tc := range []struct{ rtt, want time.Duration }{
		{0, 10 * time.Millisecond}, // no sample
		{-time.Second, 10 * time.Millisecond},
		{28 * time.Millisecond, 112 * time.Millisecond},
		{2500 * time.Microsecond, 10 * time.Millisecond},
		{time.Microsecond, 10 * time.Millisecond},
	} {
		p.ObserveRoundTrip(0, tc.rtt)
		if got := p.ActiveWindow(); got != tc.want {
			t.Errorf("after %v: %v, want %v", tc.rtt, got, tc.want)
		}
	}
}

// Company is expected when chunks have been coming at least once a delay, not
// because one chunk was large, and not for long after they stopped.
func TestExpectedArrivals(t *testing.T) {
	const d = int64(time.Millisecond)
	for name, tc := range map[string]struct {
		chunks, every int64
		commands      int
		after         int64
		waits         bool
	}{
		"none yet":                   {0, d, 1, 0, false},
		"the first":                  {1, d, 1, 0, false},
		"twice a delay":              {50, d / 2, 1, 0, true},
		"every second delay":         {50, 2 * d, 1, 0, false},
		"large, every second delay":  {50, 2 * d, 100, 0, false},
		"reads without a command":    {50, d / 2, 0, 0, false},
		"a burst":                    {20, d / 100, 1, 0, true},
		"a while after a burst":      {20, d / 100, 1, 20 * d, false},
		"stopped an hour ago":        {50, d / 2, 1, int64(time.Hour), false},
		"all at the same nanosecond": {50, 0, 1, 0, true},
	} {
		p := NewPolicy(PolicyConfig{Delay: time.Duration(d), MaxBytes: 1000, MaxCommands: 1000})
		now := int64(time.Hour)
		for range tc.chunks {
			now += tc.every
			p.Arrived(now, tc.commands)
		}
		now += tc.after
		got := p.Decide(State{Now: now, FirstQueued: now, Commands: 1, InFlight: 1, IdleActive: 5})
		if got.Send == tc.waits || got.Send && got.Reason != FlushNobody {
			t.Errorf("%s: %+v, want waiting %v", name, got, tc.waits)
		}
	}
}

// fuzzInput takes numbers off a fuzzer's bytes.
type fuzzInput []byte

func (in *fuzzInput) next() int64 {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return int64(b)
}

// FuzzDecide drives a policy with any sequence of events and holds the
// invariants at the head of policy.go after each.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{0, 10, 1, 9, 1, 9, 1, 9, 3, 1, 1, 1, 5})
	f.Add([]byte{1, 0, 2, 200, 1, 1, 1, 1, 3, 1, 1, 1, 5, 2, 90, 3, 1, 1, 1, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := fuzzInput(data)
		c := PolicyConfig{MaxBytes: 500, MaxCommands: 50}
		if in.next()%2 == 0 {
			c.Delay = time.Duration(in.next()) * 100 * time.Microsecond
		} else {
			c.Auto = true
		}
		p, now := NewPolicy(c), int64(1)
		promised := map[int64]int64{}
		for len(in) > 0 {
			switch in.next() % 4 {
			case 0:
				now += in.next() * in.next() * 1000
			case 1:
				p.Arrived(now, int(in.next()%3))
				now += in.next() * 1000
			case 2:
				p.ObserveRoundTrip(now, time.Duration(in.next())*200*time.Microsecond)
			case 3:
				s := State{Now: now, FirstQueued: now - in.next()*1000, Commands: int(in.next() % 60), Bytes: int(in.next() * 3)}
				s.InFlight, s.IdleActive = int(in.next()%3), int(in.next()%3)
				checkDecision(t, p, s, promised)
			}
			if p.Delay() < 0 || c.Auto && p.Delay() > maxAutoDelay || !c.Auto && p.Delay() > c.Delay {
				t.Fatalf("delay %v with %+v", p.Delay(), c)
			}
		}
	})
}

// checkDecision asks once and holds the answer against the rules. Promised
// holds the deadline last given for each batch.
func checkDecision(t *testing.T, p *Policy, s State, promised map[int64]int64) {
	t.Helper()
	got, due := p.Decide(s), s.FirstQueued+int64(p.Delay())
	switch {
	case s.Commands == 0:
		if got != (Decision{}) {
			t.Fatalf("%+v: %+v for an empty batch", s, got)
		}
	case got.Send:
		if got.At != 0 || got.Reason == FlushDrain || (got.Reason == FlushIdle) != (s.InFlight == 0) {
			t.Fatalf("%+v: %+v", s, got)
		}
	case s.InFlight == 0 || s.IdleActive == 0 || p.Delay() == 0 || s.Bytes >= 500 || s.Commands >= 50:
		t.Fatalf("%+v: waits, %+v", s, got)
	case got.At <= s.Now || got.At > due:
		t.Fatalf("%+v: waits until %d, later than %d", s, got.At, due)
	default:
		// Only the newest batch is remembered, for there is only one.
		if last, ok := promised[s.FirstQueued]; ok && got.At > last {
			t.Fatalf("%+v: %d was promised before %d", s, last, got.At)
		}
		clear(promised)
		promised[s.FirstQueued] = got.At
	}
}
