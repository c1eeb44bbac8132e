package proxy

import "testing"

func TestFragile(t *testing.T) {
	for _, tt := range []struct {
		server, version string
		want            bool
	}{
		{"redis", "7.0.15", true}, {"redis", "6.2.14", true}, {"redis", "7.2.0", false}, {"redis", "8.2.3", false},
		{"redis", "", true}, {"redis", "unstable", true}, {"valkey", "7.2.5", false}, {"", "", true},
	} {
		if got := fragile(tt.server, tt.version); got != tt.want {
			t.Errorf("%s %s: %v", tt.server, tt.version, got)
		}
	}
}

// What the client of a command that was called back with care gets.
func TestNullOf(t *testing.T) {
	for _, tt := range []struct {
		name  string
		proto int
		want  string
	}{
		{"BLPOP", 2, "*-1\r\n"}, {"blmove", 2, "$-1\r\n"}, {"BRPOPLPUSH", 2, "$-1\r\n"},
		{"BLMOVE", 3, "_\r\n"}, {"XREADGROUP", 3, "_\r\n"},
	} {
		if got := string(nullOf(tt.name, tt.proto)); got != tt.want {
			t.Errorf("%s in version %d: %q, want %q", tt.name, tt.proto, got, tt.want)
		}
	}
}
