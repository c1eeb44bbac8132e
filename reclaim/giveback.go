package reclaim

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// A give-back makes an entry what it was before our claim: its owner's, as long
// idle as if nothing had happened, with its old delivery count. It must not touch
// an entry that somebody else has got meanwhile, nor bring a deleted consumer back
// to life.

// restoreScript gives back entries of one stream. An entry is touched only if it
// is still ours, was delivered exactly once by us, and nobody has reset its idle
// time since. If its old owner is no more, it stays with us, but reclaimable.
//
// KEYS: the stream. ARGV: group, our consumer, milliseconds since our claim at
// least; then for each entry id, old owner, old count, old idle time. It returns
// the ids that were given back.
const restoreScript = `
local stream, group, ours, since = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local alive = {}
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
  for i = 1, #consumer - 1, 2 do
    if consumer[i] == 'name' then alive[consumer[i + 1]] = true end
  end
end
local restored = {}
for i = 4, #ARGV, 4 do
  local id, owner, count, idle = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local now = redis.call('XPENDING', stream, group, id, id, 1)[1]
  if now and now[2] == ours and now[4] == count + 1 and now[3] >= since then
    if not alive[owner] then owner = ours end
    redis.call('XCLAIM', stream, group, owner, 0, id,
      'IDLE', string.format('%.0f', idle + now[3]), 'RETRYCOUNT', ARGV[i + 2], 'JUSTID')
    restored[#restored + 1] = id
  end
end
return restored`

const (
	// restoreTries is how often a give-back is tried when it cannot be delivered. It
	// may be repeated: what it has done once, it does not touch again.
	restoreTries = 5
	restorePause = 500 * time.Millisecond
)

// giveBack gives batches back in the background.
func (e *Engine) giveBack(batches []*batch) {
	if len(batches) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveBackLocked(batches)
}

func (e *Engine) giveBackLocked(batches []*batch) {
	if len(batches) > 0 {
		e.jobLocked(func(ctx context.Context) { e.restoreAll(ctx, batches) })
	}
}

// restoreAll gives batches back and waits until the server has them.
func (e *Engine) restoreAll(ctx context.Context, batches []*batch) {
	if e.faulty("forget") {
		return
	}
	for _, b := range batches {
		if err := e.restore(ctx, b); err != nil {
			t := b.profile.target
			e.cfg.Logger.Warn("claimed entries could not be given back; they wait for one more min-idle",
				"stream", t.stream, "group", t.group, "entries", b.ids(), "error", err)
		}
	}
}

// restore gives one batch back, trying again if the server cannot be reached.
func (e *Engine) restore(ctx context.Context, b *batch) error {
	for try := 1; ; try++ {
		n, err := e.restoreOnce(ctx, b)
		if err == nil {
			e.restored(b, n)
			return nil
		}
		if try == restoreTries {
			return err
		}
		pause := time.NewTimer(restorePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// restoreOnce returns how many entries went back.
func (e *Engine) restoreOnce(ctx context.Context, b *batch) (int, error) {
	t := b.profile.target
	args := []string{"EVAL", restoreScript, "1", t.stream, t.group, b.consumer.name, millis(time.Since(b.at))}
	for _, en := range b.entries {
		if en.was != nil {
			args = append(args, en.id, en.was.owner, strconv.FormatInt(en.was.count, 10), millis(en.was.idle))
		}
	}
	if len(args) == 7 {
		return 0, nil
	}
	replies, err := e.up.Do(ctx, b.id, resp.AppendCommand(nil, args...), 1)
	if err != nil {
		return 0, err
	}
	if !isError(replies[0]) {
		list, err := elements(replies[0])
		return len(list), err
	}
	switch errorCode(replies[0]) {
	case "NOGROUP", "WRONGTYPE":
		return 0, nil
	case "LOADING", "READONLY", "MASTERDOWN", "BUSY": // it will pass, perhaps
		return 0, errServer{string(bytes.TrimSpace(replies[0]))}
	}
	return e.restorePlain(ctx, b)
}

// restorePlain does without a script, for users who may not run one. The guard is
// XCLAIM's own min-idle: whoever has got an entry since our claim has reset its
// idle time to less than the time that has passed since.
func (e *Engine) restorePlain(ctx context.Context, b *batch) (int, error) {
	t := b.profile.target
	var commands []byte
	n := 0
	since := max(time.Since(b.at), time.Millisecond)
	for _, en := range b.entries {
		if en.was == nil {
			continue
		}
		commands = resp.AppendCommand(commands, "XCLAIM", t.stream, t.group, en.was.owner, millis(since), en.id,
			"IDLE", millis(en.was.idle+since), "RETRYCOUNT", strconv.FormatInt(en.was.count, 10), "JUSTID")
		n++
	}
	replies, err := e.up.Do(ctx, b.id, commands, n)
	if err != nil {
		return 0, err
	}
	restored := 0
	for _, r := range replies {
		if list, err := elements(r); err == nil {
			restored += len(list)
		}
	}
	return restored, nil
}

// restored makes everybody look: the streams are hot here at once, and the holder
// of the lease is told. A probe that ends at the youngest id that is old enough
// would not see an entry whose idle time exceeds its age.
func (e *Engine) restored(b *batch, n int) {
	if n == 0 {
		return
	}
	p := b.profile
	e.cfg.Events.entries("given_back", p.target.stream, p.target.group, n)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, en := range b.entries {
		if en.was == nil {
			continue
		}
		h := &hit{id: en.id, owner: en.was.owner, count: en.was.count, at: time.Now()}
		if p.hot == nil || lessID(h.id, p.hot.id) {
			p.hot = h
		} else {
			again := *p.hot // a claim under way must not end this one
			again.at = h.at
			p.hot = &again
		}
		break
	}
	e.countHot()
	e.hint(p.target.db, p.target.stream, p.target.group)
	e.poke()
}
