package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"streamproxy/reclaim"
)

func TestReclaimFlags(t *testing.T) {
	rules := []reclaim.GroupRule{{Pattern: "orders", MinIdle: time.Minute}, {Pattern: "dapr-*", MinIdle: 90 * time.Second, Own: true}}
	locks := []string{"autoclaim:{group}:{stream}", "lock,{stream}"}
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
	}{
		{"repeated", []string{"--reclaim-groups=orders=1m", "--reclaim-groups", "dapr-*=90s,own",
			"--reclaim-lock=autoclaim:{group}:{stream}", "--reclaim-lock=lock,{stream}"}, nil},
		{"semicolons", []string{"--reclaim-groups=orders=1m;dapr-*=90s,own", "--reclaim-lock=autoclaim:{group}:{stream};lock,{stream}"}, nil},
		{"variables", nil, []string{"STREAMPROXY_RECLAIM_GROUPS=orders=1m; dapr-*=90s,own", "STREAMPROXY_RECLAIM_LOCK=autoclaim:{group}:{stream};lock,{stream}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Load(tt.args, tt.environ, testMachine, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.ReclaimRules(); !reflect.DeepEqual(got, rules) {
				t.Errorf("rules %+v, want %+v", got, rules)
			}
			if !reflect.DeepEqual(l.ReclaimLock, locks) {
				t.Errorf("locks %q, want %q", l.ReclaimLock, locks)
			}
		})
	}
}

func TestReclaimLockMayBeNone(t *testing.T) {
	l, err := Load([]string{"--reclaim-lock="}, nil, testMachine, nil)
	if err != nil || len(l.ReclaimLock) != 0 {
		t.Errorf("got %q, %v", l.ReclaimLock, err)
	}
}

func TestReclaimModes(t *testing.T) {
	for text, want := range map[string]reclaim.Mode{"on": reclaim.On, "observe": reclaim.Observe, "off": reclaim.Off} {
		l, err := Load([]string{"--reclaim=" + text}, nil, testMachine, nil)
		if err != nil || l.ReclaimMode() != want {
			t.Errorf("%s: %v, %v", text, l.ReclaimMode(), err)
		}
	}
	if c := (Config{Reclaim: "perhaps"}); c.ReclaimMode() != reclaim.Off {
		t.Error("a mode that does not exist does something")
	}
}

// What these flags accept, package reclaim must accept too: it is asked at the start,
// when a fault would have no flag's name and no exit code of its own.
func TestReclaimFaults(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--reclaim=perhaps", `--reclaim: "perhaps" is not one of its values (want on, observe, off)`},
		{"--reclaim-interval=999ms", `--reclaim-interval: "999ms" is out of bounds (want 1s to 24h)`},
		{"--reclaim-groups=orders", `--reclaim-groups: "orders" is no rule: "orders" is not pattern=min-idle[,own]`},
		{"--reclaim-groups=a=1m;b=soon", `--reclaim-groups: "a=1m;b=soon" has an item "b=soon" that is no rule: "b=soon": "soon" is not a duration`},
		{"--reclaim-groups=a=1m,won", `--reclaim-groups: "a=1m,won" is no rule: "a=1m,won": the only option is own, not "won"`},
		{"--reclaim-groups=a=1s", `--reclaim-groups: "a=1s" is no rule: group pattern "a": min-idle 1s is below 2s`},
		{"--reclaim-groups=[=5s", `--reclaim-groups: "[=5s" is no rule: group pattern "[": syntax error in pattern`},
		{"--reclaim-lock=lock:{group}", `--reclaim-lock: "lock:{group}" does not contain {stream}`},
		{"--reclaim-key-prefix=", `--reclaim-key-prefix: is empty`},
		{"--reclaim-max-held-entries=-1", `--reclaim-max-held-entries: "-1" is out of bounds (want 0 to 1048576)`},
		{"--reclaim-max-held-bytes=-1", `--reclaim-max-held-bytes: "-1" is not a size such as 64kb, 64mb or 1gb (want 0 to 1024gb)`},
	} {
		_, err := Load(strings.Fields(tt.args), nil, testMachine, nil)
		if err == nil || err.Error() != "configuration: "+tt.want {
			t.Errorf("%s\ngot  %v\nwant configuration: %s", tt.args, err, tt.want)
		}
	}
}
