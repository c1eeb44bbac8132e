package differential

import "fmt"

// outcome is what one pipe of a script brought.
type outcome struct {
	pipe   []op
	frames []string
	// end says how the reading ended if not with the last reply: closed, or silence.
	end string
}

// How reading ended.
const (
	closed = "the connection is closed"
	silent = "nothing more comes"
)

// difference is where two transcripts part.
type difference struct {
	pipe           []op
	reply          int // which reply of the pipe
	direct, behind string
}

func (d *difference) Error() string {
	text := ""
	for _, o := range d.pipe {
		text += fmt.Sprintf("\n  %d> %.300q", o.conn, o.args)
	}
	return fmt.Sprintf("reply %d differs:%s\n  direct  %.600q\n  proxied %.600q", d.reply, text, d.direct, d.behind)
}

// compare returns the first difference of two transcripts, nil if there is none.
func compare(direct, behind []outcome) *difference {
	carried := map[int]leeway{} // by connection: of what an open transaction has queued
	open := map[int]bool{}
	// By connection: it subscribes, and replies come out of step, since in RESP3 the server puts messages
	// to a subscriber among the elements of that subscriber's EXEC.
	listens, astray := map[int]bool{}, map[int]bool{}
	own := map[int]bool{}     // by connection: it has a private one behind the proxy since WATCH or MULTI
	unnamed := map[int]bool{} // by connection: that one was taken for good within MULTI, where it cannot be renamed
	for i, d := range direct {
		if i >= len(behind) {
			return &difference{pipe: d.pipe, direct: fmt.Sprint(d.frames), behind: "not played"}
		}
		conn := d.pipe[0].conn
		l := carried[conn]
		for _, o := range d.pipe {
			args := o.words()
			own[conn] = (own[conn] || named(args, "watch", "multi")) && !named(args, "reset")
			l |= leewayOf(args)
			unnamed[conn] = (unnamed[conn] || open[conn] && takes(args)) && !named(args, "reset")
			if own[conn] && named(args, "client") && (open[conn] || unnamed[conn] || !aboutName(args)) {
				l |= names
			}
			listens[conn] = (listens[conn] || named(args, "subscribe", "psubscribe", "ssubscribe")) && !named(args, "reset")
			astray[conn] = astray[conn] || listens[conn] && named(args, "exec")
			open[conn] = (open[conn] || named(args, "multi")) && !named(args, "exec", "discard", "reset")
		}
		delete(carried, conn)
		if open[conn] || astray[conn] {
			carried[conn] = l
		}
		if diff := compareOutcomes(d, behind[i], l); diff != nil {
			return diff
		}
	}
	return nil
}

// aboutName reports whether a command asks for the client's name, or gives one.
func aboutName(args []string) bool {
	return len(args) > 1 && named(args, "client") && named(args[1:], "getname", "setname")
}

// takes reports whether a command takes its connection for good.
func takes(args []string) bool {
	return named(args, "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "monitor",
		"readonly", "readwrite", "asking", "replconf", "psync", "sync", "script") ||
		named(args, "client") && !aboutName(args)
}

func compareOutcomes(d, b outcome, l leeway) *difference {
	for k := range max(len(d.frames), len(b.frames)) {
		at := &difference{pipe: d.pipe, reply: k, direct: d.end, behind: b.end}
		if k < len(d.frames) {
			at.direct = d.frames[k]
		}
		if k < len(b.frames) {
			at.behind = b.frames[k]
		}
		if k >= len(d.frames) || k >= len(b.frames) {
			return at
		}
		if at.direct != at.behind && normal(at.direct, l) != normal(at.behind, l) && (l&lost == 0 || at.behind != waitLost) {
			return at
		}
	}
	if d.end != b.end {
		return &difference{pipe: d.pipe, reply: len(d.frames), direct: d.end, behind: b.end}
	}
	return nil
}
