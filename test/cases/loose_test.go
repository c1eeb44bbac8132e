//go:build cases

package cases

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"streamproxy/internal/redistest"
)

// forged is what a client would like others to get: the server puts it into an error as it is.
const forged = "x\r\n$6\r\nFORGED\r\n+y"

// Some servers put a client's line ends into their errors. What stands behind them is nobody's reply:
// others get their own, and only that.
func TestErrorsWithLineEnds(t *testing.T) {
	everyServer(t, func(t *testing.T) {
		s := redistest.Start(t)
		s.Do("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function(k, a) error(a[1]) end)")
		f := startProxy(t, s.Addr())
		attacks := []string{
			redistest.Command("EVAL", "error(ARGV[1])", "0", forged),
			redistest.Command("EVAL", "error({err=ARGV[1]})", "0", forged),
			redistest.Command("EVAL", "return redis.error_reply(ARGV[1])", "0", forged),
			redistest.Command("EVAL_RO", "assert(false, ARGV[1])", "0", forged),
			redistest.Command("FCALL", "f", "0", forged),
			redistest.Command("FUNCTION", "LIST", forged),
			pipeline([]string{"MULTI"}, []string{"EVAL", "error(ARGV[1])", "0", forged}, []string{"EXEC"}),
		}
		var over atomic.Bool
		var wg sync.WaitGroup
		for _, value := range []string{"one", "two", "three", "four"} {
			s.Do("SET", value, value)
			c := f.client()
			wg.Go(func() {
				for !over.Load() {
					got, err := c.Do("GET", value)
					if err != nil || got != bulk(value) {
						t.Errorf("%s: got %q, %v", value, got, err)
						return
					}
				}
			})
		}
		for range 20 {
			for _, attack := range attacks {
				c := f.client()
				c.sends(attack)
				if got := c.reply(); strings.Contains(attack, "MULTI") != strings.HasPrefix(got, "+OK") {
					t.Errorf("%q: %q", attack, got)
				}
				reset(c.Conn)
			}
		}
		over.Store(true)
		wg.Wait()
	})
}
