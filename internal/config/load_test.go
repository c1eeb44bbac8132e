package config

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/upstream"
)

var testMachine = Machine{CPUs: 8, Memory: 512 << 20}

func TestLoadPrecedence(t *testing.T) {
	const env = "STREAMPROXY_MAX_LANES=7"
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		want    int
	}{
		{"default", nil, nil, 64},
		{"variable over default", nil, []string{env}, 7},
		{"flag over variable", []string{"--max-lanes=9"}, []string{env}, 9},
		{"flag in two words", []string{"--max-lanes", "9"}, nil, 9},
		{"one dash", []string{"-max-lanes", "9"}, nil, 9},
		{"the last flag counts", []string{"--max-lanes=9", "--max-lanes=11"}, nil, 11},
		{"empty variable is unset", nil, []string{"STREAMPROXY_MAX_LANES="}, 64},
		{"overridden variable is not looked at", []string{"--max-lanes=9"}, []string{"STREAMPROXY_MAX_LANES=x"}, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Load(tt.args, tt.environ, testMachine, nil)
			if err != nil {
				t.Fatal(err)
			}
			if l.MaxLanes != tt.want {
				t.Errorf("got %d, want %d", l.MaxLanes, tt.want)
			}
		})
	}
}

func TestLoadLists(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		want    []string
	}{
		{"default", nil, nil, []string{"127.0.0.1:6380"}},
		{"repeated flag replaces the default", []string{"--listen", ":1", "--listen=[::1]:2"}, nil, []string{":1", "[::1]:2"}},
		{"commas", []string{"--listen=:1,:2", "--listen=:3"}, nil, []string{":1", ":2", ":3"}},
		{"variable", nil, []string{"STREAMPROXY_LISTEN=:1,unix:///run/x.sock?mode=0660"}, []string{":1", "unix:///run/x.sock?mode=0660"}},
		{"flag replaces the variable", []string{"--listen=:9"}, []string{"STREAMPROXY_LISTEN=:1,:2"}, []string{":9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Load(tt.args, tt.environ, testMachine, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(l.Listen, tt.want) {
				t.Errorf("got %q, want %q", l.Listen, tt.want)
			}
		})
	}
}

