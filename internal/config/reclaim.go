package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"streamproxy/reclaim"
)

func reclaimFlags(c *Config) Group {
	return Group{"Stream consumers", []Flag{
		{Name: "reclaim", Arg: "MODE", field: choiceField(&c.Reclaim, reclaim.On.String(), reclaim.Observe.String(), reclaim.Off.String()),
			Help: "Answer consumers that ask for abandoned entries from what one proxy finds out for all of them. observe forwards everything and counts what would have been answered; off looks at nothing."},
		{Name: "reclaim-interval", Arg: "DURATION", field: durationField(&c.ReclaimInterval, time.Second, longest),
			Help: "Time between two looks at the same streams, however many proxies share them. Streams with a short min-idle are looked at every half of it."},
		{Name: "reclaim-groups", Arg: "RULE", field: separated(&c.ReclaimGroups, semicolon, checkGroupRule),
			Help: "pattern=min-idle[,own]: hand abandoned entries to blocked readers of groups that never ask for them. * in the pattern stands for anything but a slash; own also hands a consumer its own entries, for replicas that share one name. Repeatable, or separated by semicolons; the first rule that fits counts."},
		{Name: "reclaim-lock", Arg: "TEMPLATE", field: separated(&c.ReclaimLock, semicolon, checkLock),
			Help: "Name of the key by which consumers lock their reclaim of a stream, with {group} and {stream} in it. Repeatable, or separated by semicolons; empty if they take no lock."},
		{Name: "reclaim-key-prefix", Arg: "PREFIX", field: textField(&c.ReclaimKeyPrefix, checkPrefix),
			Help: "Begins the names of the keys that the proxy itself writes; the upstream URL's user needs access to them. Proxies must agree on it to share their looks."},
		{Name: "reclaim-max-held-entries", Arg: "N", field: intField(&c.ReclaimMaxHeldEntries, 0, maxCount),
			Help: "Entries held, for a second at most, for consumers that are about to ask for them. 0 claims for the one that asks alone."},
		{Name: "reclaim-max-held-bytes", Arg: "SIZE", field: sizeField(&c.ReclaimMaxHeldBytes, 0, largest),
			Help: "Bytes of these entries; once they are reached, nothing more is held. A quarter of --memory-limit, if that is less."},
	}}
}

// ReclaimRules is --reclaim-groups as package reclaim knows it. Rules that Validate
// refuses are left out.
func (c *Config) ReclaimRules() []reclaim.GroupRule {
	var rules []reclaim.GroupRule
	for _, text := range c.ReclaimGroups {
		if r, err := reclaim.ParseGroupRule(text); err == nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// ReclaimMode is --reclaim as package reclaim knows it; what Validate refuses is off.
func (c *Config) ReclaimMode() reclaim.Mode {
	mode, err := reclaim.ParseMode(c.Reclaim)
	if err != nil {
		return reclaim.Off
	}
	return mode
}

func checkGroupRule(text string) error {
	if _, err := reclaim.ParseGroupRule(text); err != nil {
		return fmt.Errorf("is no rule: %w", err)
	}
	return nil
}

func checkLock(template string) error {
	if !strings.Contains(template, "{stream}") {
		return errors.New("does not contain {stream}")
	}
	return nil
}

func checkPrefix(prefix string) error {
	if prefix == "" {
		return errors.New("is empty")
	}
	return nil
}
