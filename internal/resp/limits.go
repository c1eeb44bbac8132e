package resp

import "math"

// Limits bounds what one command may ask for. The zero value refuses nearly
// everything; start from DefaultLimits.
type Limits struct {
	// MaxBulk is the largest argument in bytes (Redis: proto-max-bulk-len).
	MaxBulk int64
	// MaxArgs is the largest number of arguments, the command's name included.
	MaxArgs int
	// MaxInline is how many bytes an inline line or a length header may have before
	// its line end (Redis: PROTO_INLINE_MAX_SIZE).
	MaxInline int
	// PreAuth says that MaxBulk and MaxArgs are those of a client that has yet to
	// authenticate. It changes the text of the refusal only.
	PreAuth bool
}

// The figures of Redis 7. maxArgsRedis is INT_MAX, the bound above which Redis
// calls a count invalid whoever sends it.
const (
	defaultMaxBulk   = 512 << 20
	defaultMaxArgs   = 1 << 20
	defaultMaxInline = 64 << 10
	preAuthMaxBulk   = 16384
	preAuthMaxArgs   = 10
	maxArgsRedis     = math.MaxInt32
)

// DefaultLimits returns Redis's limits, except for the number of arguments:
// Redis allows 2^31-1, and each costs memory before the command can be refused.
func DefaultLimits() Limits {
	return Limits{MaxBulk: defaultMaxBulk, MaxArgs: defaultMaxArgs, MaxInline: defaultMaxInline}
}

// PreAuthLimits returns what Redis grants a client that must authenticate and has
// not: room for AUTH and HELLO.
func PreAuthLimits() Limits {
	return Limits{MaxBulk: preAuthMaxBulk, MaxArgs: preAuthMaxArgs, MaxInline: defaultMaxInline, PreAuth: true}
}

// refuseArgs returns why a command of n arguments is refused, or "".
func (l *Limits) refuseArgs(n int64) string {
	switch {
	case n <= int64(l.MaxArgs):
		return ""
	case l.PreAuth && n <= maxArgsRedis:
		return reasonPreAuthCount
	default:
		return reasonCount
	}
}

// refuseBulk returns why an argument of n bytes is refused, or "".
func (l *Limits) refuseBulk(n int64) string {
	switch {
	case n >= 0 && n <= l.MaxBulk:
		return ""
	case l.PreAuth && n >= 0 && n <= defaultMaxBulk:
		return reasonPreAuthBulk
	default:
		return reasonBulk
	}
}
