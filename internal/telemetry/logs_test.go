package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestCountLogs(t *testing.T) {
	m := New(testBuild, testLabels)
	var out bytes.Buffer
	log := slog.New(m.CountLogs(slog.NewTextHandler(&out, nil)))
	log.Debug("not wanted, not counted")
	log.Info("one")
	log.With("k", "v").WithGroup("g").Warn("two", "x", 1)
	log.Error("three")
	log.Error("four")
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines written:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "k=v g.x=1") {
		t.Errorf("attributes or groups are lost:\n%s", out.String())
	}
	series := scrape(t, m)
	for level, want := range map[string]float64{"debug": 0, "info": 1, "warn": 1, "error": 2} {
		if got := series[`streamproxy_log_messages_total{level="`+level+`"}`]; got != want {
			t.Errorf("%s counted %v times, want %v", level, got, want)
		}
	}
}
