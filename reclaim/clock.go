package reclaim

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// clock translates between the server's time and ours. All times that are
// compared with the server's are taken from it.
//
// A pair of moments is kept, not a difference of clocks: ours is then read without
// the jumps that a wall clock makes when it is set.
type clock struct {
	ours, theirs time.Time // zero: not known
	doubtful     bool      // what was heard since does not fit
}

// clockIntervals is for how many intervals a server's clock is trusted to run as
// ours does.
const clockIntervals = 10

// set takes the server's answer to a question asked at sent. The time that the
// question travelled makes the server seem to be ahead, never behind: what is too
// young by that much is filtered out by the server itself.
func (c *clock) set(server, sent time.Time) {
	*c = clock{ours: sent, theirs: server}
}

func (c *clock) server(local time.Time) time.Time { return c.theirs.Add(local.Sub(c.ours)) }

// local translates a server's time into one that can be compared with now.
func (c *clock) local(server, now time.Time) time.Time {
	return now.Add(server.Sub(c.server(now)))
}

var timeCommand = resp.AppendCommand(nil, "TIME")

// learnClock asks the server for its time unless it is known well enough.
func (e *Engine) learnClock(ctx context.Context) error {
	e.mu.Lock()
	sent := time.Now()
	known := !e.clock.ours.IsZero() && !e.clock.doubtful && sent.Sub(e.clock.ours) < clockIntervals*e.cfg.Interval
	e.mu.Unlock()
	if known {
		return nil
	}
	replies, err := e.up.Control(ctx, timeCommand, 1)
	if err != nil {
		return err
	}
	if code := errorCode(replies[0]); code == "NOAUTH" || code == "NOPERM" {
		return errDenied{string(bytes.TrimSpace(replies[0]))}
	}
	parts, err := elements(replies[0])
	if err != nil || len(parts) != 2 {
		return errShape
	}
	server, err := serverTime(textOf(parts[0]), textOf(parts[1]))
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.clock.set(server, sent)
	e.mu.Unlock()
	return nil
}

// serverTime reads the two numbers of TIME.
func serverTime(seconds, micros string) (time.Time, error) {
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(s, us*1000), nil
}

// textOf is the payload of a scalar reply, empty for anything else.
func textOf(raw []byte) string {
	v, _, err := resp.Parse(raw)
	if err != nil {
		return ""
	}
	return string(v.Text)
}
