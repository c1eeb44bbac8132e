//go:build cases

package cases

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"streamproxy/internal/proxytest"
)

// process is a proxy in a process of its own, for what depends on that, such as memory.
type process struct {
	*proxytest.Process
	t testing.TB
}

func startProcess(t testing.TB, addr string, flags ...string) *process {
	t.Helper()
	return &process{proxytest.Start(t, "redis://"+addr, flags...).Ready(), t}
}

func (p *process) client() *client {
	p.t.Helper()
	return connect(p.t, p.Addr)
}

// alive fails the test if the process has ended.
func (p *process) alive() {
	p.t.Helper()
	select {
	case <-p.Ended():
		p.t.Fatal("the proxy has ended")
	default:
	}
}

// resident is the process's resident memory in bytes.
func (p *process) resident() int64 {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid()))
	if err != nil {
		p.t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
