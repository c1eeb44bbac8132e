package config

import (
	"strings"
	"time"

	"streamproxy/proxy"
)

// A Flag is one row of the table that everything about flags is made from.
type Flag struct {
	// Name is the flag without its dashes.
	Name string
	// Arg stands for the value in the help.
	Arg string
	// Help is one or two sentences for the operator.
	Help string

	field field
	hide  func(string) string // removes secrets from a value; nil: there are none
}

// Env is the environment variable that sets the flag.
func (f Flag) Env() string { return EnvPrefix + envSuffix(f.Name) }

// Text is the flag's value without secrets, in the flag's own syntax.
func (f Flag) Text() string { return f.show(f.field.String()) }

// Bound describes the accepted values; empty where Help does.
func (f Flag) Bound() string { return f.field.bound() }

// Words lists the accepted values where there are but a few, else nothing.
func (f Flag) Words() []string { return f.field.words() }

// Alone reports whether the flag needs no value.
func (f Flag) Alone() bool {
	_, alone := f.field.(*setting[bool])
	return alone
}

// Repeatable reports whether the flag can be given several times.
func (f Flag) Repeatable() bool {
	_, list := f.field.(*setting[[]string])
	return list
}

func (f Flag) show(value string) string {
	if f.hide == nil {
		return value
	}
	return f.hide(value)
}

// EnvPrefix begins the name of every environment variable that sets a flag.
const EnvPrefix = "STREAMPROXY_"

