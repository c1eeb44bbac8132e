package neighbourlab

import (
	"bytes"
	"time"
)

// hardCommands are attacks by what is sent.
func hardCommands() []Attack {
	return []Attack{
		{
			Name: "half-sent", What: "2,000 connections send 60 of 64 KB of a SET and stay",
			Promise: "commands under way are bounded in memory",
			Roles:   []Role{{Connections: 2000, Once: same(func() []byte { return set("half", 64_000)[:60_000] }), CutOff: true}},
		},
		{
			Name: "half-sent-reset", What: "300 connections send 70 KB of a SET of 1 MB and are reset after 20 ms",
			Promise: "commands under way are bounded in memory",
			Roles: []Role{{
				Connections: 300, Once: same(func() []byte { return set("half", 1_000_000)[:70_000] }), CutOff: true,
				Lives: 20 * time.Millisecond, Ends: Resets,
			}},
		},
		{
			Name: "million-arguments", What: "8 connections send a DEL of a million keys but for its end and are reset after 300 ms",
			Promise: "one command does not hold up others' while it is read",
			Roles: []Role{{
				Connections: 8, CutOff: true, Lives: 300 * time.Millisecond, Ends: Resets,
				Once: same(func() []byte {
					whole := wide("DEL", 1_000_000, func(int) string { return "k" })
					return whole[:len(whole)-100]
				}),
			}},
		},
		{
			Name: "pings", What: "20 connections pipeline 10,000 inline PINGs over and over",
			Promise: "who pipelines takes turns with who does not",
			Roles:   []Role{{Connections: 20, Repeat: same(func() []byte { return bytes.Repeat([]byte("PING\r\n"), 10_000) })}},
		},
		{
			Name: "transactions-of-pops", What: "100 connections send MULTI, 500 BLPOPs and EXEC in one piece of 17 KB over and over",
			Promise: "transactions in one piece take turns",
			Roles: []Role{{
				Connections: 100,
				Repeat:      after(after(lines("MULTI"), many(500, "BLPOP nokey 0")), lines("EXEC")),
			}},
		},
	}
}
