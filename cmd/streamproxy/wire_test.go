package main

import (
	"reflect"
	"testing"

	"streamproxy/batcher"
	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
)

// A proxy started without a flag must be the one that proxy.DefaultConfig describes:
// programs that embed the proxy and the command must not differ.
func TestDefaultsAgree(t *testing.T) {
	got, err := proxyConfig(config.Default(config.Machine{}), newTestMetrics(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.DefaultConfig()
	// What every start decides anew.
	want.Upstream, want.Version, want.Logger, want.Reclaim.Logger = got.Upstream, got.Version, nil, nil
	got.Events, got.BatchEvents = proxy.Events{}, batcher.Events{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every setting must reach the proxy: none may keep its zero value when its flag is
// given.
func TestEverySettingIsWired(t *testing.T) {
	c := config.Default(config.Machine{Memory: 1 << 30})
	c.ClientIdleTimeout, c.DrainMin = 1, 1
	c.SharedCommands = []string{"X"}
	c.RequirePassFile = "/file"
	pc, err := proxyConfig(c, newTestMetrics(), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(pc)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Logger" {
			t.Errorf("proxy.Config.%s is not set", name)
		}
	}
}

func newTestMetrics() *telemetry.Metrics { return telemetry.New(build(), labels()) }

// Each class and reason must find its counter.
func TestEveryIndexHasACounter(t *testing.T) {
	m := newTestMetrics()
	for _, c := range proxy.Classes() {
		clientEvents(m).Commands(c, 1)
	}
	for _, r := range batcher.FlushReasons() {
		batchEvents(m).Flushed(r, 1, 1, 0)
	}
}
