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
	// Results say for each server, client and feature whether all of its checks passed.
	Results map[string]map[string]map[string]bool `json:"results"`
}

// Servers are the servers of the matrix, in the order of the table.
var Servers = []string{"redis-debian", "redis-current", "valkey"}

// Clients are the clients of the matrix, in the order of the table.
var Clients = []string{
	"redis-py-7", "redis-py-8", "node-redis", "ioredis", "jedis", "lettuce", "go-redis", "redis-cli", "redis-benchmark",
}

// Features are what is checked, in the order of the table. No client has a check for each.
var Features = []string{
	"default connect", "strings", "hashes", "pipeline", "transaction", "optimistic lock", "script", "blocking pop",
	"publish", "streams", "databases", "names", "errors", "ownership", "restart", "tools",
}

// checks maps names of checks to features where they are not the feature's own.
var checks = map[string]string{
	"large value":        "strings",
	"automatic pipeline": "pipeline",
	"lone transaction":   "transaction",
	"cached script":      "script",
}

// FeatureOf returns the feature that a check belongs to: its name without the protocol that it was
// run with, or "tools" for what only the command line tools have.
func FeatureOf(client, check string) string {
	if client == "redis-cli" || client == "redis-benchmark" {
		return "tools"
	}
	name := strings.ReplaceAll(strings.ToLower(check), "_", " ")
	for _, protocol := range []string{" resp2", " resp3"} {
		name = strings.TrimSuffix(name, protocol)
	}
	if feature, found := checks[name]; found {
		return feature
	}
	return name
}

// Add books one check.
func (m *Matrix) Add(server, client, check string, passed bool) {
	feature := FeatureOf(client, check)
	if m.Results[server] == nil {
		m.Results[server] = map[string]map[string]bool{}
	}
	if m.Results[server][client] == nil {
		m.Results[server][client] = map[string]bool{}
	}
	before, seen := m.Results[server][client][feature]
	m.Results[server][client][feature] = passed && (before || !seen)
}

// Faults lists where the matrix and what is declared differ.
func (m *Matrix) Faults() (faults []string) {
	differ := func(what string, got, want []string) {
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			faults = append(faults, fmt.Sprintf("%s: the matrix has %q, declared are %q", what, got, want))
		}
	}
	differ("servers", slices.Collect(maps.Keys(m.Results)), Servers)
	differ("versions", slices.Collect(maps.Keys(m.Servers)), Servers)
	features := map[string]bool{}
	for server, clients := range m.Results {
		differ("clients of "+server, slices.Collect(maps.Keys(clients)), Clients)
		for _, results := range clients {
			for feature := range results {
				features[feature] = true
			}
		}
	}
	differ("features", slices.Collect(maps.Keys(features)), Features)
	return faults
}

// Table renders the matrix in Markdown: a row for each client and feature, a column for each server.
func (m *Matrix) Table() string {
	var b strings.Builder
	b.WriteString("| client | feature |")
	for _, s := range Servers {
		fmt.Fprintf(&b, " %s |", m.Servers[s])
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Servers)) + "\n")
	for _, client := range Clients {
		for _, feature := range Features {
			if row, checked := m.row(client, feature); checked {
				fmt.Fprintf(&b, "| %s | %s |%s\n", client, feature, row)
			}
		}
	}
	return b.String()
}

func (m *Matrix) row(client, feature string) (row string, checked bool) {
	for _, server := range Servers {
		passed, found := m.Results[server][client][feature]
		checked = checked || found
		switch {
		case !found:
			row += " |"
		case passed:
			row += " yes |"
		default:
			row += " **no** |"
		}
	}
	return row, checked
}
