package main

import (
	"fmt"
	"strconv"
	"syscall"

	"streamproxy/internal/config"
)

// otherFiles is how many descriptors are kept for what is not a client's: both sites of
// pages, shared connections and ready ones, listeners, files, the runtime.
const otherFiles = 192

// fitClients lowers --maxclients to what the open files of this process allow, as Redis does,
// with a warning: a client over the limit is told so, one without a descriptor is never answered.
// Every one of them may have a connection to the server of its own at the same time: they all do
// when they all wait in BLPOP, and a descriptor short then is another's.
func fitClients(c *config.Loaded, files uint64) {
	wanted := c.MaxClients
	needed := 2*wanted + otherFiles
	if files >= uint64(needed) {
		return
	}
	others := min(otherFiles, files/2)
	c.MaxClients = max(1, int((files-others)/2))
	for i := range c.Changed {
		if c.Changed[i].Name == "maxclients" {
			c.Changed[i].Value = strconv.Itoa(c.MaxClients)
		}
	}
	c.Warnings = append(c.Warnings, fmt.Sprintf("--maxclients is lowered from %d to %d: that many need %d open files, this process may have %d",
		wanted, c.MaxClients, needed, files))
}

// openFiles is how many descriptors this process may have. The runtime has raised the
// soft limit to the hard one by now.
func openFiles() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return limit.Cur, err
}
