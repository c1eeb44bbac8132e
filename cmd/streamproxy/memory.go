package main

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"streamproxy/internal/config"
	"streamproxy/internal/heap"
	"streamproxy/proxy"
)

// blockedClient is about what a client costs whose command blocks, in bytes, beside its buffers.
const blockedClient = 24 << 10

// room is the memory that the process may have.
type room struct {
	ceiling int64 // of what is needed; 0: none
	soft    int64 // for the collector alone, where there is no ceiling; 0: none
	gauge   *heap.Gauge
}

// findRoom finds out what the process may have: nine tenths of the cgroup's limit, because what the
// kernel takes for a moment counts there too, or GOMEMLIMIT, which then is the operator's word to the
// collector as well. A --memory-limit of 0 is the operator's wish for none.
func findRoom(c config.Config, m config.Machine) room {
	limit := c.MemoryLimit.Value
	asked := debug.SetMemoryLimit(-1)
	if limit == 0 {
		return room{}
	}
	return roomOf(os.DirFS("/"), c, m, asked)
}

func roomOf(root fs.FS, c config.Config, m config.Machine, asked int64) room {
	r := room{gauge: &heap.Gauge{Root: root}}
	if m.Memory > 0 {
		r.ceiling = m.Memory / 10 * 9
		r.gauge.Limit = r.ceiling
		if files, ok := config.ReadMemoryFiles(root); ok && alone(root, files.Members) {
			r.gauge.Usage, r.gauge.Stat = files.Usage, files.Stat
		}
	}
	switch {
	case asked < math.MaxInt64:
		r.gauge.Limit = 0
		if r.ceiling == 0 || asked < r.ceiling {
			r.ceiling = asked
		}
	case r.ceiling == 0: // nobody kills the process, but garbage should not double it
		r.soft = 2*c.MemoryLimit.Value + int64(c.MaxClients)*blockedClient
	}
	return r
}

// alone reports whether this process is the only one in its cgroup: of others nothing is known.
func alone(root fs.FS, members string) bool {
	text, err := fs.ReadFile(root, members)
	return err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(os.Getpid())
}

// keep tells the collector, who hears the rest from the gauge.
func (r room) keep() {
	if r.soft > 0 {
		debug.SetMemoryLimit(r.soft)
	}
	if r.ceiling > 0 {
		r.gauge.Need()
	}
}

func (r room) need() proxy.Need {
	bytes, collections := r.gauge.Need()
	return proxy.Need{Bytes: bytes, Collections: collections}
}
