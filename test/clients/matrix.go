package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Matrix is what a run of the client libraries has found, as it is committed in testdata/matrix.json
// and shown in docs/compatibility.md.
type Matrix struct {
	// Servers are the versions, by the names of Servers.
	Servers map[string]string `json:"servers"`
	// Clients are the versions of what was run, by the names of Libraries and Tools.
	Clients map[string]string `json:"clients"`
	// Results say for each server, client and feature whether all of its checks passed.
	Results map[string]map[string]map[string]bool `json:"results"`
}

// Servers are the servers of the matrix, in the order of the table.
var Servers = []string{"redis-debian", "redis-current", "valkey"}

// Libraries are the clients that programs use, in the order of the table.
var Libraries = []string{
	"redis-py 7", "redis-py 7 asyncio", "redis-py 8", "redis-py 8 asyncio", "node-redis", "ioredis",
	"jedis", "lettuce", "go-redis", "rueidis", "phpredis", "redis-rb",
}

// Tools are the clients that people use. Their checks are features of their own.
var Tools = []string{"redis-cli", "redis-benchmark"}

// Required is what every library is checked for, on every server.
var Required = []string{
	"default connect", "strings", "pipeline", "transaction", "optimistic lock", "script", "functions",
	"blocking pop", "publish", "streams", "restart",
}

// Features are what is checked, in the order of the table.
var Features = append(slices.Clone(Required), "caching", "databases", "names", "errors", "hashes", "ownership")

// uncached are the libraries that have no client-side caching. The others are checked for it on each
// server with which they offer it.
var uncached = []string{
	"redis-py 7 asyncio", "redis-py 8 asyncio", "ioredis", "go-redis", "phpredis", "redis-rb",
}

// checks maps names of checks to features where they are not the feature's own.
var checks = map[string]string{
	"large value":        "strings",
	"automatic pipeline": "pipeline",
	"lone transaction":   "transaction",
	"cached script":      "script",
	"cancelled":          "ownership",
}

// FeatureOf returns the feature that a check belongs to: its name without the protocol that it was
// run with.
func FeatureOf(check string) string {
	name := strings.ReplaceAll(strings.ToLower(check), "_", " ")
	for _, protocol := range []string{" resp2", " resp3"} {
		name = strings.TrimSuffix(name, protocol)
	}
	if feature, found := checks[name]; found {
		return feature
	}
	return name
}

// NewMatrix returns a matrix of nothing.
func NewMatrix() *Matrix {
	return &Matrix{Servers: map[string]string{}, Clients: map[string]string{}, Results: map[string]map[string]map[string]bool{}}
}

// Add books one check.
func (m *Matrix) Add(server, client, check string, passed bool) {
	feature := FeatureOf(check)
	if m.Results[server] == nil {
		m.Results[server] = map[string]map[string]bool{}
	}
	if m.Results[server][client] == nil {
		m.Results[server][client] = map[string]bool{}
	}
	before, seen := m.Results[server][client][feature]
	m.Results[server][client][feature] = passed && (before || !seen)
}

// Merge takes over what another run has found of each server and client, and drops what is not
// declared any more.
func (m *Matrix) Merge(run *Matrix) {
	maps.Copy(m.Servers, run.Servers)
	maps.Copy(m.Clients, run.Clients)
	for server, clients := range run.Results {
		if m.Results[server] == nil {
			m.Results[server] = map[string]map[string]bool{}
		}
		maps.Copy(m.Results[server], clients)
	}
	declared := slices.Concat(Libraries, Tools)
	for _, clients := range m.Results {
		maps.DeleteFunc(clients, func(client string, _ map[string]bool) bool { return !slices.Contains(declared, client) })
	}
	maps.DeleteFunc(m.Clients, func(client, _ string) bool { return !slices.Contains(declared, client) })
}

// Faults lists where the matrix and what is declared differ.
func (m *Matrix) Faults() (faults []string) {
	differ := func(what string, got, want []string) {
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("%s: the matrix has %q, declared are %q", what, got, want))
		}
	}
	everybody := slices.Concat(Libraries, Tools)
	differ("servers", slices.Collect(maps.Keys(m.Results)), Servers)
	differ("versions of servers", slices.Collect(maps.Keys(m.Servers)), Servers)
	differ("versions of clients", slices.Collect(maps.Keys(m.Clients)), everybody)
	for server, clients := range m.Results {
		differ("clients of "+server, slices.Collect(maps.Keys(clients)), everybody)
	}
	for _, library := range Libraries {
		faults = append(faults, m.gaps(library)...)
	}
	return faults
}

// gaps lists what a library should have been checked for and was not, and what nobody declared.
func (m *Matrix) gaps(library string) (faults []string) {
	cached := false
	for _, server := range Servers {
		results := m.Results[server][library]
		for _, feature := range Required {
			if _, checked := results[feature]; !checked {
				faults = append(faults, fmt.Sprintf("%s was not checked for %q on %s", library, feature, server))
			}
		}
		for feature := range results {
			if !slices.Contains(Features, feature) {
				faults = append(faults, fmt.Sprintf("%s was checked for %q, which is no feature", library, feature))
			}
		}
		if _, checked := results["caching"]; checked {
			cached = true
		}
	}
	if cached == slices.Contains(uncached, library) {
		faults = append(faults, fmt.Sprintf("%s was checked for caching: %v", library, cached))
	}
	return faults
}

// Tables render the matrix in Markdown: libraries by features, then the tools' checks by servers.
func (m *Matrix) Tables() string {
	var b strings.Builder
	head := func(first string, columns []string) {
		fmt.Fprintf(&b, "| %s | %s |\n|---|%s\n", first, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	}
	head("library", Features)
	for _, library := range Libraries {
		fmt.Fprintf(&b, "| %s (%s) |", library, m.Clients[library])
		for _, feature := range Features {
			b.WriteString(m.cell(library, feature))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	head("tool", m.versions(Servers))
	for _, tool := range Tools {
		for _, check := range m.checksOf(tool) {
			fmt.Fprintf(&b, "| %s (%s): %s |", tool, m.Clients[tool], check)
			for _, server := range Servers {
				b.WriteString(map[bool]string{true: " yes |", false: " **no** |"}[m.Results[server][tool][check]])
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// cell tells of one library and feature: yes where that holds for each server, else where it does.
func (m *Matrix) cell(library, feature string) string {
	var passed, failed []string
	for _, server := range Servers {
		ok, checked := m.Results[server][library][feature]
		switch {
		case ok:
			passed = append(passed, server)
		case checked:
			failed = append(failed, server)
		}
	}
	switch {
	case len(failed) > 0:
		return " **no**: " + strings.Join(m.versions(failed), ", ") + " |"
	case len(passed) == len(Servers):
		return " yes |"
	case len(passed) > 0:
		return " " + strings.Join(m.versions(passed), ", ") + " |"
	}
	return " |"
}

func (m *Matrix) versions(servers []string) (versions []string) {
	for _, server := range servers {
		versions = append(versions, m.Servers[server])
	}
	return versions
}

// checksOf lists what a tool was checked for on any server, in alphabetical order.
func (m *Matrix) checksOf(tool string) []string {
	all := map[string]bool{}
	for _, clients := range m.Results {
		for check := range clients[tool] {
			all[check] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
