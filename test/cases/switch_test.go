//go:build cases

package cases

import (
	"strconv"
	"strings"
	"testing"

	"streamproxy/internal/netlab"
	"streamproxy/internal/redistest"
)

// behindOneAddress are two servers and a link that leads to the first, through which a proxy
// reaches them. The ids of the server's connections that will be blocked are ahead of the other's.
func behindOneAddress(t *testing.T, ahead int) (servers [2]*redistest.Server, watch [2]*client, link *netlab.Link, f *front) {
	t.Helper()
	for i := range servers {
		servers[i] = redistest.Start(t)
		watch[i] = connect(t, servers[i].Addr())
	}
	for behind := idOf(watch[1-ahead]); ; {
		c := connect(t, servers[ahead].Addr())
		id := idOf(c)
		_ = c.Close()
		if id > behind+1000 { // Valkey spends 400 ids on a COMMAND
			break
		}
	}
	link = startLink(t, servers[0].Addr())
	f = startProxy(t, link.Addr())
	awaitSpares(t, f)
	eventually(t, "the control connections are there", func() bool { return len(proxysAt(watch[0], ":control")) == 2 })
	return servers, watch, link, f
}

// idOf is the server's id of a client's connection.
func idOf(c *client) int {
	c.t.Helper()
	id, err := strconv.Atoi(number(c.t, c.ask("CLIENT", "ID")))
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// proxysAt lists the ids of a watched server's connections from proxies, of a kind (":lane"), or running a
// command ("cmd=blpop").
func proxysAt(watch *client, what string) (ids []string) {
	watch.t.Helper()
	for line := range strings.Lines(watch.ask("CLIENT", "LIST")) {
		if strings.Contains(line, " name=streamproxy:") && strings.Contains(line, what+" ") {
			_, id, _ := strings.Cut(line, "id=") // the first line stands behind its length
			id, _, _ = strings.Cut(id, " ")
			ids = append(ids, id)
		}
	}
	return ids
}

// blockedAs is a client that blocks at a server over a connection of a given id.
func blockedAs(t *testing.T, s *redistest.Server, watch *client, id string) *client {
	t.Helper()
	want, err := strconv.Atoi(id)
	if err != nil {
		t.Fatal(err)
	}
	for {
		c := connect(t, s.Addr())
		got := idOf(c)
		if got > want {
			t.Fatalf("id %d, want %d", got, want)
		}
		if got == want {
			c.sends(redistest.Command("BLPOP", "k", "0"))
			blockedClients(t, watch, "1")
			return c
		}
		_ = c.Close()
	}
}

// A command blocks at a server behind whose address another has taken over meanwhile. Whoever
// calls it back does not hit the connection that has the same id there.
func TestCallBackAfterASwitch(t *testing.T) {
	for _, by := range []string{"its client leaves", "another client"} {
		t.Run(by, func(t *testing.T) {
			servers, watch, link, f := behindOneAddress(t, 0)
			c, other := f.client(), f.client()
			id := number(t, c.ask("CLIENT", "ID"))
			c.sends(redistest.Command("BLPOP", "none", "0"))
			blockedClients(t, watch[0], "1")
			blocked := proxysAt(watch[0], "cmd=blpop")[0]
			link.SetUpstream(servers[1].Addr())
			for _, control := range proxysAt(watch[0], ":control") {
				watch[0].gets(":1\r\n", "CLIENT", "KILL", "ID", control)
			}
			victim := blockedAs(t, servers[1], watch[1], blocked)
			if by == "another client" {
				other.gets(":0\r\n", "CLIENT", "UNBLOCK", id)
			} else {
				_ = c.Close()
				blockedClients(t, watch[0], "0") // its connection has ended: nothing else is left to do
			}
			blockedClients(t, watch[1], "1")
			watch[1].gets(":1\r\n", "RPUSH", "k", "v")
			victim.replies("*2\r\n" + bulk("k") + bulk("v"))
		})
	}
}

// The other way round: what hangs at the server before is the control connection. The command that
// blocks at the present one is called back all the same, and nobody at the other.
func TestCallBackBesideAnOldControl(t *testing.T) {
	for _, by := range []string{"its client leaves", "another client"} {
		t.Run(by, func(t *testing.T) {
			servers, watch, link, f := behindOneAddress(t, 1)
			link.SetUpstream(servers[1].Addr())
			eventually(t, "nothing but the control connections is left at the one before", func() bool {
				rest := append(proxysAt(watch[0], ":lane"), proxysAt(watch[0], ":private")...)
				for _, id := range rest {
					watch[0].ask("CLIENT", "KILL", "ID", id) // unless it has ended by itself
				}
				return len(rest) == 0 && f.Stats().PrivateIdle >= 2
			})
			c, other := f.client(), f.client()
			id := number(t, c.ask("CLIENT", "ID"))
			c.sends(redistest.Command("BLPOP", "none", "0"))
			blockedClients(t, watch[1], "1")
			victim := blockedAs(t, servers[0], watch[0], proxysAt(watch[1], "cmd=blpop")[0])
			if by == "another client" {
				other.gets(":1\r\n", "CLIENT", "UNBLOCK", id)
				c.replies("*-1\r\n")
			} else {
				_ = c.Close()
				blockedClients(t, watch[1], "0")
			}
			watch[0].gets(":1\r\n", "RPUSH", "k", "v")
			victim.replies("*2\r\n" + bulk("k") + bulk("v"))
		})
	}
}