func TestLoadAutomatic(t *testing.T) {
	l, err := Load(nil, nil, testMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Threads != (Auto[int]{true, 2}) || l.MemoryLimit != (Auto[int64]{true, 256 << 20}) || !l.MaxFlushDelay.Auto {
		t.Errorf("automatic values: %+v %+v %+v", l.Threads, l.MemoryLimit, l.MaxFlushDelay)
	}
	l, err = Load([]string{"--threads=3", "--memory-limit=0", "--max-flush-delay=200us"}, nil, testMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Threads.Value != 3 || l.MemoryLimit != (Auto[int64]{}) || l.MaxFlushDelay != (Auto[time.Duration]{Value: 200 * time.Microsecond}) {
		t.Errorf("given values: %+v %+v %+v", l.Threads, l.MemoryLimit, l.MaxFlushDelay)
	}
	want := []Setting{{"max-flush-delay", "200us"}, {"memory-limit", "0"}, {"threads", "3"}}
	if !reflect.DeepEqual(l.Changed, want) {
		t.Errorf("Changed = %v, want %v", l.Changed, want)
	}
}

// Each case is one fault; the message must name flag, value and bound.
func TestLoadFaults(t *testing.T) {
	for _, tt := range []struct {
		args    string
		environ []string
		want    string
	}{
		{"--max-lanes=0", nil, `--max-lanes: "0" is out of bounds (want 1 to 65536)`},
		{"--max-lanes=x", nil, `--max-lanes: "x" is not a whole number (want 1 to 65536)`},
		{"--max-lanes", nil, `--max-lanes: needs a value (want 1 to 65536)`},
		{"", []string{"STREAMPROXY_MAX_LANES=0"}, `--max-lanes (from STREAMPROXY_MAX_LANES): "0" is out of bounds (want 1 to 65536)`},
		{"--no-such-flag value", nil, `--no-such-flag: is not a flag of this command`},
		{"--no-such-flag=value", nil, `--no-such-flag: is not a flag of this command`},
		{"surplus", nil, `arguments: "surplus" is not a flag`},
		{"--", nil, `arguments: "--" is not a flag`},
		{"---x=1", nil, `---x: is not a flag of this command`},
		{"--max-flush-delay=2s", nil, `--max-flush-delay: "2s" is out of bounds (want auto, 0 to 100ms)`},
		{"--max-flush-delay=5", nil, `--max-flush-delay: "5" is not auto and is not a duration such as 200us, 5s or 1m (want auto, 0 to 100ms)`},
		{"--client-buffer-limit=64kib", nil, `--client-buffer-limit: "64kib" is not a size such as 64kb, 64mb or 1gb (want 64kb to 1024gb)`},
		{"--memory-limit=5kb", nil, `--memory-limit: "5kb" is out of bounds (want auto, 0 or 1mb to 1024gb)`},
		{"--log-level=loud", nil, `--log-level: "loud" is not one of its values (want debug, info, warn, error)`},
		{"--listen=6380", nil, `--listen: "6380" is not host:port`},
		{"--listen=:1,x", nil, `--listen: ":1,x" has an item "x" that is not host:port`},
		{"--listen=:70000", nil, `--listen: ":70000" has a port that is not 0 to 65535`},
		{"--listen=unix://x.sock", nil, `--listen: "unix://x.sock" is neither host:port, tls://host:port nor unix:///path?mode=0660`},
		{"--listen=unix:///x?mode=999", nil, `--listen: "unix:///x?mode=999" has a mode that is not octal, 0 to 0777`},
		{"--listen=unix:///x?made=1", nil, `--listen: "unix:///x?made=1" has the unknown parameter "made"`},
		{"--listen=", nil, `--listen: is empty, so that no client could connect`},
		{"--listen=unix:///" + strings.Repeat("x", maxSocketPath), nil, fmt.Sprintf(`--listen: "unix:///%s" has a path of %d bytes; the system allows a socket's %d`, strings.Repeat("x", maxSocketPath), maxSocketPath+1, maxSocketPath)},
		{"--listen=unix:///a,unix:///./a?mode=0600", nil, `--listen: "/a" is listened at twice`},
		{"--listen=unix:///a --admin-listen=unix:///a", nil, `--listen: "/a" is listened at twice`},
		{"--listen=127.0.0.1:1 --listen=127.0.0.1:1", nil, `--listen: "127.0.0.1:1" is listened at twice`},
		{"--telemetry-listen=9380", nil, `--telemetry-listen: "9380" is not host:port`},
		{"--shared-commands=JSON.GET,", nil, `--shared-commands: "JSON.GET," has an empty item`},
		{"--requirepass-file=/no/such/file", nil, `--requirepass-file: "/no/such/file" cannot be used: open /no/such/file: no such file or directory`},
		{"--upstream-conns=9 --max-lanes=8", nil, `--upstream-conns: "9" exceeds --max-lanes 8`},
		{"--private-min-idle=9 --private-max=8", nil, `--private-min-idle: "9" exceeds --private-max 8`},
		{"--drain-min=26s", nil, `--drain-min: "26s" exceeds --drain-timeout 25s`},
		{"--upstream=redis-cluster://h", nil, `--upstream: "redis-cluster://h" is no usable URL: upstream URL: scheme "redis-cluster": not yet supported`},
		{"--upstream=localhost", nil, `--upstream: "xxxxx" is no usable URL: upstream URL: no scheme, want redis://host:port, rediss://host:port or unix:///path`},
	} {
		t.Run(tt.args+strings.Join(tt.environ, " "), func(t *testing.T) {
			_, err := Load(strings.Fields(tt.args), tt.environ, testMachine, nil)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want Faults", err)
			}
			if len(faults) != 1 || faults[0].Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestLoadReportsEveryFault(t *testing.T) {
	args := strings.Fields("--nope 1 --max-lanes=0 --log-level=loud --threads=0 stray --drain-idle=x")
	environ := []string{"STREAMPROXY_MAXCLIENTS=-1", "STREAMPROXY_DIAL_TIMEOUT=soon", "STREAMPROXY_LOG_FORMAT=json"}
	_, err := Load(args, environ, testMachine, nil)
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want Faults", err)
	}
	var names []string
	for _, f := range faults {
		names = append(names, f.Name)
	}
	want := []string{
		"--nope", "arguments",
		"--maxclients (from STREAMPROXY_MAXCLIENTS)", "--max-lanes", "--dial-timeout (from STREAMPROXY_DIAL_TIMEOUT)",
		"--threads", "--log-level", "--drain-idle",
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	if text := err.Error(); strings.Count(text, "\n") != len(want) {
		t.Errorf("want one line a fault below a heading, got %q", text)
	}
}

func TestNotYetSupportedIsRecognised(t *testing.T) {
	_, err := Load([]string{"--upstream=redis-cluster://h"}, nil, testMachine, nil)
	if !errors.Is(err, upstream.ErrNotYetSupported) {
		t.Errorf("got %v", err)
	}
}

func TestLoadHelp(t *testing.T) {
	for _, arg := range []string{"-h", "--help", "-help"} {
		if _, err := Load([]string{"--max-lanes=0", arg}, nil, testMachine, nil); !errors.Is(err, ErrHelp) {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}

func TestLoadOwnFlags(t *testing.T) {
	newOwn := func() (*flag.FlagSet, *bool, *int) {
		own := flag.NewFlagSet("check", flag.ContinueOnError)
		return own, own.Bool("dial", false, ""), own.Int("n", 0, "")
	}
	own, dial, n := newOwn()
	if _, err := Load([]string{"--dial", "--n", "3", "--max-lanes=2"}, nil, testMachine, own); err != nil || !*dial || *n != 3 {
		t.Errorf("dial %v, n %d, %v", *dial, *n, err)
	}
	for _, tt := range []struct{ args, want string }{
		{"--dial=perhaps", `--dial: "perhaps" is no value of this flag`},
		{"--n", "--n: needs a value"},
	} {
		own, _, _ := newOwn()
		if _, err := Load([]string{tt.args}, nil, testMachine, own); err == nil || err.Error() != "configuration: "+tt.want {
			t.Errorf("%s: got %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestLoadWarnings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		environ []string
		want    string // part of the only warning; empty: none
	}{
		{"nothing to warn of", []string{"--upstream=redis://user@h"}, []string{"PATH=/bin", "STREAMPROXY_LISTEN=:1"}, ""},
		{"password in the arguments", []string{"--upstream=redis://u:geheim@h"}, nil, "arguments"},
		{"password in the environment", nil, []string{"STREAMPROXY_UPSTREAM=redis://:geheim@h"}, "environment"},
		{"typing error", nil, []string{"STREAMPROXY_MAXCLIENT=5"}, "STREAMPROXY_MAXCLIENT is not one"},
		{"service links", nil, []string{"STREAMPROXY_PORT=tcp://1", "STREAMPROXY_PORT_6380_TCP=x", "STREAMPROXY_SERVICE_HOST=x"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Load(tt.args, tt.environ, testMachine, nil)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(l.Warnings, "\n")
			if len(l.Warnings) > 1 || !strings.Contains(all, tt.want) || (tt.want == "") != (all == "") {
				t.Errorf("warnings %q, want one with %q", l.Warnings, tt.want)
			}
			if strings.Contains(all, "geheim") {
				t.Errorf("secret in %q", all)
			}
		})
	}
}