func envSuffix(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// A Group is the flags that stand under one heading of the help.
type Group struct {
	Title string
	Flags []Flag
}

// Groups is the table of flags. Its fields read and write c.
func Groups(c *Config) []Group {
	return []Group{
		clientFlags(c), upstreamFlags(c), tlsFlags(c), batchFlags(c), privateFlags(c),
		reclaimFlags(c), processFlags(c), telemetryFlags(c), drainFlags(c),
	}
}

// flags is Groups without the headings.
func flags(c *Config) []Flag {
	var all []Flag
	for _, g := range Groups(c) {
		all = append(all, g.Flags...)
	}
	return all
}

// The bounds below are guards against slips of the finger, wide enough for any use
// that was thought of; where one has a deeper reason it is said.
const (
	longest  = 24 * time.Hour
	largest  = 1 << 40
	maxCount = 1 << 20
)

func clientFlags(c *Config) Group {
	f := durationField(&c.ClientIdleTimeout, 0, 365*24*time.Hour)
	return Group{"Clients", []Flag{
		{Name: "listen", Arg: "ADDR", field: listField(&c.Listen, checkListen),
			Help: "Where clients connect: host:port (IPv6 in brackets, no host for all addresses), tls://host:port, or unix:///path?mode=0660. Repeatable, or separated by commas."},
		{Name: "maxclients", Arg: "N", field: intField(&c.MaxClients, 1, maxCount),
			Help: "Client connections served at a time; one more gets Redis's own error."},
		{Name: "client-idle-timeout", Arg: "DURATION", field: f,
			Help: "Close a client that sends nothing for that long; 0 never."},
		{Name: "client-buffer-limit", Arg: "SIZE", field: sizeField(&c.ClientBufferLimit, 64<<10, largest),
			Help: "Unsent reply bytes a client may owe before it is not read from any more; and what it may have sent behind a command that blocks."},
		{Name: "client-stall-timeout", Arg: "DURATION", field: durationField(&c.ClientStallTimeout, 100*time.Millisecond, longest),
			Help: "Close a client that is over its limit and reads nothing for that long."},
		{Name: "max-args", Arg: "N", field: intField(&c.MaxArgs, 16, 1<<31-1),
			Help: "Arguments of one command. Redis allows 2147483647; each costs memory before the command can be refused."},
		{Name: "deny", Arg: "NAMES", field: listField(&c.Deny, proxy.CheckDenied),
			Help: "Commands, separated by commas, that clients may not send: names, or CONTAINER|SUBCOMMAND as in config|set. Scripts can still call them: the server's ACLs are what holds everybody."},
		{Name: "requirepass-file", Arg: "PATH", field: textField(&c.RequirePassFile, checkSecretFile),
			Help: "File with the password that clients must present, read again at each AUTH."},
	}}
}

func upstreamFlags(c *Config) Group {
	return Group{"Upstream", []Flag{
		{Name: "upstream", Arg: "URL", field: textField(&c.Upstream, checkUpstream), hide: c.hideUpstream,
			Help: "The server: redis://[user@]host[:port][/db], rediss:// for TLS, or unix://[user@]/path[?db=n]. A password belongs into --upstream-password-file."},
		{Name: "upstream-user", Arg: "NAME", field: textField(&c.UpstreamUser, nil),
			Help: "ACL user to greet the server as, instead of the URL's."},
		{Name: "upstream-password-file", Arg: "PATH", field: textField(&c.UpstreamPasswordFile, checkSecretFile),
			Help: "File with the password, read again at each handshake so that a rotated one takes effect."},
		{Name: "upstream-conns", Arg: "N", field: intField(&c.UpstreamConns, 1, 64),
			Help: "Shared connections per user, database and protocol version, beside one for clients that had no reply yet. One makes the largest batches."},
		{Name: "max-lanes", Arg: "N", field: intField(&c.MaxLanes, 1, 65536),
			Help: "Shared connections over all users, databases and protocol versions; over it, clients are served over private ones."},
		{Name: "upstream-timeout", Arg: "DURATION", field: durationField(&c.UpstreamTimeout, 100*time.Millisecond, longest),
			Help: "End an upstream connection that owes a reply and is silent for that long. Must exceed the slowest script."},
		{Name: "upstream-wait", Arg: "DURATION", field: durationField(&c.UpstreamWait, time.Millisecond, time.Hour),
			Help: "How long a command waits for a lost upstream before it fails as not sent. While the server lets connections in, a command waits for its turn to get one."},
		{Name: "dial-timeout", Arg: "DURATION", field: durationField(&c.DialTimeout, 10*time.Millisecond, 10*time.Minute),
			Help: "Time for one dial and its handshake."},
	}}
}

func batchFlags(c *Config) Group {
	// A command that waits longer than this for company is no longer being batched,
	// it is being throttled.
	valid, limits := unlessAuto(between(0, 100*time.Millisecond, formatDuration))
	delay := &setting[Auto[time.Duration]]{at: &c.MaxFlushDelay, parse: automatic(parseDuration), format: formatAutomatic(formatDuration), valid: valid, limits: limits}
	return Group{"Batching", []Flag{
		{Name: "max-flush-delay", Arg: "DURATION", field: delay,
			Help: "How long a queued command may wait for company. auto spends 5 % of the measured round trip, at most 1ms; 0 batches only what arrives during a write."},
		{Name: "flush-max-bytes", Arg: "SIZE", field: sizeField(&c.FlushMaxBytes, 1<<10, 16<<20),
			Help: "A batch of that many bytes leaves at once."},
		{Name: "flush-max-commands", Arg: "N", field: intField(&c.FlushMaxCommands, 1, 65536),
			Help: "A batch of that many commands leaves at once."},
	}}
}

func privateFlags(c *Config) Group {
	return Group{"Private connections", []Flag{
		{Name: "private-max", Arg: "N", field: intField(&c.PrivateMax, 1, maxCount),
			Help: "Private connections for transactions at a time; blocking and subscribed clients are bounded by --maxclients instead."},
		{Name: "private-min-idle", Arg: "N", field: intField(&c.PrivateMinIdle, 0, 1000),
			Help: "Private connections kept ready-dialled per user, database and protocol version. As many again stay open for half a minute after one was used."},
		{Name: "shared-commands", Arg: "NAMES", field: listField(&c.SharedCommands, proxy.CheckShared),
			Help: "Module or unknown commands, separated by commas, that may share a connection: they must neither block nor change the connection's state."},
	}}
}

func processFlags(c *Config) Group {
	validMemory, memoryLimits := unlessAuto(zeroOr(between[int64](1<<20, largest, formatSize)))
	memory := &setting[Auto[int64]]{at: &c.MemoryLimit, parse: automatic(parseSize), format: formatAutomatic(formatSize), valid: validMemory, limits: memoryLimits}
	validThreads, threadLimits := unlessAuto(between(1, 1024, formatInt))
	threads := &setting[Auto[int]]{at: &c.Threads, parse: automatic(parseInt), format: formatAutomatic(formatInt), valid: validThreads, limits: threadLimits}
	return Group{"Process", []Flag{
		{Name: "memory-limit", Arg: "SIZE", field: memory,
			Help: "Bytes in all buffers before clients are pushed back; 0 is no limit. auto is half of the cgroup's memory limit, 0 without one. In a cgroup the whole process stays below nine tenths of its limit, see tuning.md."},
		{Name: "threads", Arg: "N", field: threads,
			Help: "Operating-system threads that run the proxy's code (GOMAXPROCS). auto follows the CPU limit as the benchmarks advise: 1 up to 4 CPUs, 2 above."},
	}}
}

func telemetryFlags(c *Config) Group {
	return Group{"Telemetry and logs", []Flag{
		{Name: "telemetry-listen", Arg: "ADDR", field: textField(&c.TelemetryListen, checkTelemetry),
			Help: "host:port of /metrics, /startupz, /readyz and /livez, or off."},
		{Name: "admin-listen", Arg: "ADDR", field: textField(&c.AdminListen, checkAdmin),
			Help: "Loopback host:port or unix:///path?mode=0600 of /debug/pprof/, /loglevel, /stats.json and /quitquitquit, or off. Where the default address is taken, there is none."},
		{Name: "log-level", Arg: "LEVEL", field: choiceField(&c.LogLevel, "debug", "info", "warn", "error"),
			Help: "Least severe level that is logged."},
		{Name: "log-format", Arg: "FORMAT", field: choiceField(&c.LogFormat, "auto", "text", "json"),
			Help: "auto is text on a terminal, JSON otherwise."},
	}}
}

func drainFlags(c *Config) Group {
	return Group{"Drain", []Flag{
		{Name: "drain-min", Arg: "DURATION", field: durationField(&c.DrainMin, 0, longest),
			Help: "After SIGTERM, serve clients at least that long."},
		{Name: "drain-idle", Arg: "DURATION", field: durationField(&c.DrainIdle, 0, longest),
			Help: "Then go on until no client has had a command in flight for that long."},
		{Name: "drain-timeout", Arg: "DURATION", field: durationField(&c.DrainTimeout, 0, longest),
			Help: "Stop waiting after that long. Keep it 5s below the time the supervisor grants (30s under Kubernetes)."},
	}}
}
