// Package config turns flags and environment variables into one plain struct.
//
// One table (flags.go) names every flag, its place in Config, its syntax and its
// bounds. Parsing, help, the printed effective configuration and docs/flags.md all
// read that table, so that they cannot drift apart. What the standard library's flag
// package and its larger relatives lack is the report of every fault at once, from
// arguments and environment together; the rest of a flag library is short.
package config

import (
	"time"
)

// Config is the whole configuration of the process. Its defaults and bounds are
// those of Default and Validate.
type Config struct {
	// Listen lists the client addresses: host:port, tls://host:port, or
	// unix:///path?mode=0660.
	Listen []string
	// MaxClients bounds client connections, because each costs a descriptor and memory.
	MaxClients int
	// ClientIdleTimeout closes a client that sends nothing for that long; 0 never,
	// which is Redis's own default and what pools of connections rely on.
	ClientIdleTimeout time.Duration
	// ClientBufferLimit is how many unsent reply bytes a client may owe before the
	// proxy stops reading from it.
	ClientBufferLimit int64
	// ClientStallTimeout closes a client that is over its limit and reads nothing.
	ClientStallTimeout time.Duration
	// MaxArgs bounds the arguments of one command; each costs memory before the
	// command can be refused.
	MaxArgs int
	// Deny names commands, or CONTAINER|SUBCOMMAND, that clients may not send.
	Deny []string
	// RequirePassFile holds the password that clients must present; empty: none.
	RequirePassFile string
	// TLSCertFile and TLSKeyFile are what tls:// addresses show to clients. They are
	// read again at each handshake, because certificates are renewed.
	TLSCertFile string
	TLSKeyFile  string
	// TLSClientCAFile has the authorities of which a client must have a certificate;
	// empty asks clients for none.
	TLSClientCAFile string

	// Upstream is the URL of the server.
	Upstream string
	// UpstreamUser replaces the URL's user.
	UpstreamUser string
	// UpstreamPasswordFile is read again at each handshake, because managed services
	// rotate their tokens.
	UpstreamPasswordFile string
	// UpstreamCAFile has the authorities that a rediss:// server's certificate must
	// come from; empty: the system's.
	UpstreamCAFile string
	// UpstreamCertFile and UpstreamKeyFile are shown to a server that asks for them.
	UpstreamCertFile string
	UpstreamKeyFile  string
	// UpstreamServerName is the name that the server's certificate must have; empty:
	// the URL's host.
	UpstreamServerName string
	// UpstreamInsecure accepts any certificate.
	UpstreamInsecure bool
	// UpstreamConns is the number of shared connections per user, database and
	// protocol. One keeps the batches large.
	UpstreamConns int
	// MaxLanes caps the shared connections over all of these.
	MaxLanes int
	// UpstreamTimeout ends an upstream connection that owes a reply and is silent; it
	// must exceed the slowest script.
	UpstreamTimeout time.Duration
	// UpstreamWait is how long a command waits for a lost upstream before it fails as
	// not sent. While the server lets connections in, a command waits for its turn to get one.
	UpstreamWait time.Duration
	// DialTimeout bounds one dial together with its handshake.
	DialTimeout time.Duration

	// MaxFlushDelay is the longest a queued command waits for company. Auto spends 5 %
	// of the measured round trip, at most 1 ms.
	MaxFlushDelay Auto[time.Duration]
	// FlushMaxBytes and FlushMaxCommands close a batch whatever the delay.
	FlushMaxBytes    int64
	FlushMaxCommands int

	// PrivateMax bounds the private connections of transactions.
	PrivateMax int
	// PrivateMinIdle is how many private connections wait ready-dialled.
	PrivateMinIdle int
	// SharedCommands names module or unknown commands that may share a connection.
	SharedCommands []string

	// Reclaim is on, observe or off, see reclaim.Mode.
	Reclaim string
	// ReclaimInterval is the time between two looks at the same streams, however many
	// proxies share them.
	ReclaimInterval time.Duration
	// ReclaimGroups are rules pattern=min-idle[,own] for groups whose clients never
	// reclaim, see ReclaimRules.
	ReclaimGroups []string
	// ReclaimLock lists the templates of the lock keys that clients take around a
	// reclaim.
	ReclaimLock []string
	// ReclaimKeyPrefix begins every key that the proxy itself writes. Proxies with the
	// same prefix share their looks.
	ReclaimKeyPrefix string
	// ReclaimMaxHeldEntries and ReclaimMaxHeldBytes bound what is claimed ahead of a
	// consumer's asking.
	ReclaimMaxHeldEntries int
	ReclaimMaxHeldBytes   int64

	// MemoryLimit bounds the bytes in the proxy's buffers; 0 is no limit. Auto is half
	// of the cgroup's limit, which leaves room for what the limit does not count: stacks,
	// maps, the kernel's part of connections and the garbage collector's slack.
	MemoryLimit Auto[int64]
	// Threads becomes GOMAXPROCS. Auto follows the cgroup's CPU limit, see AutoThreads.
	Threads Auto[int]

	// TelemetryListen is the address of metrics and probes, or "off".
	TelemetryListen string
	// AdminListen is the address of administration, on loopback or a unix socket because
	// nobody is asked who they are, or "off".
	AdminListen string
	// LogLevel is the least severe level written: debug, info, warn or error.
	LogLevel string
	// LogFormat is auto (text on a terminal, else JSON), text or json.
	LogFormat string

	// DrainMin is how long a drain serves clients at least.
	DrainMin time.Duration
	// DrainIdle is how long no client may have had a command in flight before a drain
	// goes on to close connections.
	DrainIdle time.Duration
	// DrainTimeout ends the waiting of a drain. It stays below the 30 s that Kubernetes
	// grants by default.
	DrainTimeout time.Duration
}

