package heap

import (
	"io/fs"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Gauge measures what the process needs of the memory that it may have.
type Gauge struct {
	// Root is the file system's, Usage and Stat the files in which a cgroup that is the process's
	// alone tells what it uses. Without Usage the runtime's own memory is all there is.
	Root        fs.FS
	Usage, Stat string
	// Limit, unless it is 0, is what the process may use: the collector is told to keep the
	// runtime's part below what is left of it by what the runtime does not know of, such as
	// the kernel's part of connections.
	Limit int64

	told int64 // the collector
}

// Need is what was in use after the last collection, in bytes, with what has been taken since but
// for objects of the heap: those may be garbage. collections counts.
func (g *Gauge) Need() (bytes int64, collections uint64) {
	r := readRuntime()
	used, beside := r.total-r.released, int64(0)
	if g.Usage != "" {
		beside = max(g.inGroup()-used, 0)
	}
	g.steer(beside)
	return used - r.free - max(r.objects-r.live, 0) + beside, r.collections
}

// steer tells the collector what is left for the runtime.
func (g *Gauge) steer(beside int64) {
	if g.Limit == 0 {
		return
	}
	// The collector starts in time, but may end a little late.
	left := max(g.Limit-g.Limit/16-beside, g.Limit/2)
	if diff := left - g.told; diff < -g.Limit/64 || diff > g.Limit/64 {
		g.told = left
		debug.SetMemoryLimit(left)
	}
}

// inGroup is what the cgroup uses, less what the kernel takes back by itself: pages of files.
func (g *Gauge) inGroup() int64 {
	text, err := fs.ReadFile(g.Root, g.Usage)
	n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		return 0
	}
	text, _ = fs.ReadFile(g.Root, g.Stat)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "inactive_file" || name == "active_file" {
			pages, _ := strconv.ParseInt(value, 10, 64)
			n -= pages
		}
	}
	return n
}

// counters are the runtime's, in bytes.
type counters struct {
	total, released, free, objects, live int64
	collections                          uint64
}

func readRuntime() counters {
	values := [...]metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(values[:])
	of := func(i int) int64 { return int64(values[i].Value.Uint64()) }
	return counters{of(0), of(1), of(2), of(3), of(4), values[5].Value.Uint64()}
}
