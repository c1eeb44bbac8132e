package house

import (
	"strings"
	"testing"
)

// TestImportsPointDown holds the floors. Test files may look into every room, but their packages
// must have a floor as well.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		floor := floorOf(s.folder)
		if floor == nil {
			t.Errorf("%s: the folder %s has no floor yet: give it one in test/house/floors_test.go", s.path, s.folder)
			continue
		}
		if s.test {
			continue
		}
		for _, path := range s.imports() {
			folder, own := strings.CutPrefix(path, module+"/")
			if own && !floor.may(folder) {
				t.Errorf("%s imports %s: the room %s may import only %v (%s)",
					s.path, folder, floor.Room, floor.May, floor.Why)
			}
		}
	}
}

// TestLibrariesStayInTheirRooms holds the ceilings.
func TestLibrariesStayInTheirRooms(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, path := range s.imports() {
			for _, c := range Ceilings {
				if c.covers(path) && !c.allows(s.folder) {
					t.Errorf("%s imports %s: only %v may (%s)", s.path, path, c.Rooms, c.Why)
				}
			}
		}
	}
}

func TestFloorRules(t *testing.T) {
	tests := []struct {
		from, to string
		want     bool
	}{
		{"batcher", "internal/resp", true},
		{"batcher", "proxy", false},
		{"proxy", "batcher", true},
		{"proxy/sub", "proxy", true},
		{"proxy", "internal/telemetry", false},
		{"internal/resp", "internal/upstream", false},
		{"bench", "proxy", false},
		{"bench/internal/load", "bench/internal/result", true},
		{"cmd/streamproxy", "internal/config", true},
	}
	for _, tt := range tests {
		if got := floorOf(tt.from).may(tt.to); got != tt.want {
			t.Errorf("%s importing %s: allowed %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
	if floorOf("attic") != nil {
		t.Error("a folder nobody placed has a floor")
	}
}

func TestCeilingRules(t *testing.T) {
	network := Ceiling{Library: "net", Rooms: []string{"proxy"}}
	for path, want := range map[string]bool{"net": true, "net/netip": false, "net/http": false, "netx": false} {
		if network.covers(path) != want {
			t.Errorf("net covers %s: %v, want %v", path, !want, want)
		}
	}
	library := Ceiling{Library: "github.com/redis/rueidis", Rooms: []string{"internal/upstream"}}
	if !library.covers("github.com/redis/rueidis/internal/cmds") || library.covers("github.com/redis/rueidisx") {
		t.Error("a library's own packages, and no others, are to be covered")
	}
	if !library.allows("internal/upstream") || library.allows("proxy") {
		t.Error("only the rooms listed may use a library")
	}
}
