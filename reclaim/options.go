package reclaim

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"
	"time"
)

// Mode says how far reclaim goes.
type Mode uint8

// The modes, in the order of --reclaim's values.
const (
	// On answers what is known, claims for those who are ready, gives back the rest.
	On Mode = iota
	// Observe forwards everything and counts what would have been answered here.
	Observe
	// Off looks at nothing.
	Off
)

var modeNames = [...]string{On: "on", Observe: "observe", Off: "off"}

// String returns the mode as it is written on the command line.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", m)
}

// ParseMode reads a mode.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("%q is not one of on, observe, off", s)
}

// MinIdle is the shortest min-idle-time that is served here. What becomes
// reclaimable faster than that is moved by whoever asks, at the server.
const MinIdle = 2 * time.Second

// GroupRule makes profiles for consumers of groups whose clients never reclaim.
type GroupRule struct {
	// Pattern is matched against the group's name, as path.Match does.
	Pattern string
	// MinIdle is how long an entry must have been idle before another gets it.
	MinIdle time.Duration
	// Own lets a parked reader get its own consumer's entries too: replicas share one
	// name, and no task outlasts MinIdle.
	Own bool
}

// ParseGroupRule reads "pattern=min-idle" or "pattern=min-idle,own".
func ParseGroupRule(s string) (GroupRule, error) {
	at := strings.LastIndexByte(s, '=')
	if at < 1 {
		return GroupRule{}, fmt.Errorf("%q is not pattern=min-idle[,own]", s)
	}
	r := GroupRule{Pattern: s[:at]}
	text, option, more := strings.Cut(s[at+1:], ",")
	if r.Own = more; more && option != "own" {
		return GroupRule{}, fmt.Errorf("%q: the only option is own, not %q", s, option)
	}
	var err error
	if r.MinIdle, err = time.ParseDuration(text); err != nil {
		return GroupRule{}, fmt.Errorf("%q: %q is not a duration", s, text)
	}
	return r, r.validate()
}

func (r GroupRule) validate() error {
	if _, err := path.Match(r.Pattern, ""); err != nil {
		return fmt.Errorf("group pattern %q: %w", r.Pattern, err)
	}
	if r.MinIdle < MinIdle {
		return fmt.Errorf("group pattern %q: min-idle %v is below %v", r.Pattern, r.MinIdle, MinIdle)
	}
	return nil
}

// Config is everything an Engine needs to know. Start from DefaultConfig.
type Config struct {
	// Mode is --reclaim.
	Mode Mode
	// Interval is the time between two rounds over the same streams, however many
	// proxies share them. A profile with a short min-idle is probed more often.
	Interval time.Duration
	// Groups are the rules for clients that never reclaim.
	Groups []GroupRule
	// Locks are the templates of the lock keys that clients take around a reclaim.
	// {group} and {stream} are replaced; nothing is ever parsed out of a key.
	Locks []string
	// KeyPrefix begins the name of every key that the proxy itself writes.
	KeyPrefix string
	// MaxHeldEntries and MaxHeldBytes bound what is held for consumers that have not
	// fetched it yet. At the cap, claims are made for the caller alone.
	MaxHeldEntries int
	MaxHeldBytes   int64
	// MaxClaimBytes bounds the replies to all claims under way that are made here; it is
	// shared out among them, and what is larger is left to the server. 0 is no limit for
	// all together; one may have 8 MiB. It bounds what is held, too.
	MaxClaimBytes int64
	// MaxRememberedBytes bounds, about, what is remembered of streams and consumers. Beyond, the
	// commands of further ones are forwarded. 0 is 512 MiB.
	MaxRememberedBytes int64
	// Instance names this process among the proxies that share leases; it must be
	// unique. New makes one up if it is empty.
	Instance string

	Events Events
	Logger *slog.Logger
}

// DefaultConfig returns the configuration of a proxy started without any flag.
func DefaultConfig() Config {
	return Config{
		Interval:       30 * time.Second,
		Locks:          []string{"autoclaim:{group}:{stream}"},
		KeyPrefix:      "streamproxy:",
		MaxHeldEntries: 10000,
		MaxHeldBytes:   64 << 20,
		Logger:         slog.New(slog.DiscardHandler),
	}
}

// Validate names every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.Mode > Off, "reclaim: unknown %v", c.Mode)
	fault(c.Interval < time.Second, "reclaim-interval: %v is below 1s", c.Interval)
	fault(c.KeyPrefix == "", "reclaim-key-prefix: must not be empty")
	fault(c.MaxHeldEntries < 0, "reclaim-max-held-entries: %d is negative", c.MaxHeldEntries)
	fault(c.MaxHeldBytes < 0, "reclaim-max-held-bytes: %d is negative", c.MaxHeldBytes)
	fault(c.MaxClaimBytes < 0, "reclaim: MaxClaimBytes %d is negative", c.MaxClaimBytes)
	fault(c.MaxRememberedBytes < 0, "reclaim: MaxRememberedBytes %d is negative", c.MaxRememberedBytes)
	for _, l := range c.Locks {
		fault(!strings.Contains(l, "{stream}"), "reclaim-lock: %q does not contain {stream}", l)
	}
	for _, g := range c.Groups {
		if err := g.validate(); err != nil {
			faults = append(faults, fmt.Errorf("reclaim-groups: %w", err))
		}
	}
	return errors.Join(faults...)
}

// rule returns the first rule that fits a group.
func (c *Config) rule(group string) (GroupRule, bool) {
	for _, r := range c.Groups {
		if ok, _ := path.Match(r.Pattern, group); ok {
			return r, true
		}
	}
	return GroupRule{}, false
}
