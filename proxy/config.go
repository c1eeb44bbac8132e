package proxy

import (
	"log/slog"
	"time"

	"streamproxy/batcher"
	"streamproxy/internal/upstream"
	"streamproxy/reclaim"
)

// Config is everything a Proxy needs to know. The zero value of a limit is not
// "unlimited" but a mistake; start from DefaultConfig.
type Config struct {
	// Upstream names the server and how to greet it.
	Upstream upstream.Target
	// UpstreamConns is the number of shared connections per lane key. One keeps the
	// batches large; more than one never reorders a client, which stays on its own.
	UpstreamConns int
	// MaxLanes caps shared connections over all keys; a client whose key finds no
	// room is served over private connections.
	MaxLanes int
	// UpstreamTimeout ends an upstream connection that owes a reply and is silent
	// for that long. It must exceed the slowest script.
	UpstreamTimeout time.Duration
	// UpstreamWait is how long a command waits for a lost upstream before it fails
	// as not sent. Who waits only for its turn to get a connection goes on while others get theirs.
	UpstreamWait time.Duration
	// DialTimeout bounds one dial and its handshake.
	DialTimeout time.Duration

	// Flush is the batching policy of every lane.
	Flush batcher.PolicyConfig

	// PrivateMax bounds private connections used by transactions.
	PrivateMax int
	// PrivateMinIdle is how many private connections per key wait ready-dialled. As many again stay
	// for a while after one was used.
	PrivateMinIdle int
	// SharedCommands names unknown or module commands that may share a lane.
	SharedCommands []string
	// Deny names commands, or CONTAINER|SUBCOMMAND, that clients may not send, see
	// CheckDenied.
	Deny []string

	// MaxClients bounds client connections; one more gets Redis's own error.
	MaxClients int
	// ClientIdleTimeout closes a client that has sent nothing for that long; 0 never.
	ClientIdleTimeout time.Duration
	// ClientBufferLimit is how many unsent reply bytes a client may owe before it is
	// not read from any more, and how much of what it sends behind a command that blocks is
	// read before that ends.
	ClientBufferLimit int64
	// ClientStallTimeout closes a client over its limit that reads nothing for that long.
	ClientStallTimeout time.Duration
	// MaxArgs bounds the arguments of one command. Redis allows 2^31-1; nobody sends
	// that many, and each costs memory before it can be refused.
	MaxArgs int
	// MemoryLimit bounds the bytes in the proxy's own buffers: replies that clients have
	// not taken, commands that they have not ended, and those that wait for the upstream;
	// 0 is no limit.
	MemoryLimit int64
	// Ceiling bounds what the whole process needs, in bytes, and Need measures that: as the rest
	// of the process grows, buffers may take less than MemoryLimit. It is in force only with a
	// MemoryLimit; 0 is none.
	Ceiling int64
	Need    func() Need
	// RequirePass, when not nil, returns the password that clients must present; it is
	// asked at each AUTH so that a rotated file takes effect.
	RequirePass func() (string, error)

	// Reclaim is what is done for consumers of streams.
	Reclaim reclaim.Config

	// DrainMin, DrainIdle and DrainTimeout shape the shutdown, see Proxy.Shutdown.
	DrainMin     time.Duration
	DrainIdle    time.Duration
	DrainTimeout time.Duration

	// Version is what the proxy calls itself in PROXY STATS.
	Version string
	// Effective, if not nil, writes the configuration in force for PROXY CONFIG. It must
	// keep secrets to itself.
	Effective func() string
	// Events and BatchEvents observe; Logger gets one line per change of state.
	Events      Events
	BatchEvents batcher.Events
	Logger      *slog.Logger
}

// DefaultConfig returns the configuration of a proxy started without any flag.
func DefaultConfig() Config {
	return Config{
		UpstreamConns:      1,
		MaxLanes:           64,
		UpstreamTimeout:    30 * time.Second,
		UpstreamWait:       time.Second,
		DialTimeout:        5 * time.Second,
		Flush:              batcher.DefaultPolicyConfig(),
		PrivateMax:         1000,
		PrivateMinIdle:     2,
		MaxClients:         10000,
		ClientBufferLimit:  64 << 20,
		ClientStallTimeout: 30 * time.Second,
		MaxArgs:            1 << 20,
		Reclaim:            reclaim.DefaultConfig(),
		DrainIdle:          2 * time.Second,
		DrainTimeout:       25 * time.Second,
		Logger:             slog.New(slog.DiscardHandler),
	}
}
