package reclaim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// The lease of a sweep is one key. Its value begins with the instance that holds
// it and carries the last round's result, so that whoever finds it taken has read
// what there is to know in the same step.
//
// Nothing rests on the lease for safety. Two holders cost probes, none costs
// answers from here.

// report is a lease's value. A value without a time is no result yet.
type report struct {
	By    string    `json:"by"` // first: the scripts compare the beginning
	Round uint64    `json:"n,omitempty"`
	At    int64     `json:"at,omitempty"` // server's time, milliseconds
	Hot   []hotLine `json:"hot,omitempty"`
	// Skipped are streams that were not probed.
	Skipped []int `json:"skip,omitempty"`
	// Watched are streams to be probed to their end, each with the server's time in
	// milliseconds until which, 0 for ever.
	Watched [][2]int64 `json:"watch,omitempty"`
}

// hotLine is the first reclaimable entry of one stream.
type hotLine struct {
	Stream int    `json:"s"`
	ID     string `json:"id"`
	Owner  []byte `json:"o"` // any bytes, which a JSON string cannot hold
	Count  int64  `json:"c"`
}

// mark is how the value of a lease begins that this instance holds.
func (e *Engine) mark() string {
	name, err := json.Marshal(e.cfg.Instance)
	if err != nil {
		return `{"by":"` // a string always marshals
	}
	return `{"by":` + string(name)
}

// maxReport bounds a lease's value, which any client may write: tens of thousands of hot
// streams. takeScript has it too.
const maxReport = 4 << 20

// takeScript takes the lease if it is free, and reads it. A holder does not extend
// it here: only a result does, so that a holder that cannot probe loses it. What is longer
// than a report can be is somebody's garbage and written over; of the hints it reads 1,000
// at most, and none that is longer than any stream's name will be.
//
// KEYS: lease, list of hints. ARGV: mark, milliseconds. It returns whether the
// lease is ours and its value, and to the holder the time and the hints.
const takeScript = `
local value = redis.call('GET', KEYS[1])
if value and #value > 4194304 then value = false end
if value and string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return {0, value} end
if not value then
  value = ARGV[1] .. '}'
  redis.call('SET', KEYS[1], value, 'PX', ARGV[2])
end
local now = redis.call('TIME')
local hints, size = {}, 0
while #hints < 1000 and size < 1048576 do
  local hint = redis.call('LRANGE', KEYS[2], #hints, #hints)[1]
  if not hint then break end
  if #hint > 65536 then hint = '' end
  hints[#hints + 1], size = hint, size + #hint
end
return {1, value, now[1], now[2], hints}`

// storeScript stores a result if the lease is still ours, and removes the hints
// that the result has heeded. ARGV: mark, milliseconds, value, number of hints.
const storeScript = `
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[2])
if tonumber(ARGV[4]) > 0 then redis.call('LTRIM', KEYS[2], ARGV[4], -1) end
return 1`

// resignScript deletes the lease if it is ours.
const resignScript = `
local value = redis.call('GET', KEYS[1])
if value and string.sub(value, 1, #ARGV[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`

// backKey is the list of hints beside a lease.
func (w *sweep) backKey() string { return w.lease + ":back" }

// taken is what takeScript has said.
type taken struct {
	mine   bool
	report report
	server time.Time
	sent   time.Time // ours, when we asked
	hints  []string
}

// errDenied says that the server's ACL forbids what the lease needs.
type errDenied struct{ text string }

func (e errDenied) Error() string { return "denied: " + e.text }

// control runs one script of the lease.
func (e *Engine) control(ctx context.Context, script string, w *sweep, args ...string) ([]byte, error) {
	all := append([]string{"EVAL", script, "2", w.lease, w.backKey()}, args...)
	replies, err := e.up.Control(ctx, resp.AppendCommand(nil, all...), 1)
	if err != nil {
		return nil, err
	}
	if isError(replies[0]) {
		text := string(bytes.TrimSpace(replies[0]))
		if errorCode(replies[0]) == "NOPERM" || bytes.Contains(replies[0], []byte("can't run this command")) ||
			bytes.Contains(replies[0], []byte("can't access")) {
			return nil, errDenied{text}
		}
		return nil, errServer{text}
	}
	return replies[0], nil
}

