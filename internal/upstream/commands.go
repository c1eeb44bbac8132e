package upstream

import (
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// CommandInfo is one entry of the server's own command table. Names and flags
// are in lower case; a subcommand's name is "container|subcommand".
type CommandInfo struct {
	Name string
	// Arity counts the name; negative means at least that many.
	Arity int
	// Flags are the server's words, such as write, blocking, noscript.
	Flags []string
	// Module marks a command that a module added. Modules do not flag themselves
	// as blocking, so nothing follows from a missing flag.
	Module bool
	// FirstKey, LastKey and Step locate the keys as COMMAND does: positions from 1,
	// a negative LastKey counts from the end, 0 means no keys at fixed places.
	FirstKey, LastKey, Step int
	// Subcommands is empty before Redis 7.0.
	Subcommands []CommandInfo
}

// Flag says whether the server set flag on the command.
func (c CommandInfo) Flag(flag string) bool { return slices.Contains(c.Flags, flag) }

// Positions of the fields in an entry of COMMAND's reply. Redis 7 appends ACL
// categories, tips and key specifications before the subcommands.
const (
	fieldName = iota
	fieldArity
	fieldFlags
	fieldFirstKey
	fieldLastKey
	fieldStep
	numFixedFields
	fieldSubcommands = 9
)

// parseCommands reads COMMAND's reply and skips entries of another shape: a
// command the proxy has not heard of is merely not shared.
func parseCommands(table rueidis.RedisMessage) []CommandInfo {
	return parseCommandList(table, true)
}

func parseCommandList(list rueidis.RedisMessage, containers bool) []CommandInfo {
	entries, err := list.ToArray()
	if err != nil {
		return nil
	}
	commands := make([]CommandInfo, 0, len(entries))
	for _, entry := range entries {
		fields, err := entry.ToArray()
		if err != nil || len(fields) < numFixedFields {
			continue
		}
		c, ok := parseCommand(fields)
		if !ok {
			continue
		}
		if containers && len(fields) > fieldSubcommands {
			c.Subcommands = parseCommandList(fields[fieldSubcommands], false)
		}
		commands = append(commands, c)
	}
	return commands
}

func parseCommand(fields []rueidis.RedisMessage) (CommandInfo, bool) {
	name, err := fields[fieldName].ToString()
	if err != nil || name == "" {
		return CommandInfo{}, false
	}
	flags, err := fields[fieldFlags].ToArray()
	if err != nil {
		return CommandInfo{}, false
	}
	c := CommandInfo{Name: strings.ToLower(name)}
	for _, f := range flags {
		if s, err := f.ToString(); err == nil {
			c.Flags = append(c.Flags, strings.ToLower(s))
		}
	}
	c.Module = c.Flag("module")
	for i, dst := range map[int]*int{
		fieldArity: &c.Arity, fieldFirstKey: &c.FirstKey, fieldLastKey: &c.LastKey, fieldStep: &c.Step,
	} {
		n, err := fields[i].AsInt64()
		if err != nil {
			return CommandInfo{}, false
		}
		*dst = int(n)
	}
	return c, true
}
