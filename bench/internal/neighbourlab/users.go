package neighbourlab

import (
	"strconv"
	"time"

	"streamproxy/internal/resp"
)

const crowd = 1500 // users of a crowd

// crowdsOfUsers are attacks by being somebody else.
func crowdsOfUsers() []Attack {
	return []Attack{
		{
			Name: "guesses", What: "200 connections guess a password each and are reset after 20 ms",
			Promise: "wrong passwords keep no right one waiting",
			Roles:   []Role{{Connections: 200, Once: lines("AUTH nobody guess"), Lives: 20 * time.Millisecond, Ends: Resets}},
		},
		{
			Name: "guesses-pipelined", What: "300 connections guess passwords, 20 a write",
			Promise: "wrong passwords keep no right one waiting",
			Roles:   []Role{{Connections: 300, Repeat: many(20, "AUTH nobody guess"), Await: true}},
		},
		{
			Name: "crowd-of-users", What: "1,500 users come at once, each to a database of 16, pop, read and are reset after 900 ms",
			Promise: "a crowd of users keeps none waiting who was there before",
			Prepare: same(func() []byte {
				var b []byte
				for i := range crowd {
					b = resp.AppendCommand(b, "ACL", "SETUSER", numbered("user", i), "on", numbered(">secret", i), "~*", "&*", "+@all")
				}
				return b
			}),
			Roles: []Role{{
				Connections: crowd, Lives: 900 * time.Millisecond, Ends: Resets,
				Once: func(connection, _ int) []byte {
					b := resp.AppendCommand(nil, "AUTH", numbered("user", connection%crowd), numbered("secret", connection%crowd))
					return append(b, encode("SELECT "+strconv.Itoa(connection%16), "BLPOP nokey 0.01", "GET a")...)
				},
			}},
		},
		{
			Name: "databases", What: "200 connections SELECT every database in turn and read there",
			Promise: "who moves waits, not who stays",
			Roles: []Role{{Connections: 200, Await: true, Repeat: func(connection, _ int) []byte {
				var b []byte
				for i := range 16 {
					b = append(b, encode("SELECT "+strconv.Itoa((connection+i)%16), "GET a")...)
				}
				return b
			}}},
		},
	}
}
