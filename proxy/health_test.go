package proxy

import (
	"fmt"
	"testing"
)

// rerun makes the fake server the n-th run of one that is back too quickly for anybody to
// find it away. What it says of itself is new to connections that are; named tells whether
// that includes its run.
func (f *fakeServer) rerun(n int64, named bool) {
	f.mu.Lock()
	before, past := f.answer, f.ids
	f.mu.Unlock()
	info := "redis_version:7.0.15\r\n"
	if named {
		info += fmt.Sprintf("run_id:%d\r\n", n)
	}
	f.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case c.id <= past:
			return before(c, args)
		case args[0] == "INFO":
			return bulkReply(info), true
		case args[0] == "CONFIG" && args[2] == "proto-max-bulk-len":
			return "*2\r\n" + bulkReply(args[2]) + bulkReply(fmt.Sprint(n)), true
		}
		return "", false
	})
}

// A server that was restarted between two checks is another one, however quick it was back,
// also where it does not tell its run.
func TestQuickRestartIsNoticed(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %v", named), func(t *testing.T) {
			f := startFake(t)
			f.rerun(1<<20, named)
			p := startProxy(t, f, nil)
			for n := int64(1 << 20); n < 1<<20+5; n++ {
				until(t, fmt.Sprintf("run %d to be known", n), func() bool { return p.maxBulk.Load() == n && p.health.up.Load() })
				c := p.client()
				expect(t, c, bulkReply("a"), "GET", "a")
				f.rerun(n+1, named)
				f.cut("control")
				for range 10 { // the proxy sees the end of the one before that of the others
					expect(t, c, bulkReply("a"), "GET", "a")
				}
				f.cut("")
				until(t, "the ends to be seen, of both lanes", func() bool {
					c, well := p.client(), true
					for range 3 {
						got, err := c.Do("GET", "a")
						well = well && err == nil && got == bulkReply("a")
					}
					return well
				})
			}
		})
	}
}

// Another server has taken over the address, and the health check's own connection hangs at
// the one before: what the new one is like is learned all the same.
func TestSwitchBesideAnOldControl(t *testing.T) {
	f := startFake(t)
	f.rerun(1<<20, true)
	p := startProxy(t, f, nil)
	until(t, "the server to be known", func() bool { return p.maxBulk.Load() == 1<<20 && p.health.up.Load() })
	expect(t, p.client(), bulkReply("a"), "GET", "a")
	f.rerun(1<<20+1, true)
	f.cut("lane")
	f.cut("private")
	until(t, "the other server to be known", func() bool { return p.maxBulk.Load() == 1<<20+1 && p.health.up.Load() })
}
