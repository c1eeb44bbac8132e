package upstream

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// DefaultMaxBulk is Redis's own default of proto-max-bulk-len, in bytes.
const DefaultMaxBulk = 512 << 20

// The settings that the proxy asks for by name.
const (
	settingMaxBulk   = "proto-max-bulk-len"
	settingDatabases = "databases"
)

// defaultDatabases is Redis's own default number of databases.
const defaultDatabases = 16

// Facts is what the proxy learns from a server about itself. Servers and ACLs
// that refuse a question leave the field at the value named.
type Facts struct {
	// RunID differs for every start of every server; empty is unknown, and then
	// each reconnect must count as another server.
	RunID string
	// Server is the product in lower case ("redis", "valkey", "dragonfly"), empty
	// if unknown. Version is its own version, not the one it emulates.
	Server, Version string
	// MaxBulk is the longest argument the server accepts, in bytes; DefaultMaxBulk
	// if unknown.
	MaxBulk int64
	// Databases is how many there are; 16 if unknown.
	Databases int
	// Commands is the server's command table, empty if unknown.
	Commands []CommandInfo
}

// Facts asks the server about itself, in one round trip. An error means that it
// could not be reached or cannot serve yet; a refused question is no error.
func (c *Control) Facts(ctx context.Context) (Facts, error) {
	replies := c.doMulti(ctx,
		[]string{"INFO", "server"},
		[]string{"CONFIG", "GET", settingMaxBulk},
		[]string{"CONFIG", "GET", settingDatabases},
		[]string{"COMMAND"},
	)
	answers := make([]rueidis.RedisMessage, len(replies))
	for i, r := range replies {
		var err error
		if answers[i], err = answered(r); err != nil {
			return Facts{}, err
		}
	}
	var f Facts
	if text, err := answers[0].ToString(); err == nil {
		f.identify(parseInfo(text))
	}
	f.MaxBulk = setting(answers[1], settingMaxBulk, DefaultMaxBulk)
	f.Databases = int(setting(answers[2], settingDatabases, defaultDatabases))
	f.Commands = parseCommands(answers[3])
	return f, nil
}

// RunID asks only which run of the server this is; empty is unknown. Errors are
// those of Facts.
func (c *Control) RunID(ctx context.Context) (string, error) {
	info, err := answered(c.do(ctx, "INFO", "server"))
	if err != nil {
		return "", err
	}
	text, err := info.ToString()
	if err != nil {
		return "", nil
	}
	return parseInfo(text)["run_id"], nil
}

// setting reads one number from CONFIG GET's reply, or falls back.
func setting(reply rueidis.RedisMessage, name string, fallback int64) int64 {
	settings, err := reply.AsStrMap()
	if err != nil {
		return fallback
	}
	n, err := strconv.ParseInt(settings[name], 10, 64)
	if err != nil || n <= 0 {
		return fallback
	}
	return n
}

// answered passes on every answer, refusals too, except those that say to ask
// again later.
func answered(r rueidis.RedisResult) (rueidis.RedisMessage, error) {
	reply, err := r.ToMessage()
	if serverText(err) != "" && !NotReady(err) && !Busy(err) || rueidis.IsRedisNil(err) {
		return rueidis.RedisMessage{}, nil
	}
	return reply, err
}

// identify finds product, version and run from INFO's server section. Products
// that emulate Redis name themselves beside the version they emulate.
func (f *Facts) identify(info map[string]string) {
	f.RunID = info["run_id"]
	for _, product := range []string{"valkey", "dragonfly", "keydb"} {
		if v, ok := info[product+"_version"]; ok {
			f.Server, f.Version = product, strings.TrimPrefix(strings.TrimPrefix(v, "df-"), "v")
			return
		}
	}
	if v, ok := info["redis_version"]; ok {
		f.Server, f.Version = "redis", v
	}
	if name := info["server_name"]; name != "" {
		f.Server = strings.ToLower(name)
	}
}

// parseInfo reads the name:value lines of INFO.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			info[name] = value
		}
	}
	return info
}
