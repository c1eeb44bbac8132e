package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestGaugeSeesWhatIsKeptAndNotWhatIsGarbage(t *testing.T) {
	var g Gauge
	runtime.GC()
	before, _ := g.Need()
	kept := make([]byte, 32*mib)
	runtime.GC()
	with, collections := g.Need()
	if grown := with - before; grown < 30*mib || grown > 40*mib {
		t.Errorf("32 MiB that are kept are %d bytes", grown)
	}
	runtime.KeepAlive(kept)
	for range 64 {
		kept = make([]byte, mib)
		kept[0] = 1
	}
	runtime.GC()
	after, then := g.Need()
	if grown := after - before; grown > 8*mib || then <= collections {
		t.Errorf("when they are gone it is %d bytes, after %d and %d collections", grown, collections, then)
	}
}

// What the kernel takes for the process is needed too, but for pages of files, which it takes
// back; and the collector is told what is left.
func TestGaugeInAGroup(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	own := Gauge{}
	alone, _ := own.Need()
	files := fstest.MapFS{
		"use":  {Data: []byte("1073741824\n")},
		"stat": {Data: []byte("anon 5\ninactive_file 104857600\nactive_file 209715200\ntotal_active_file 7\n")},
	}
	g := Gauge{Root: files, Usage: "use", Stat: "stat", Limit: 2048 * mib}
	need, _ := g.Need()
	const used = (1024 - 300) * mib
	if beside := need - alone; beside > used || beside < used-128*mib { // the runtime's own is in it
		t.Errorf("%d bytes beside the runtime's, of %d", beside, used)
	}
	if limit := debug.SetMemoryLimit(-1); limit > 1920*mib-(used-128*mib) || limit < 1920*mib-used {
		t.Errorf("the collector was told %d", limit)
	}
	files["use"].Data = []byte("2147483648\n")
	g.Need()
	if limit := debug.SetMemoryLimit(-1); limit != 1024*mib {
		t.Errorf("the collector was told %d, want half at least", limit)
	}
	files["use"].Data = []byte("unreadable\n")
	if need, _ := g.Need(); need > alone+64*mib {
		t.Errorf("%d bytes where nobody tells", need)
	}
	g.Limit = 0
	debug.SetMemoryLimit(math.MaxInt64)
	g.Need()
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("the collector was told %d by nobody", limit)
	}
}
