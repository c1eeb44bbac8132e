package upstream

import "testing"

func TestIdentify(t *testing.T) {
	tests := []struct{ info, server, version, run string }{
		{"# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n", "redis", "7.0.15", "abc"},
		{"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\nrun_id:x\r\n", "valkey", "8.1.0", "x"},
		{"redis_version:7.4.0\r\ndragonfly_version:df-v1.23.0\r\n", "dragonfly", "1.23.0", ""},
		{"redis_version:4.0.0\r\nserver_name:Kvrocks\r\n", "kvrocks", "4.0.0", ""},
		{"", "", "", ""},
	}
	for _, tt := range tests {
		var f Facts
		f.identify(parseInfo(tt.info))
		if f.Server != tt.server || f.Version != tt.version || f.RunID != tt.run {
			t.Errorf("%q: %s %s run %s", tt.info, f.Server, f.Version, f.RunID)
		}
	}
}
