package proxy

import "time"

// Limit is one of the bounds that a client can meet without its command being at fault.
type Limit uint8

// The limits, each with the flag that sets it.
const (
	// LimitTransactions refuses a transaction: --private-max.
	LimitTransactions Limit = iota
	// LimitLanes serves a client over private connections instead: --max-lanes.
	LimitLanes
	// LimitStalled closes a client that owes too much and takes nothing:
	// --client-buffer-limit and --client-stall-timeout.
	LimitStalled
	// LimitMemory closes the client that owes most: --memory-limit.
	LimitMemory
	// LimitIdle closes a client that says nothing: --client-idle-timeout.
	LimitIdle
	numLimits
)

var limitNames = [numLimits]string{"transactions", "lanes", "stalled", "memory", "idle"}

// String returns the limit as it stands in the metric's label.
func (l Limit) String() string { return limitNames[l] }

// Limits lists every limit, for collectors that create their series ahead.
func Limits() []Limit {
	all := make([]Limit, numLimits)
	for i := range all {
		all[i] = Limit(i)
	}
	return all
}

// met counts that a client has met a limit, and logs it with what follows from it. Clients
// can do so as often as they like: one line stands for all within some seconds.
func (p *Proxy) met(l Limit, consequence string, attrs ...any) {
	if f := p.cfg.Events.Limited; f != nil {
		f(l)
	}
	if n := p.limits[l].take(time.Now()); n > 0 {
		attrs = append([]any{"limit", l.String(), "so", consequence, "such_events", n}, attrs...)
		p.log.Warn("a client has met a limit", attrs...)
	}
}
