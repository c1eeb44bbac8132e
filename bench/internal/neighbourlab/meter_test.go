package neighbourlab

import (
	"context"
	"os"
	"testing"
)

func TestMeterKeepsTheMost(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	m := meter{pid: os.Getpid()}
	m.watch(ctx)
	if m.err != nil || m.rss < 1<<20 || m.descriptors == 0 {
		t.Fatalf("of ourselves: %+v", m)
	}
	m.rss, m.descriptors = 1<<50, 1<<30
	if m.look(); m.rss != 1<<50 || m.descriptors != 1<<30 {
		t.Errorf("less was taken for the most: %+v", m)
	}
	gone := meter{pid: 1 << 30}
	if gone.watch(t.Context()); gone.err == nil {
		t.Error("a process that there is not was measured")
	}
}