// errServer is an error that the server has answered.
type errServer struct{ text string }

func (e errServer) Error() string { return e.text }

func (e *Engine) take(ctx context.Context, w *sweep) (t taken, err error) {
	t.sent = time.Now()
	raw, err := e.control(ctx, takeScript, w, e.mark(), millis(2*w.interval))
	e.mu.Lock()
	w.written = w.written || err == nil || !errors.Is(err, ErrNotSent)
	e.mu.Unlock()
	if err != nil {
		return t, err
	}
	v, _, err := resp.Parse(raw)
	if err != nil || len(v.Elems) != 2 && len(v.Elems) != 5 {
		return t, errShape
	}
	if err := json.Unmarshal(v.Elems[1].Text, &t.report); err != nil {
		t.report = report{} // somebody else's idea of a value is no result
	}
	if t.mine = len(v.Elems) == 5; !t.mine {
		e.mu.Lock()
		w.written = false
		e.mu.Unlock()
		return t, nil
	}
	t.server, err = serverTime(string(v.Elems[2].Text), string(v.Elems[3].Text))
	for _, h := range v.Elems[4].Elems {
		t.hints = append(t.hints, string(h.Text))
	}
	return t, err
}

var errLong = errors.New("the result is too long to be shared")

// store publishes a result; false says that the lease is no longer ours.
func (e *Engine) store(ctx context.Context, w *sweep, r report, hints int) (bool, error) {
	value, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	if len(value) > maxReport {
		return false, errLong // nobody would read it
	}
	raw, err := e.control(ctx, storeScript, w, e.mark(), millis(2*w.interval), string(value), strconv.Itoa(hints))
	return err == nil && textOf(raw) == "1", err
}

// resign gives the lease away, so that nobody has to wait for its end.
func (e *Engine) resign(ctx context.Context, w *sweep) {
	e.mu.Lock()
	written := w.written
	e.setLeading(w, false)
	w.led, w.written = 0, false // a round that takes it meanwhile says so again
	e.silencePages(w)
	e.mu.Unlock()
	if !written {
		return
	}
	if _, err := e.control(ctx, resignScript, w, e.mark()); err != nil {
		e.cfg.Logger.Warn("the lease could not be given up; it ends by itself", "lease", w.lease, "error", err)
		e.mu.Lock()
		w.written = true
		e.mu.Unlock()
	}
}

// resignLocked gives the lease away in the background, if it may be ours. The lock is
// held.
func (e *Engine) resignLocked(w *sweep) {
	if w.written {
		e.jobLocked(func(ctx context.Context) { e.resign(ctx, w) })
	}
}

// hint tells the holder of a stream's leases to look at it to its end: something
// has happened that makes an entry's idle time exceed its age. The lock is held.
func (e *Engine) hint(db int, stream, group string) {
	now := time.Now()
	var commands []byte
	n := 0
	for w := range e.covering[stream] {
		if w.db != db || w.group != group || now.Sub(w.hinted[stream]) < w.interval/2 {
			continue
		}
		w.hinted[stream] = now
		commands = resp.AppendCommand(commands, "RPUSH", w.backKey(), stream)
		commands = resp.AppendCommand(commands, "PEXPIRE", w.backKey(), millis(validity*w.interval))
		n += 2
	}
	if n == 0 {
		return
	}
	e.jobLocked(func(ctx context.Context) {
		if _, err := e.up.Control(ctx, commands, n); err != nil {
			e.cfg.Logger.Warn("the holder of the lease could not be told of entries given back", "stream", stream, "error", err)
		}
	})
}
