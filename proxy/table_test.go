package proxy

import (
	"strings"
	"testing"

	"streamproxy/internal/resp"
	"streamproxy/internal/upstream"
)

// words makes a command of the words of a line; "”" is an empty argument.
func words(line string) resp.Command {
	args := strings.Fields(line)
	for i, a := range args {
		if a == "''" {
			args[i] = ""
		}
	}
	return commandOf(args...)
}

// commandOf makes a command in canonical form.
func commandOf(args ...string) resp.Command {
	var c resp.Command
	for _, a := range args {
		c.Args = append(c.Args, resp.Span{Start: len(c.Raw), End: len(c.Raw) + len(a)})
		c.Raw = append(c.Raw, a...)
	}
	return c
}

func TestClassify(t *testing.T) {
	for class, lines := range map[Class][]string{
		ClassShared: {
			"GET k", "get k", "gEt k", "SET k v", "EVALSHA abc 0", "XADD s * f v", "XACK s g 1-1", "PING", "COMMAND", "command docs get",
			"XAUTOCLAIM s g c 60000 0-0 COUNT 10", "HEXPIRE h 10 FIELDS 1 f", "HGETEX h FIELDS 1 f", "XACKDEL s g IDS 1 1-1", "XDELEX s IDS 1 1-1",
			"DELEX k IFEQ v", "DIGEST k", "MSETEX 1 k v EX 1", "DELIFEQ k v", "XNACK s g SILENT IDS 1 1-1", "ARSET a 0 v", "VREM v e",
			"OBJECT ENCODING k", "object Freq k", "MEMORY USAGE k", "CONFIG GET *", "SCRIPT LOAD x", "script exists x", "FUNCTION DUMP",
			"XGROUP CREATE s g $ MKSTREAM", "XINFO STREAM s", "CLUSTER SLOTS", "PUBSUB CHANNELS", "ACL WHOAMI", "LATENCY LATEST",
			"CLIENT PAUSE 10", "CLIENT TRACKINGINFO", "CLIENT GETREDIR", "CLIENT HELP", "SWAPDB 0 1", "INFO", "INFO server", "INFO streamproxy server",
			"LMPOP 1 k LEFT", "ZMPOP 1 k MIN", "PUBLISH c m", "SPUBLISH c m", "FLUSHALL ASYNC", "flushdb async", "VADD v VALUES 1 1 e",
		},
		ClassState: {
			"SELECT 1", "HELLO 3", "auth p", "Reset", "QUIT", "CLIENT ID", "client getname", "CLIENT SETNAME x", "CLIENT SETINFO LIB-NAME x",
			"CLIENT INFO", "CLIENT LIST ID 1",
		},
		ClassBlocking: {
			"BLPOP k 0", "brpop k 0", "BRPOPLPUSH a b 0", "BLMOVE a b LEFT LEFT 0", "BLMPOP 0 1 k LEFT", "BZPOPMIN k 0", "BZPOPMAX k 0",
			"BZMPOP 0 1 k MIN", "XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP g c Block 0 STREAMS s >", "FLUSHALL", "FLUSHDB SYNC", "VSIM v ELE e",
			"VADD v VALUES 1 1 e CAS",
		},
		ClassWait:        {"WAIT 1 0", "waitaof 1 0 0"},
		ClassTransaction: {"MULTI", "exec", "DISCARD", "WATCH k", "UNWATCH"},
		ClassSubscriber:  {"SUBSCRIBE c", "psubscribe c", "SSUBSCRIBE c", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"},
		ClassForGood: {
			"MONITOR", "SYNC", "PSYNC ? -1", "REPLCONF listening-port 1", "READONLY", "READWRITE", "ASKING", "DEBUG SLEEP 0",
			"CLIENT TRACKING ON", "client reply off", "CLIENT CACHING YES", "CLIENT NO-EVICT ON", "CLIENT NO-TOUCH ON", "CLIENT CAPA redirect",
			"CLIENT IMPORT-SOURCE ON", "CLIENT WHATEVER", "CLIENT ''", "SCRIPT DEBUG YES", "CLUSTER SYNCSLOTS x",
		},
		ClassUrgent: {"SCRIPT KILL", "function kill", "FUNCTION STATS", "CLIENT KILL ID 1", "CLIENT UNBLOCK 1", "SHUTDOWN", "SHUTDOWN ABORT"},
		ClassLocal:  {"PROXY", "proxy stats", "CLIENT MAINT_NOTIFICATIONS ON", "INFO StreamProxy"},
		ClassUnknown: {
			"''", "NOSUCH", "JSON.GET k", "FT.SEARCH i q", "GETT k", "GE k", "CLIENT", "SCRIPT", "SCRIPT NOSUCH", "XGROUP NOSUCH", "CLUSTER SETSLOT 1",
			"MODULE LOAD x", "FUNCTION LIST", "CLIENT UNPAUSE", "FAILOVER", "POST / HTTP/1.1", "Host: x", strings.Repeat("g", 100) + " k",
			"OBJECT " + strings.Repeat("g", 100),
		},
	} {
		for _, line := range lines {
			if got := DefaultTable().Classify(words(line)); got.Class != class {
				t.Errorf("%s: class %s, want %s", line, got.Class, class)
			}
		}
	}
	if got := DefaultTable().Classify(resp.Command{}); got.Class != ClassUnknown {
		t.Errorf("a command without a name: class %s", got.Class)
	}
}

func TestClassifyVerbsAndWrites(t *testing.T) {
	for line, want := range map[string]Route{
		"SELECT 1":                         {Class: ClassState, Verb: VerbSelect},
		"client setname x":                 {Class: ClassState, Verb: VerbClientSetName},
		"CLIENT UNPAUSE":                   {Class: ClassUnknown},
		"CLIENT KILL a":                    {Class: ClassUrgent, Verb: VerbClientKill},
		"CLIENT TRACKING ON":               {Class: ClassForGood, Verb: VerbClientTracking},
		"EXEC":                             {Class: ClassTransaction, Verb: VerbExec, Write: true},
		"PSUBSCRIBE a":                     {Class: ClassSubscriber, Verb: VerbSubscribe},
		"SUNSUBSCRIBE":                     {Class: ClassSubscriber, Verb: VerbUnsubscribe},
		"INFO streamproxy":                 {Class: ClassLocal, Verb: VerbProxyInfo},
		"XREAD STREAMS s 0":                {Class: ClassShared},
		"XREAD BLOCK 1 STREAMS s 0":        {Class: ClassBlocking, Verb: VerbXRead},
		"XREADGROUP GROUP g c STREAMS s >": {Class: ClassShared, Write: true},
		"XREADGROUP BLOCK 0 GROUP g c STREAMS s >": {Class: ClassBlocking, Verb: VerbXReadGroup, Write: true},
		"GET k":       {Class: ClassShared},
		"PFCOUNT k":   {Class: ClassShared, Write: true},
		"EVAL x 0":    {Class: ClassShared, Write: true},
		"EVAL_RO x 0": {Class: ClassShared},
		"BLPOP k 0":   {Class: ClassBlocking, Write: true},
		"NOSUCH":      {Class: ClassUnknown, Write: true},
		"XINFO HELP":  {Class: ClassShared},
		"WAIT 1 0":    {Class: ClassWait},
	} {
		if got := DefaultTable().Classify(words(line)); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

// A shared command with a verb would be handled by its class and the verb
// forgotten.
func TestSharedHasNoVerb(t *testing.T) {
	for name, e := range DefaultTable().commands {
		if e.Class == ClassShared && e.Verb != VerbNone {
			t.Errorf("%s: shared with verb %d", name, e.Verb)
		}
		for sub, r := range e.subs {
			if r.Class == ClassShared && r.Verb != VerbNone {
				t.Errorf("%s %s: shared with verb %d", name, sub, r.Verb)
			}
		}
		if len(name) > maxNameLen || name != strings.ToLower(name) {
			t.Errorf("%s cannot be found", name)
		}
	}
}

func TestWithShared(t *testing.T) {
	table, err := DefaultTable().WithShared([]string{"JSON.GET", "bf.add", "GET"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"json.get", "BF.ADD", "get"} {
		if got := table.Classify(words(name + " k")); got.Class != ClassShared {
			t.Errorf("%s: class %s", name, got.Class)
		}
	}
	if got := DefaultTable().Classify(words("JSON.GET k")); got.Class != ClassUnknown {
		t.Errorf("the table it was made from has changed: class %s", got.Class)
	}
	refused := []string{
		"", "a b", "client|capa", strings.Repeat("x", maxNameLen+1), "BLPOP", "SELECT", "WAIT", "multi", "subscribe", "monitor", "debug",
		"shutdown", "proxy", "failover", "POST", "client", "script", "xread", "flushall", "vadd",
	}
	table, err = DefaultTable().WithShared(append([]string{"fine.one"}, refused...))
	if err == nil || table != nil {
		t.Fatalf("table %v, error %v", table, err)
	}
	if faults := strings.Split(err.Error(), "\n"); len(faults) != len(refused) {
		t.Errorf("%d faults for %d names:\n%v", len(faults), len(refused), err)
	}
}

func TestWithServer(t *testing.T) {
	info := func(name string, flags ...string) upstream.CommandInfo {
		return upstream.CommandInfo{Name: name, Flags: flags}
	}
	pod := info("pod")
	pod.Subcommands = []upstream.CommandInfo{info("pod|get", "readonly"), info("pod|await", "blocking")}
	xgroup := info("xgroup")
	xgroup.Subcommands = []upstream.CommandInfo{info("xgroup|create", "write", "blocking"), info("xgroup|new", "write")}
	server := []upstream.CommandInfo{
		info("get", "readonly"), info("lpop", "write", "blocking"), info("xread", "readonly", "blocking"), info("WAIT", "blocking"),
		info("multi", "blocking"), info("m.read", "readonly", "module"), info("m.write", "write", "module"), info("m.odd", "module"),
		info("m.block", "blocking"), info("ttl", "write"), info("flushall", "write", "blocking"), pod, xgroup,
	}
	shared, err := DefaultTable().WithShared([]string{"m.read", "m.odd", "m.block", "pod", "m.absent"})
	if err != nil {
		t.Fatal(err)
	}
	table := shared.WithServer(server)
	for line, want := range map[string]Route{
		"GET k":               {Class: ClassShared},
		"LPOP k":              {Class: ClassBlocking, Write: true},
		"XREAD STREAMS s 0":   {Class: ClassShared},
		"WAIT 1 0":            {Class: ClassWait},
		"MULTI":               {Class: ClassTransaction, Verb: VerbMulti},
		"m.read":              {Class: ClassShared},
		"m.write":             {Class: ClassUnknown, Write: true},
		"m.odd":               {Class: ClassShared, Write: true},
		"m.block":             {Class: ClassBlocking, Write: true},
		"m.absent":            {Class: ClassShared, Write: true},
		"TTL k":               {Class: ClassShared, Write: true},
		"FLUSHALL ASYNC":      {Class: ClassShared, Write: true},
		"pod get":             {Class: ClassBlocking, Write: true},
		"XGROUP CREATE s g 0": {Class: ClassBlocking, Write: true},
		"XGROUP NEW":          {Class: ClassUnknown, Write: true},
	} {
		if got := table.Classify(words(line)); got != want {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
	if got := shared.Classify(words("LPOP k")); got.Class != ClassShared {
		t.Errorf("the table it was made from has changed: LPOP is %s", got.Class)
	}
}

// What only the server knows can be declared afterwards, unless it blocks.
func TestWithSharedAfterServer(t *testing.T) {
	table := DefaultTable().WithServer([]upstream.CommandInfo{
		{Name: "m.read", Flags: []string{"readonly"}}, {Name: "m.block", Flags: []string{"blocking"}},
	})
	if got := table.Classify(words("M.READ")); got != (Route{Class: ClassUnknown}) {
		t.Errorf("before: %+v", got)
	}
	if _, err := table.WithShared([]string{"m.block"}); err == nil {
		t.Error("a command flagged as blocking was shared")
	}
	shared, err := table.WithShared([]string{"m.read"})
	if err != nil {
		t.Fatal(err)
	}
	if got := shared.Classify(words("M.READ")); got != (Route{Class: ClassShared}) {
		t.Errorf("after: %+v", got)
	}
}

func TestClassifyAllocatesNothing(t *testing.T) {
	for _, line := range []string{"GET k", "CLIENT SETNAME x", "XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "NOSUCH", "FLUSHALL", "VADD v e CAS"} {
		c, table := words(line), DefaultTable()
		if n := testing.AllocsPerRun(100, func() { table.Classify(c) }); n != 0 {
			t.Errorf("%s: %v allocations", line, n)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	for _, line := range []string{"GET k", "XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS s >", "CLIENT SETNAME x", "NOSUCH"} {
		b.Run(strings.Fields(line)[0], func(b *testing.B) {
			c, table := words(line), DefaultTable()
			b.ReportAllocs()
			for b.Loop() {
				table.Classify(c)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	for _, line := range []string{"GET k", "CLIENT KILL x", "XREAD BLOCK 0 STREAMS s $", "XREADGROUP GROUP STREAMS BLOCK STREAMS s >", "''"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c := commandOf(strings.Split(line, " ")...)
		got := DefaultTable().Classify(c)
		upper := DefaultTable().Classify(commandOf(strings.Split(asciiUpper(line), " ")...))
		if got != upper {
			t.Errorf("%q: %+v, in capitals %+v", line, got, upper)
		}
		if got.Class == ClassShared && got.Verb != VerbNone {
			t.Errorf("%q: %+v", line, got)
		}
		if pos, ms, ok := blockOption(c); ok && (pos < 2 || pos >= c.Len() || ms < -1) {
			t.Errorf("%q: BLOCK value %d at %d", line, ms, pos)
		}
		if pos, ms, ok := blockTimeout(c); ok && (pos < 1 || pos >= c.Len() || ms < -1) {
			t.Errorf("%q: timeout %d at %d", line, ms, pos)
		}
	})
}

// asciiUpper changes nothing but a to z, as the server compares.
func asciiUpper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}