// Auto is a setting that the process may choose itself. Value is what is in force
// either way, once Load has resolved it; the flush delay is resolved per connection,
// and its Value stays 0 while Auto.
type Auto[T any] struct {
	Auto  bool
	Value T
}

// TelemetryOff is the value of Config.TelemetryListen that serves no telemetry, and of
// Config.AdminListen that serves no administration.
const TelemetryOff = "off"

// DefaultAdmin is where administration is served unless it is told otherwise.
const DefaultAdmin = "127.0.0.1:9381"

// Default returns the configuration of a process started without any flag on
// machine m.
func Default(m Machine) Config {
	c := Config{
		Listen:             []string{"127.0.0.1:6380"},
		MaxClients:         10000,
		ClientBufferLimit:  64 << 20,
		ClientStallTimeout: 30 * time.Second,
		MaxArgs:            1 << 20,
		Upstream:           "redis://127.0.0.1:6379",
		UpstreamConns:      1,
		MaxLanes:           64,
		UpstreamTimeout:    30 * time.Second,
		UpstreamWait:       time.Second,
		DialTimeout:        5 * time.Second,
		MaxFlushDelay:      Auto[time.Duration]{Auto: true},
		FlushMaxBytes:      64 << 10,
		FlushMaxCommands:   1024,
		PrivateMax:         1000,
		PrivateMinIdle:     2,

		Reclaim:               "on",
		ReclaimInterval:       30 * time.Second,
		ReclaimLock:           []string{"autoclaim:{group}:{stream}"},
		ReclaimKeyPrefix:      "streamproxy:",
		ReclaimMaxHeldEntries: 10000,
		ReclaimMaxHeldBytes:   64 << 20,

		MemoryLimit:     Auto[int64]{Auto: true},
		Threads:         Auto[int]{Auto: true},
		TelemetryListen: "127.0.0.1:9380",
		AdminListen:     DefaultAdmin,
		LogLevel:        "info",
		LogFormat:       "auto",
		DrainIdle:       2 * time.Second,
		DrainTimeout:    25 * time.Second,
	}
	c.resolve(m)
	return c
}

// resolve fills in the automatic values that depend on the machine.
func (c *Config) resolve(m Machine) {
	if c.MemoryLimit.Auto {
		c.MemoryLimit.Value = AutoMemoryLimit(m)
	}
	if c.Threads.Auto {
		c.Threads.Value = AutoThreads(m)
	}
}
