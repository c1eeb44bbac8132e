package main

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"streamproxy/batcher"
	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
	"streamproxy/reclaim"
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
	got.Events, got.BatchEvents, got.Effective = proxy.Events{}, batcher.Events{}, nil
	got.Reclaim.Events = reclaim.Events{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Every setting must reach the proxy: none may keep its zero value when its flag is
// given.
func TestEverySettingIsWired(t *testing.T) {
	c := config.Default(config.Machine{Memory: 1 << 30})
	c.ClientIdleTimeout, c.DrainMin = 1, 1
	c.SharedCommands, c.Deny = []string{"X"}, []string{"Y"}
	c.RequirePassFile = "/file"
	c.Reclaim, c.ReclaimGroups = "observe", []string{"g=1m"}
	pc, err := proxyConfig(c, newTestMetrics(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The instance is made up at the start, the ceiling found out there.
	allSet(t, pc, "Logger", "Ceiling", "Need")
	allSet(t, pc.Reclaim, "Logger", "Instance")
	allSet(t, pc.Reclaim.Events)
}

// allSet expects every field of a struct to be set, except for some.
func allSet(t *testing.T, of any, except ...string) {
	t.Helper()
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(except, name) {
			t.Errorf("%s.%s is not set", v.Type(), name)
		}
	}
}

// What PROXY CONFIG shows over the wire must be free of secrets.
func TestEffectiveHidesSecrets(t *testing.T) {
	c := config.Default(config.Machine{})
	c.Upstream = "redis://u:geheim@h"
	pc, err := proxyConfig(c, newTestMetrics(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := pc.Effective(); strings.Contains(text, "geheim") || !strings.Contains(text, "--upstream=redis://u:xxxxx@h\n") {
		t.Errorf("got %s", text)
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

// What a flag is documented to accept, and check accepts, the proxy accepts: at both bounds.
func TestTheProxyAcceptsWhatFlagsDo(t *testing.T) {
	m := newTestMetrics()
	defaults := config.Default(config.Machine{})
	for _, g := range config.Groups(&defaults) {
		for _, f := range g.Flags {
			low, high, bounded := strings.Cut(f.Bound(), " to ")
			if !bounded {
				continue
			}
			for _, value := range append(strings.FieldsFunc(low, func(r rune) bool { return r == ',' || r == ' ' }), high) {
				given := "--" + f.Name + "=" + value
				c, err := config.Load([]string{given, "--drain-timeout=10m"}, nil, config.Machine{}, nil)
				if err != nil {
					continue // it is a word between, or takes another flag too
				}
				pc, err := proxyConfig(c.Config, m, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Errorf("%s: %v", given, err)
					continue
				}
				p, err := proxy.New(pc)
				if err != nil {
					t.Errorf("%s: %v", given, err)
					continue
				}
				p.Close()
			}
		}
	}
}
