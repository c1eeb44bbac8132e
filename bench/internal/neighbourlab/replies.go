package neighbourlab

import (
	"time"

	"streamproxy/internal/resp"
)

const large = 900_000 // bytes of a value that is large, and not yet a megabyte

// largeReplies are attacks by what the server is made to answer.
func largeReplies() []Attack {
	bigValue := same(func() []byte { return set("big", large) })
	return []Attack{
		{
			Name: "unread-values", What: "20 connections ask for 900 KB eight times, read nothing and are reset after 100 ms",
			Promise: "replies that nobody reads stand in nobody's way",
			Prepare: bigValue,
			Roles:   []Role{{Connections: 20, Once: many(8, "GET big"), Deaf: true, Lives: 100 * time.Millisecond, Ends: Resets}},
		},
		{
			Name: "unread-lists", What: "10 connections ask for a list of 50,000 elements ten times, read nothing and are reset after 100 ms",
			Promise: "replies that nobody reads stand in nobody's way",
			Prepare: same(func() []byte {
				args := []string{"RPUSH", "list"}
				for i := range 50_000 {
					args = append(args, numbered("element", i))
				}
				return resp.AppendCommand(nil, args...)
			}),
			Roles: []Role{{Connections: 10, Once: many(10, "LRANGE list 0 -1"), Deaf: true, Lives: 100 * time.Millisecond, Ends: Resets}},
		},
		{
			Name: "read-values", What: "50 connections read 900 KB over and over",
			Promise: "large replies take turns with small ones",
			Prepare: bigValue,
			Roles:   []Role{{Connections: 50, Repeat: lines("GET big"), Await: true}},
		},
		{
			Name: "unread-small", What: "500 connections ask for 1 KB 400 times a write and read nothing",
			Promise: "a client that is owed much is not read from",
			Prepare: same(func() []byte { return set("small", 1000) }),
			// Once: directly, the server keeps in memory whatever nobody reads.
			Roles: []Role{{Connections: 500, Once: many(400, "GET small"), Deaf: true}},
		},
	}
}
