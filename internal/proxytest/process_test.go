package proxytest

import (
	"strings"
	"syscall"
	"testing"

	"streamproxy/internal/redistest"
)

// A process serves, shows its pages and its log, and ends with the code of its drain.
func TestProcess(t *testing.T) {
	t.Parallel()
	p := Start(t, redistest.Start(t).URL(), "--drain-idle=1ms").Ready()
	if got, err := p.Client().Do("PING"); err != nil || got != "+PONG\r\n" {
		t.Fatalf("%q, %v", got, err)
	}
	if up := p.Metric("streamproxy_upstream_up"); up != 1 {
		t.Errorf("upstream_up is %v", up)
	}
	p.Signal(syscall.SIGTERM)
	if code := p.Exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := p.Log(); !strings.Contains(log, `"drain-idle":"1ms"`) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("the log:\n%s", log)
	}
	if code, _ := p.Page("/livez"); code != 0 {
		t.Errorf("who has ended answers %d", code)
	}
}
