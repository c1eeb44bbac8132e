package differential

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// tokensLeftOut names options that no random script sends.
var tokensLeftOut = map[string]string{
	"client|kill master": "see normal", "client|kill replica": "see normal", "client|kill slave": "see normal",
	"client|kill normal": "ends the proxy's connections, which others share",
	"failover force":     "changes the server's role", "shutdown force": "ends the server", "shutdown now": "ends the server",
	"migrate auth": "nobody answers there", "migrate auth2": "nobody answers there",
	"script|debug sync": "stops the server while it waits for a debugger; test/clients has it", "script|debug yes": "as sync",
	"xadd *": "ids of the server's clock",
}

// generator makes random scripts. The same seed makes the same script on the same server.
type generator struct {
	all, keyed []spec // weighted by repetition
}

// newGenerator prepares the commands of a server's grammar. Commands about data come more often.
func newGenerator(specs []spec) *generator {
	g := &generator{}
	for _, s := range specs {
		name := s.full()
		if _, out := leftOut[name]; out {
			continue
		}
		weight := 1
		if !slices.Contains([]string{"server", "cluster", "connection", "scripting"}, s.group) {
			weight = 6
		}
		for range weight {
			g.all = append(g.all, s)
			// What EVALSHA finds depends on what others have run.
			if s.keyed() && !strings.HasPrefix(name, "evalsha") {
				g.keyed = append(g.keyed, s)
			}
		}
	}
	return g
}

// draft is a script in the making.
type draft struct {
	*generator
	*source
	script
	alone       bool // one pipe at a time: commands may touch what others touch
	pipe, round int
	conns       int
}

// script makes the script of a seed, of about n commands.
func (g *generator) script(seed uint64, n int) script {
	d := &draft{generator: g, source: &source{Rand: rand.New(rand.NewPCG(seed, 0))}}
	d.cuts = map[int][]int{}
	d.conns = 1 + d.IntN(5)
	d.alone = d.IntN(3) > 0
	for len(d.ops) < n {
		if d.alone {
			d.episode(d.IntN(d.conns))
		} else {
			d.company()
		}
	}
	return d.script
}

// next begins another pipe in another round.
func (d *draft) next() {
	d.pipe++
	d.round++
}

// add appends a command of a connection to the pipe. A connection that is alone begins another.
func (d *draft) add(conn int, args ...string) {
	if n := len(d.ops); d.alone && n > 0 && d.ops[n-1].pipe == d.pipe && d.ops[n-1].conn != conn {
		d.next()
	}
	d.ops = append(d.ops, op{conn, d.pipe, d.round, do, args})
}

// split decides where the present pipe is split: mostly nowhere, sometimes everywhere.
func (d *draft) split() {
	n := 0
	switch d.IntN(8) {
	case 0, 1, 2:
		n = 1 + d.IntN(4)
	case 3:
		n = 60
	}
	for range n {
		d.cuts[d.pipe] = append(d.cuts[d.pipe], d.IntN(1<<20))
	}
}

// command draws one command.
func (d *draft) command() []string {
	if d.oneIn(4) {
		for {
			c := custom[d.IntN(len(custom))]
			if c.keyed || d.alone {
				return c.make(d.source)
			}
		}
	}
	from := d.keyed
	if d.alone && d.oneIn(2) {
		from = d.all
	}
	s := &from[d.IntN(len(from))]
	return d.invoke(s)
}

// invoke makes a command from its grammar.
func (d *draft) invoke(s *spec) []string {
	in := invocation{source: d.source, group: s.group, numkeys: -1}
	in.words = append(in.words, s.name...)
	if d.oneIn(3) {
		in.words[0] = strings.ToUpper(in.words[0])
	}
	in.all(s.args)
	if d.oneIn(25) && !has(s.args, "timeout") {
		in.spoil(len(s.name), has(s.args, "seconds", "milliseconds", "ttl", "unix-time-seconds", "unix-time-milliseconds"))
	}
	return in.words
}

// invocation is one command in the making.
type invocation struct {
	*source
	group   string
	words   []string
	numkeys int // where the number of keys stands, to be corrected when they are known; -1: nowhere
}

func (in *invocation) all(args []argument) {
	for _, a := range args {
		if a.optional && in.IntN(5) > 1 {
			continue
		}
		in.one(a)
	}
}

func (in *invocation) one(a argument) {
	n := 1
	if a.multiple {
		n = 1 + in.IntN(3)
	}
	for i := range n {
		if a.token != "" && a.kind != "pure-token" && (i == 0 || a.multipleWithWord) {
			in.words = append(in.words, a.token)
		}
		switch a.kind {
		case "pure-token":
			in.words = append(in.words, a.token)
		case "block":
			in.all(a.args)
		case "oneof":
			in.one(a.args[in.IntN(len(a.args))])
		case "key":
			in.words = append(in.words, in.key(in.group))
		default:
			in.scalar(a)
		}
	}
	if a.kind == "key" && in.numkeys >= 0 {
		in.words[in.numkeys] = strconv.Itoa(n)
		in.numkeys = -1
	}
}

func (in *invocation) scalar(a argument) {
	word, known := "", true
	if a.name == "numkeys" {
		in.numkeys = len(in.words)
		word = in.pick("0", "1")
	} else {
		word, known = in.named(a.name)
	}
	switch {
	case known:
	case a.kind == "integer", a.kind == "double", a.kind == "unix-time":
		word = in.integer()
	default:
		word = in.value()
	}
	in.words = append(in.words, word)
}

// has reports whether one of the arguments, at any depth, has one of the names.
func has(args []argument, names ...string) bool {
	return slices.ContainsFunc(args, func(a argument) bool { return slices.Contains(names, a.name) || has(a.args, names...) })
}

// spoil makes a command wrong behind its name: a word too many, too few, or out of place. One that
// tells a time stays in place: another would come to an end while the script runs. The word may come
// to stand where a key does, and others have no business there.
func (in *invocation) spoil(name int, timed bool) {
	switch at := name + in.IntN(len(in.words)-name+1); in.IntN(3) {
	case 0:
		in.words = in.words[:min(at, len(in.words))]
	case 1:
		in.words = append(in.words, in.prefix+in.value())
	case 2:
		if at < len(in.words) && !timed {
			in.words[at] = in.prefix + in.value()
		}
	}
}
