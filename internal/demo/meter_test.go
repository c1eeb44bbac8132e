package demo

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	m := new(meter)
	m.wrote()
	m.asked.Add(1)
	m.reset()
	count := func(writes, commands int, latency time.Duration) {
		for range writes {
			m.wrote()
		}
		for range commands {
			m.asked.Add(1)
			m.answered(latency)
		}
	}
	count(1, 3, 10*time.Millisecond)
	if c := m.recent(); c.writes != 1 || c.asked != 3 || c.latency.TotalCount() != 3 {
		t.Errorf("first span: %d writes, %d asked, %d answered", c.writes, c.asked, c.latency.TotalCount())
	}
	count(2, 1, 2*time.Minute)
	if c := m.recent(); c.writes != 2 || c.asked != 1 || c.latency.TotalCount() != 1 {
		t.Errorf("second span: %d writes, %d asked, %d answered", c.writes, c.asked, c.latency.TotalCount())
	}
	c := m.total()
	if c.writes != 3 || c.asked != 4 || c.latency.TotalCount() != 4 {
		t.Errorf("in all: %d writes, %d asked, %d answered", c.writes, c.asked, c.latency.TotalCount())
	}
	if p := quantile(c, 50); p < 10*time.Millisecond || p > 11*time.Millisecond {
		t.Errorf("median %v", p)
	}
	// What is longer than the scale counts as its end.
	if p := quantile(c, 100); p < time.Minute || p > 61*time.Second {
		t.Errorf("longest %v", p)
	}
	if c := m.recent(); c.writes != 0 || quantile(c, 50) != 0 {
		t.Errorf("an empty span has %d writes, median %v", c.writes, quantile(c, 50))
	}
}
