package reclaim

import "time"

// Events tells an observer what reclaim does. Every field is optional; the
// functions must not block. Some are called with the engine's lock held: they must
// not call back.
type Events struct {
	// Round reports the end of one round: "led" with the lease, "followed" with
	// another proxy's result, "failed", "denied" by the server's ACL.
	Round func(result string)
	// Succeeded reports the server's time of a result that was taken over.
	Succeeded func(at time.Time)
	// Leases reports how many leases this proxy holds.
	Leases func(n int)
	// Local reports a command answered here, by its name in lower case; a lock step
	// and a whole MULTI form count as one each.
	Local func(command string)
	// Observed reports, in observe mode, a command that would have been answered here
	// and whether the server's answer was another one.
	Observed func(command string, differed bool)
	// Forwarded reports a command of the reclaim pass that was left to the server:
	// "unknown", "expired", "form", "start", "min_idle", "denied", "draining", "unsent",
	// "refused", "large", "observe".
	Forwarded func(reason string)
	// Entries reports entries that were "claimed", "delivered", "given_back" or found
	// "deleted" in a claim.
	Entries func(action, stream, group string, n int)
	// Hot reports how many profiles have entries to be claimed.
	Hot func(n int)
	// Held reports what is held for consumers that have not fetched it yet.
	Held func(entries int, bytes int64)
	// LargePEL reports a group whose pending entries are read page by page, and how
	// long it takes to see all of them; 0 entries says that it is small again, or no
	// longer read by this proxy.
	LargePEL func(stream, group string, entries int64, full time.Duration)
	// ConsumerDeleted reports an XGROUP DELCONSUMER that passed and took n pending
	// entries with it for good.
	ConsumerDeleted func(n int64)
}

func (e *Events) round(result string) {
	if e.Round != nil {
		e.Round(result)
	}
}

func (e *Events) succeeded(at time.Time) {
	if e.Succeeded != nil {
		e.Succeeded(at)
	}
}

func (e *Events) leases(n int) {
	if e.Leases != nil {
		e.Leases(n)
	}
}

func (e *Events) local(command string) {
	if e.Local != nil {
		e.Local(command)
	}
}

func (e *Events) observed(command string, differed bool) {
	if e.Observed != nil {
		e.Observed(command, differed)
	}
}

func (e *Events) forwarded(reason string) {
	if e.Forwarded != nil {
		e.Forwarded(reason)
	}
}

func (e *Events) entries(action, stream, group string, n int) {
	if e.Entries != nil && n > 0 {
		e.Entries(action, stream, group, n)
	}
}

func (e *Events) hot(n int) {
	if e.Hot != nil {
		e.Hot(n)
	}
}

func (e *Events) held(entries int, bytes int64) {
	if e.Held != nil {
		e.Held(entries, bytes)
	}
}

func (e *Events) largePEL(stream, group string, entries int64, full time.Duration) {
	if e.LargePEL != nil {
		e.LargePEL(stream, group, entries, full)
	}
}

func (e *Events) consumerDeleted(n int64) {
	if e.ConsumerDeleted != nil && n > 0 {
		e.ConsumerDeleted(n)
	}
}
