package reclaim

import (
	"strings"
	"testing"
	"time"
)

func TestDefaultConfigIsValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	c := Config{
		Mode: 9, Interval: time.Millisecond, MaxHeldEntries: -1, MaxHeldBytes: -1,
		Locks:  []string{"lock:{group}"},
		Groups: []GroupRule{{Pattern: "[", MinIdle: time.Minute}, {Pattern: "g", MinIdle: time.Second}},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, want := range []string{"mode(9)", "reclaim-interval", "reclaim-key-prefix", "max-held-entries", "max-held-bytes",
		"{stream}", `"["`, "1s is below"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in:\n%v", want, err)
		}
	}
	if _, err := New(c, nil); err == nil {
		t.Error("an engine was made of it")
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{On, Observe, Off} {
		if got, err := ParseMode(m.String()); err != nil || got != m {
			t.Errorf("%v: %v %v", m, got, err)
		}
	}
	if _, err := ParseMode("On"); err == nil {
		t.Error("On is a mode")
	}
}

func TestParseGroupRule(t *testing.T) {
	for s, want := range map[string]GroupRule{
		"g=30s":             {"g", 30 * time.Second, false},
		"jobs:*=10m,own":    {"jobs:*", 10 * time.Minute, true},
		"a=b=2s":            {"a=b", 2 * time.Second, false},
		"g=1s":              {},
		"g":                 {},
		"=30s":              {},
		"g=30s,mine":        {},
		"g=soon":            {},
		"[=30s":             {},
		"g=30s,own,further": {},
	} {
		got, err := ParseGroupRule(s)
		if want == (GroupRule{}) {
			if err == nil {
				t.Errorf("%q is a rule: %+v", s, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v %v", s, got, err)
		}
	}
}

func TestFirstRuleThatFitsCounts(t *testing.T) {
	c := Config{Groups: []GroupRule{{Pattern: "a*", MinIdle: time.Minute}, {Pattern: "*", MinIdle: time.Hour}}}
	if r, ok := c.rule("abc"); !ok || r.MinIdle != time.Minute {
		t.Errorf("%+v", r)
	}
	if r, ok := c.rule("b"); !ok || r.MinIdle != time.Hour {
		t.Errorf("%+v", r)
	}
	if _, ok := (&Config{}).rule("b"); ok {
		t.Error("no rule fits")
	}
}
