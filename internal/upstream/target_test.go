package upstream

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const none = "\x00"
	tests := []struct {
		raw, network, addr, user, password string
		db                                 int
		text                               string // of String; empty: raw itself
	}{
		{"redis://h:1", "tcp", "h:1", "", none, 0, ""},
		{"redis://h", "tcp", "h:6379", "", none, 0, "redis://h:6379"},
		{"REDIS://h/", "tcp", "h:6379", "", none, 0, "redis://h:6379"},
		{"redis://h:1/7", "tcp", "h:1", "", none, 7, ""},
		{"redis://h:65535/2147483647", "tcp", "h:65535", "", none, 2147483647, ""},
		{"redis://[::1]:6380/2", "tcp", "[::1]:6380", "", none, 2, ""},
		{"redis://[fe80::1%25eth0]", "tcp", "[fe80::1%eth0]:6379", "", none, 0, "redis://[fe80::1%25eth0]:6379"},
		{"redis://u:p@h:1", "tcp", "h:1", "u", "p", 0, "redis://u@h:1"},
		{"redis://:p@h:1", "tcp", "h:1", "", "p", 0, "redis://h:1"},
		{"redis://u@h:1", "tcp", "h:1", "u", none, 0, "redis://xxxxx@h:1"},
		{"redis://u:@h:1", "tcp", "h:1", "u", "", 0, "redis://u@h:1"},
		{"redis://a%40b:p%2F%3A%40%25@h:1", "tcp", "h:1", "a@b", "p/:@%", 0, "redis://a%40b@h:1"},
		{"rediss://h", "tcp", "h:6379", "", none, 0, "rediss://h:6379"},
		{"REDISS://u:p@[::1]:6380/2", "tcp", "[::1]:6380", "u", "p", 2, "rediss://u@[::1]:6380/2"},
		{"unix:///run/r.sock", "unix", "/run/r.sock", "", none, 0, ""},
		{"unix:///run/r.sock?db=3", "unix", "/run/r.sock", "", none, 3, ""},
		{"unix://u:p@/run/r.sock?db=3", "unix", "/run/r.sock", "u", "p", 3, "unix://u@/run/r.sock?db=3"},
		{"unix:///a%20b", "unix", "/a b", "", none, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			got, err := Parse(tt.raw)
			if err != nil {
				t.Fatal(err)
			}
			password := none
			if got.Password != nil {
				if password, err = got.Password(); err != nil {
					t.Fatal(err)
				}
			}
			if got.Network != tt.network || got.Addr != tt.addr || got.User != tt.user || password != tt.password || got.DB != tt.db {
				t.Errorf("got %s %s user %q password %q db %d", got.Network, got.Addr, got.User, password, got.DB)
			}
			if secure := strings.HasPrefix(strings.ToLower(tt.raw), "rediss:"); secure != (got.TLS != nil) {
				t.Errorf("encrypted: %v, want %v", got.TLS != nil, secure)
			}
			want := tt.text
			if want == "" {
				want = tt.raw
			}
			if got.String() != want {
				t.Errorf("String() = %s, want %s", got, want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ raw, names string }{
		{"", "no scheme"},
		{"localhost:6379", "no scheme"},
		{"http://h", `"http"`},
		{"redis://", "no host"},
		{"redis://:6379", "no host"},
		{"redis://h:0", `port "0": want a number from 1 to 65535`},
		{"redis://h:65536", `"65536"`},
		{"redis://h:http", "port"},
		{"redis://h/-1", `database "-1": want a number from 0 to 2147483647`},
		{"redis://h/2147483648", `"2147483648"`},
		{"redis://h/x", `"x"`},
		{"redis://h/0/1", `"0/1"`},
		{"redis://h?db=1", "query"},
		{"redis://h#1", "fragment"},
		{"rediss://", "no host"},
		{"rediss://h/x", `"x"`},
		{"redis://[::1", "]"},
		{"unix://run/r.sock", "third slash"},
		{"unix:///", "no socket path"},
		{"unix:///r.sock?db=x", "?db=n"},
		{"unix:///r.sock?database=1", "?db=n"},
		{"unix:///r.sock?db=1&db=2", "?db=n"},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			got, err := Parse(tt.raw)
			if err == nil {
				t.Fatalf("accepted as %s", got)
			}
			if !strings.Contains(err.Error(), tt.names) || errors.Is(err, ErrNotYetSupported) {
				t.Errorf("error %q does not name %q", err, tt.names)
			}
		})
	}
}

func TestParseNotYet(t *testing.T) {
	for _, raw := range []string{"redis-sentinel://a,b/master", "redis-cluster://h:1", "redis://h:1,h:2", "rediss://u:p@a,b:2/1"} {
		_, err := Parse(raw)
		if !errors.Is(err, ErrNotYetSupported) || !strings.Contains(err.Error(), "not yet supported") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// A password with unescaped special characters lands in the host, the path or
// the port; no message may show it.
func TestParseErrorsKeepSecrets(t *testing.T) {
	for _, secret := range []string{"qq/xx", "qq#xx", "qq?xx", "1/qqxx", "1?qqxx", "1#qqxx", "%zzqqxx", "qq@xx/qq", "qq xx", "[qqxx"} {
		for _, raw := range []string{"redis://u:" + secret + "@h:1", "redis://:" + secret + "@h:99999", "redis://:" + secret + "@h:x", "redis://:" + secret + "@h/x", "rediss://u:" + secret + "@h:x", "unix://:" + secret + "@/run/sock?db=x"} {
			_, err := Parse(raw)
			if err == nil {
				continue
			}
			for _, piece := range []string{"qq", "xx", "zz"} {
				if strings.Contains(err.Error(), piece) {
					t.Errorf("%s: error quotes the password: %v", raw, err)
				}
			}
		}
	}
	if _, err := Parse("redis://u:qq"); err == nil || strings.Contains(err.Error(), "qq") {
		t.Errorf("a password without its host: %v", err)
	}
	if _, err := Parse("redis://u:p@h:99999"); err == nil || !strings.Contains(err.Error(), "99999") {
		t.Errorf("a bad port beside a password is not named: %v", err)
	}
}
