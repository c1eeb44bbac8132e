//go:build cases

package cases

import (
	"strings"
	"testing"
)

// A server that waits for a replica before it ends is told over another connection not to. Who sent
// SHUTDOWN hears of it, and nobody else does.
func TestShutdownIsAborted(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s, replica := replicated(t)
		f := startProxy(t, s.Addr())
		s.Do("CONFIG", "SET", "shutdown-timeout", "600")
		replica.Stop()
		defer replica.Cont()
		ends, aborts := f.client(), f.client()
		ends.gets("+OK\r\n", "SET", "behind", "v")
		ends.sends(pipeline([]string{"SHUTDOWN", "NOSAVE"}))
		eventually(t, "the server waits for its replica", func() bool {
			for line := range strings.Lines(s.Do("CLIENT", "LIST")) {
				if strings.Contains(line, " cmd=shutdown ") && strings.Contains(line, " flags=b ") {
					return true
				}
			}
			return false
		})
		aborts.gets("+OK\r\n", "SHUTDOWN", "ABORT")
		ends.replies("-ERR Errors trying to SHUTDOWN. Check logs.\r\n")
		ends.gets("+OK\r\n", "SET", "behind", "w")
	})
}
