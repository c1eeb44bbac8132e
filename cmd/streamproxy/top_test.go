package main

import (
	"testing"

	"streamproxy/internal/config"
)

// Two proxies on one machine are not shown as one.
func TestTopAsksOneProxy(t *testing.T) {
	telemetry := config.Default(config.Machine{}).TelemetryListen
	for _, tt := range []struct{ listen, admin, wantListen, wantAdmin string }{
		{telemetry, config.DefaultAdmin, telemetry, config.DefaultAdmin},
		{":1", config.DefaultAdmin, ":1", "off"},
		{telemetry, "unix:///x", "off", "unix:///x"},
		{":1", ":2", ":1", ":2"},
		{"off", config.DefaultAdmin, "off", config.DefaultAdmin},
		{telemetry, "off", telemetry, "off"},
	} {
		o := topOptions{listen: tt.listen, admin: tt.admin}
		o.notOthers()
		if o.listen != tt.wantListen || o.admin != tt.wantAdmin {
			t.Errorf("%+v: asks %s and %s", tt, o.listen, o.admin)
		}
	}
}

func TestPagesOfTop(t *testing.T) {
	for listen, want := range map[string]string{
		"off": "", ":1": "http://127.0.0.1:1/p", "[::1]:2": "http://[::1]:2/p", "unix:///run/x?mode=0600": "http://socket/p", "nowhere": "",
	} {
		s, err := pageOf(listen, "/p")
		if s.URL != want || (err != nil) != (listen == "nowhere") {
			t.Errorf("%s: %q, %v", listen, s.URL, err)
		}
	}
}
