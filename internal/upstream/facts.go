package upstream

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// DefaultMaxBulk is Redis's own default of proto-max-bulk-len, in bytes.
const DefaultMaxBulk = 512 << 20

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

// Facts asks the server about itself. An error means that it could not be
// reached or cannot serve yet; a refused question is no error.
func (c *Control) Facts(ctx context.Context) (Facts, error) {
	f := Facts{MaxBulk: DefaultMaxBulk, Databases: defaultDatabases}
	info, err := answered(c.do(ctx, "INFO", "server"))
	if err != nil {
		return Facts{}, err
	}
	if text, err := info.ToString(); err == nil {
		f.identify(parseInfo(text))
	}
	if err := c.number(ctx, "proto-max-bulk-len", &f.MaxBulk); err != nil {
		return Facts{}, err
	}
	databases := int64(f.Databases)
	if err := c.number(ctx, "databases", &databases); err != nil {
		return Facts{}, err
	}
	f.Databases = int(databases)
	table, err := answered(c.do(ctx, "COMMAND"))
	if err != nil {
		return Facts{}, err
	}
	f.Commands = parseCommands(table)
	return f, nil
}

// number reads one numeric setting into dst, which stays if the server refuses.
func (c *Control) number(ctx context.Context, name string, dst *int64) error {
	reply, err := answered(c.do(ctx, "CONFIG", "GET", name))
	if err != nil {
		return err
	}
	settings, err := reply.AsStrMap()
	if err != nil {
		return nil
	}
	if n, err := strconv.ParseInt(settings[name], 10, 64); err == nil && n > 0 {
		*dst = n
	}
	return nil
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
