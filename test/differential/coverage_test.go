package differential

import (
	"strings"
	"testing"
)

func TestCoverage(t *testing.T) {
	c := newCoverage([]spec{
		{name: []string{"get"}},
		{name: []string{"set"}, args: []argument{{name: "key"}, {kind: "oneof", args: []argument{{token: "NX"}, {token: "XX"}}}}},
		{name: []string{"client", "id"}}, {name: []string{"never"}, args: []argument{{token: "OPTION"}}},
	})
	command := func(args ...string) op { return op{0, 1, 1, do, args} }
	c.heard([]outcome{
		{pipe: []op{command("Get", "k"), command("SET", "k", "v", "nx"), command("CLIENT", "ID")},
			frames: []string{"$-1\r\n", ">2\r\n+push\r\n+x\r\n", "-ERR\r\n", ":1\r\n", "+token\r\n"}},
		{pipe: []op{command("SET", "k", "v", "XX")}, frames: []string{"+OK\r\n", "+OK\r\n", "+OK\r\n"}}, // not paired
		{pipe: []op{command("NOSUCH", "k"), {0, 1, 1, collect, nil}}, frames: []string{"-ERR\r\n"}},
	})
	want := `sent: 3 of 4 commands, 2 of 3 options
  commands never sent: never
  options never sent: 
accepted: 2 of 4 commands, 0 of 3 options
  commands never accepted: never set
  options never accepted: 
`
	if got := c.String(); got != want {
		t.Errorf("coverage is\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}
