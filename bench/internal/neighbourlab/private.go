package neighbourlab

import (
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

// privateConnections are attacks by commands for which a client has a connection of its own.
func privateConnections() []Attack {
	channels := func(connection, _ int) []byte {
		return wide("SUBSCRIBE", 5000, func(i int) string { return numbered(numbered("c", connection)+".", i) })
	}
	return []Attack{
		{
			Name: "pings-subscribed", What: "10 connections SUBSCRIBE and pipeline 300,000 PINGs; anew after a second",
			Promise: "a connection of a client's own is its own cost",
			Roles: []Role{{
				Connections: 10, Lives: time.Second, Ends: Resets,
				Once: after(lines("HELLO 3", "SUBSCRIBE channel"), many(300_000, "PING")),
			}},
		},
		{
			Name: "monitor-and-reset", What: "50 connections MONITOR and RESET over and over",
			Promise: "a connection of a client's own is its own cost",
			Roles:   []Role{{Connections: 50, Repeat: lines("MONITOR", "RESET"), Await: true, Pause: time.Millisecond}},
		},
		{
			Name: "channels", What: "30 connections SUBSCRIBE to 5,000 channels and leave them, over and over",
			Promise: "a connection of a client's own is its own cost",
			Roles:   []Role{{Connections: 30, Repeat: after(channels, lines("UNSUBSCRIBE")), Await: true}},
		},
		{
			Name: "scripts", What: "50 connections run 20 scripts a write that nobody has run before",
			Promise: "scripts have connections of their own",
			Roles: []Role{{Connections: 50, Await: true, Repeat: func(_, turn int) []byte {
				var b []byte
				for i := range 20 {
					b = resp.AppendCommand(b, "EVAL", "return "+strconv.Itoa(20*turn+i), "0")
				}
				return b
			}}},
		},
		{
			Name: "kills-and-unblocks", What: "100 connections SUBSCRIBE, 100 block in BLPOP, and 10 kill the former and unblock the latter all the time",
			Promise: "commands about clients concern the clients that they name",
			Roles: []Role{
				{Connections: 100, Once: lines("SUBSCRIBE channel"), Lives: 100 * time.Millisecond, Ends: Resets},
				{Connections: 100, Once: lines("BLPOP nokey 0"), Lives: 200 * time.Millisecond, Ends: Resets},
				{Connections: 10, Await: true, Pause: time.Millisecond, Repeat: func(_, turn int) []byte {
					b := encode("CLIENT KILL TYPE pubsub")
					for i := range 20 {
						b = resp.AppendCommand(b, "CLIENT", "UNBLOCK", strconv.Itoa((20*turn+i)%5000))
					}
					return b
				}},
			},
		},
	}
}
