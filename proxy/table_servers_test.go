package proxy

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/upstream"
)

// keptApart are commands of the recorded servers that the table leaves
// unknown on purpose: they take a private connection each.
var keptApart = []string{
	"client|unpause", "failover", "function|list", "module|load", "module|loadex", "module|unload",
	"cluster|addslots", "cluster|addslotsrange", "cluster|bumpepoch", "cluster|cancelslotmigrations", "cluster|delslots",
	"cluster|delslotsrange", "cluster|failover", "cluster|flushslot", "cluster|flushslots", "cluster|forget", "cluster|meet",
	"cluster|migrateslots", "cluster|replicate", "cluster|reset", "cluster|saveconfig", "cluster|set-config-epoch", "cluster|setslot",
}

// Every command of the servers recorded in testdata is known, nothing that
// blocks is shared, and everything that writes says so.
func TestTableKnowsRecordedServers(t *testing.T) {
	files, err := filepath.Glob("testdata/commands-*.txt")
	if err != nil || len(files) != 3 {
		t.Fatalf("recorded servers: %v, error %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkAgainst(t, recorded(t, file)) })
	}
}

// The same for the server that is installed here, through the proxy's own way
// of asking it.
func TestTableKnowsInstalledServer(t *testing.T) {
	cmds := installedCommands(t)
	checkAgainst(t, flatten(cmds))

	table := DefaultTable().WithServer(cmds)
	for _, c := range flatten(cmds) {
		before, after := classifyInfo(DefaultTable(), c), classifyInfo(table, c)
		if before.Class == ClassShared && after.Class != ClassShared {
			t.Errorf("%s: %s by the server's flags %v", c.Name, after.Class, c.Flags)
		}
	}
}

// checkAgainst compares the compiled-in table with a server's list, containers
// with subcommands left out.
func checkAgainst(t *testing.T, cmds []upstream.CommandInfo) {
	t.Helper()
	containers := map[string]bool{}
	for _, c := range cmds {
		if name, _, sub := strings.Cut(c.Name, "|"); sub {
			containers[name] = true
		}
	}
	for _, c := range cmds {
		r := classifyInfo(DefaultTable(), c)
		if containers[c.Name] {
			continue
		}
		if r.Class == ClassUnknown && !slices.Contains(keptApart, c.Name) {
			t.Errorf("%s %v is not in the table", c.Name, c.Flags)
		}
		if c.Flag("write") && !r.Write && r.Class != ClassTransaction {
			t.Errorf("%s writes, the table says it does not", c.Name)
		}
		refined := c.Name == "xread" || c.Name == "xreadgroup"
		if c.Flag("blocking") && !refined && r.Class != ClassBlocking && r.Class != ClassWait {
			t.Errorf("%s blocks, the table says %s", c.Name, r.Class)
		}
	}
}

// classifyInfo classifies a command of the list by its bare name.
func classifyInfo(table *Table, c upstream.CommandInfo) Route {
	return table.Classify(commandOf(strings.Split(c.Name, "|")...))
}

// recorded reads one file of testdata.
func recorded(t *testing.T, file string) []upstream.CommandInfo {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var cmds []upstream.CommandInfo
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 0 && fields[0] != "#" {
			cmds = append(cmds, upstream.CommandInfo{Name: fields[0], Flags: fields[1:]})
		}
	}
	return cmds
}

// flatten puts subcommands beside their containers.
func flatten(cmds []upstream.CommandInfo) []upstream.CommandInfo {
	var flat []upstream.CommandInfo
	for _, c := range cmds {
		flat = append(append(flat, c), c.Subcommands...)
	}
	return flat
}

// installedCommands starts the installed server and asks it for its list.
func installedCommands(t *testing.T) []upstream.CommandInfo {
	t.Helper()
	target, err := upstream.Parse(redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	control, err := upstream.NewControl(&upstream.Dialer{Target: target, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	facts, err := control.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return facts.Commands
}
