package reclaim

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

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

// restoration is entries of one stream that came to one consumer with one reply, and are
// to become what they were before.
type restoration struct {
	stream, group, ours string
	at                  time.Time // the reply has arrived by then
	entries             []entry   // those with a was go back
	n                   int       // how many did, as far as is known
}

// restoreList gives entries back as one user, in one pipeline, trying again if the
// server cannot be reached.
func restoreList(ctx context.Context, up Upstream, id Identity, list []*restoration) error {
	for try := 1; ; try++ {
		var err error
		list, err = restoreOnce(ctx, up, id, slices.DeleteFunc(list, (*restoration).empty))
		if err == nil || len(list) == 0 || try == restoreTries {
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

// empty reports whether nothing can be given back.
func (r *restoration) empty() bool {
	return !slices.ContainsFunc(r.entries, func(en entry) bool { return en.was != nil })
}

// doubted leaves of a list what may be given back again after an error. If commands may
// have been executed, that is not what was our consumer's before: it bears the mark of
// our claim again as soon as that consumer takes it once more, and a second give-back
// would take it away from whoever works on it.
func doubted(list []*restoration, err error) []*restoration {
	if !errors.Is(err, ErrNotSent) {
		for _, r := range list {
			for i, en := range r.entries {
				if en.was != nil && en.was.owner == r.ours {
					r.entries[i].was = nil
				}
			}
		}
	}
	return slices.DeleteFunc(list, (*restoration).empty)
}

// restoreOnce makes one attempt, and returns what is worth another, with the reason.
func restoreOnce(ctx context.Context, up Upstream, id Identity, list []*restoration) (left []*restoration, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	var commands []byte
	for _, r := range list {
		commands = r.appendScript(commands)
	}
	replies, err := up.Do(ctx, id, commands, len(list))
	if err != nil {
		return doubted(list, err), err
	}
	var plain []*restoration
	for i, r := range list {
		switch code := errorCode(replies[i]); {
		case !isError(replies[i]):
			done, _ := elements(replies[i])
			r.n += len(done)
		case code == "NOGROUP", code == "WRONGTYPE":
		case passing(replies[i]):
			left, err = append(left, r), errServer{string(bytes.TrimSpace(replies[i]))}
		default:
			plain = append(plain, r)
		}
	}
	if plainErr := restorePlain(ctx, up, id, plain); plainErr != nil {
		return append(left, doubted(plain, plainErr)...), plainErr
	}
	return left, err
}

func (r *restoration) appendScript(dst []byte) []byte {
	args := []string{"EVAL", restoreScript, "1", r.stream, r.group, r.ours, millis(time.Since(r.at))}
	for _, en := range r.entries {
		if en.was != nil {
			args = append(args, en.id, en.was.owner, strconv.FormatInt(en.was.count, 10), millis(en.was.idle))
		}
	}
	return resp.AppendCommand(dst, args...)
}

// restorePlain does without a script, for users who may not run one. The guard is
// XCLAIM's own min-idle: whoever has got an entry since it came to us has reset its idle
// time to less than the time that has passed since. It knows neither owner nor count, so
// a command that takes longer to get there than the entry has been somebody else's takes
// it from them.
func restorePlain(ctx context.Context, up Upstream, id Identity, list []*restoration) error {
	var commands []byte
	var whose []*restoration
	for _, r := range list {
		since := max(time.Since(r.at), time.Millisecond)
		for _, en := range r.entries {
			if en.was == nil {
				continue
			}
			commands = resp.AppendCommand(commands, "XCLAIM", r.stream, r.group, en.was.owner, millis(since), en.id,
				"IDLE", millis(en.was.idle+since), "RETRYCOUNT", strconv.FormatInt(en.was.count, 10), "JUSTID")
			whose = append(whose, r)
		}
	}
	if len(whose) == 0 {
		return nil
	}
	replies, err := up.Do(ctx, id, commands, len(whose))
	if err != nil {
		return err
	}
	for i, r := range whose {
		if done, err := elements(replies[i]); err == nil {
			r.n += len(done)
		}
	}
	return nil
}
