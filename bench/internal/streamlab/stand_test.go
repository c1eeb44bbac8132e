package streamlab

import (
	"testing"
	"time"
)

// A stand's publisher is as far away as its workers, and the reader of its counters is not.
func TestStandDelaysPublishers(t *testing.T) {
	const delay = 20 * time.Millisecond
	s, err := openStand("", delay, 0)
	defer s.close()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPublisher(s.link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	before, err := readCalls(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.publish("s", "one"); err != nil {
		t.Fatal(err)
	}
	if took := now() - p.sent["one"]; took < 2*delay {
		t.Errorf("published in %v over a round trip of %v", took, 2*delay)
	}
	if err := p.flood("s", 10); err != nil {
		t.Fatal(err)
	}
	if p.sent["burst-0"] != p.sent["burst-9"] || p.sent["burst-0"] <= p.sent["one"] {
		t.Errorf("times %v", p.sent)
	}
	after, err := readCalls(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	if grown := after.since(before); grown["xadd"] != 11 || grown.Total() != 11 {
		t.Errorf("the server counted %v", grown)
	}
	if _, err := p.do("XADD", "s"); err == nil {
		t.Error("an error was taken for a reply")
	}
}
