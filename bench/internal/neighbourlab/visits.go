package neighbourlab

import "time"

// visits are attacks by coming and going.
func visits() []Attack {
	return []Attack{
		{
			Name: "connections", What: "200 connections come, say nothing and are reset after 1 ms",
			Promise: "accepting leaves room for serving",
			Roles:   []Role{{Connections: 200, Deaf: true, Lives: time.Millisecond, Ends: Resets}},
		},
		{
			Name: "ask-and-leave", What: "20 connections send 50 GETs, and a FIN after 10 ms, and read nothing",
			Promise: "who has left is waited for by nobody",
			Roles:   []Role{{Connections: 20, Once: many(50, "GET small"), Deaf: true, Lives: 10 * time.Millisecond, Ends: Finishes}},
		},
		{
			Name: "pop-and-leave", What: "80 connections block in BLPOP and are reset after 20 ms: 4,000 a second",
			Promise: "who has left is waited for by nobody",
			Roles:   []Role{{Connections: 80, Once: lines("BLPOP nokey 0"), Deaf: true, Lives: 20 * time.Millisecond, Ends: Resets}},
		},
		{
			Name: "wait-and-leave", What: "80 connections SET, WAIT for replicas that there are not and are reset after 20 ms",
			Promise: "who has left is waited for by nobody",
			Roles:   []Role{{Connections: 80, Once: lines("SET a b", "WAIT 3 0"), Deaf: true, Lives: 20 * time.Millisecond, Ends: Resets}},
		},
		{
			Name: "watch-and-leave", What: "200 connections WATCH, begin a transaction and are reset after 20 ms",
			Promise: "transactions of those who left are ended, and in their own time",
			Roles: []Role{{
				Connections: 200, Once: lines("WATCH a", "MULTI", "SET a b"), Lives: 20 * time.Millisecond, Ends: Resets,
			}},
		},
		{
			Name: "pops-woken", What: "500 connections wait in BLPOP for what 5 push",
			Promise: "a push that wakes many delays nobody else",
			Roles: []Role{
				{Connections: 500, Repeat: lines("BLPOP queue 0"), Await: true},
				{Connections: 5, Repeat: many(10, "RPUSH queue a b c d e f g h i j"), Await: true, Pause: time.Millisecond},
			},
		},
	}
}
