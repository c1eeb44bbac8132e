package streamlab

import (
	"fmt"
	"strconv"
	"strings"
)

// Calls is how often a server executed each command, those inside transactions and scripts
// included.
type Calls map[string]int64

// readCalls asks a server, on a connection that takes no way round.
func readCalls(c *client) (Calls, error) {
	text, err := c.do("INFO", "commandstats")
	if err != nil {
		return nil, err
	}
	return parseCalls(text)
}

// parseCalls reads lines such as "cmdstat_client|id:calls=3,usec=7,...". Asking costs a call of
// INFO, which is left out.
func parseCalls(text string) (Calls, error) {
	calls := Calls{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("commandstats: %q: %w", line, err)
		}
		if name = strings.TrimPrefix(name, "cmdstat_"); name != "info" {
			calls[name] = n
		}
	}
	return calls, nil
}

// since returns what was called after the earlier reading.
func (c Calls) since(earlier Calls) Calls {
	grown := Calls{}
	for name, n := range c {
		if n > earlier[name] {
			grown[name] = n - earlier[name]
		}
	}
	return grown
}

// Total is the number of calls of all commands but the named ones.
func (c Calls) Total(except ...string) int64 {
	var sum int64
	for _, n := range c {
		sum += n
	}
	for _, name := range except {
		sum -= c[name]
	}
	return sum
}
