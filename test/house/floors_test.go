package house

import "strings"

// module is this module's path, and the first word of every import of its own.
const module = "streamproxy"

// Floor says what one room (a folder and everything below it that has no floor of its own) may
// import of this module. Imports point down only; whatever is not listed is refused.
type Floor struct {
	Room string   // folder below the module's root
	May  []string // folders; "x/..." means x and everything below
	Why  string   // printed with a violation
}

// Floors is the house from the roof down. The longest matching Room wins.
var Floors = []Floor{
	{"cmd/streamproxy", []string{"internal/...", "proxy/...", "batcher", "reclaim"}, "the roof: it wires the rooms together"},
	{"internal/demo", []string{"internal/...", "proxy/...", "batcher", "reclaim"}, "a subcommand: it starts the shipped proxy"},
	{"internal/top", nil, "a subcommand that reads what a running proxy publishes"},
	{"internal/config", []string{"batcher", "proxy", "reclaim", "internal/upstream", "internal/certs", "internal/resp"}, "turns flags into the rooms' own configurations"},
	{"proxy", []string{"reclaim", "batcher", "internal/rawio", "internal/upstream", "internal/resp"}, "proxy decides; it must not know who watches or configures it"},
	{"reclaim", []string{"internal/resp"}, "reclaim thinks and knows no sockets: it is given an interface that runs commands"},
	{"batcher", []string{"internal/rawio", "internal/upstream", "internal/resp"}, "batcher moves bytes and knows no command names"},
	{"internal/heap", nil, "watches the process's own memory; it knows nobody"},
	{"internal/rawio", nil, "two system calls; it knows nobody"},
	{"internal/upstream", []string{"internal/resp", "internal/certs"}, "dialing stands on framing and certificates alone"},
	{"internal/certs", nil, "reads files and knows no sockets"},
	{"internal/resp", nil, "the ground floor: framing knows no sockets and nobody"},
	{"internal/telemetry", nil, "fed by structs of funcs; the roof connects it with the rooms"},
	{"internal/netlab", nil, "links for tests, bench and demo, no part of the proxy"},
	{"internal/redistest", []string{"internal/resp", "internal/netlab"}, "servers for tests, no part of the proxy"},
	{"internal/proxytest", []string{"internal/redistest"}, "the shipped binary for tests, no part of the proxy"},
	{"internal/docgen", []string{"internal/...", "cmd/..."}, "writes pages from what the rooms declare"},
	{"bench", []string{"bench/...", "internal/resp", "internal/netlab"}, "measures the shipped binary from outside"},
	{"test", []string{"test/...", "internal/...", "proxy/...", "batcher", "reclaim"}, "tests may enter every room"},
}

// Ceiling keeps a library of others in the rooms that have a reason for it. Tests may use any.
type Ceiling struct {
	Library string // import path or prefix of one
	Rooms   []string
	Why     string
}

// Ceilings lists the libraries that are not for everybody.
var Ceilings = []Ceiling{
	{"github.com/alicebob/miniredis", []string{"internal/demo"}, "an embedded Redis proves nothing about Redis"},
	{"github.com/redis/rueidis", []string{"internal/upstream", "reclaim", "internal/demo"}, "it decodes every reply: the control plane only"},
	{"github.com/redis/go-redis", []string{"internal/demo"}, "a client to test with, not to serve with"},
	{"github.com/tidwall/redcon", []string{"proxy", "batcher", "reclaim", "internal/resp", "internal/upstream", "internal/redistest"}, "for its Append functions; its reader must not face clients"},
	{"github.com/prometheus", []string{"internal/telemetry", "internal/docgen", "cmd/streamproxy"}, "the rooms emit events, collectors live at the edge"},
	{"github.com/HdrHistogram", []string{"bench", "internal/demo"}, "histograms for measuring, not for serving"},
	{"net/http", []string{"internal/telemetry", "internal/demo", "internal/top", "internal/proxytest", "cmd/streamproxy", "bench", "test"}, "the rooms speak RESP only"},
	{"net", []string{"proxy", "batcher", "internal/upstream", "internal/telemetry", "internal/netlab", "internal/redistest", "internal/config", "internal/certs", "internal/demo", "internal/top", "cmd/streamproxy", "bench", "test"}, "reclaim and resp know no sockets"},
}

// floorOf returns the floor of a package, or nil if nobody has given it a place.
func floorOf(folder string) *Floor {
	var best *Floor
	for i := range Floors {
		f := &Floors[i]
		if inRoom(folder, f.Room) && (best == nil || len(f.Room) > len(best.Room)) {
			best = f
		}
	}
	return best
}

// may reports whether the floor lets its room import another folder of this module.
func (f *Floor) may(folder string) bool {
	if inRoom(folder, f.Room) {
		return true // within one room
	}
	for _, allowed := range f.May {
		if below, ok := strings.CutSuffix(allowed, "/..."); ok && inRoom(folder, below) || folder == allowed {
			return true
		}
	}
	return false
}

// allows reports whether the ceiling's library may be imported by a folder.
func (c *Ceiling) allows(folder string) bool {
	for _, room := range c.Rooms {
		if inRoom(folder, room) {
			return true
		}
	}
	return false
}

// covers reports whether an import is the ceiling's library or a package below it. The standard
// library's net is itself only: net/netip and net/url carry no sockets.
func (c *Ceiling) covers(path string) bool {
	if c.Library == "net" {
		return path == "net"
	}
	return path == c.Library || strings.HasPrefix(path, c.Library+"/")
}

func inRoom(folder, room string) bool {
	return folder == room || strings.HasPrefix(folder, room+"/")
}
