package neighbourlab

import (
	"fmt"
	"strings"
	"time"

	"streamproxy/internal/resp"
)

// streamWork are attacks with streams and consumer groups.
func streamWork() []Attack {
	const hot = 20 // streams with entries that a consumer left behind
	return []Attack{
		{
			Name: "claim-and-leave", What: "50 connections claim up to 1,000 entries with XAUTOCLAIM (there are 200 of 5 KB in each of 20 streams), read nothing and are reset after 30 ms",
			Promise: "claims are not lost, and hold up nobody",
			Prepare: same(func() []byte {
				var b []byte
				value := strings.Repeat("v", 5000)
				for s := range hot {
					stream := numbered("hot", s)
					b = append(b, encode("XGROUP CREATE "+stream+" g 0 MKSTREAM")...)
					for range 200 {
						b = resp.AppendCommand(b, "XADD", stream, "*", "f", value)
					}
					b = append(b, encode("XREADGROUP GROUP g dead COUNT 1000 STREAMS "+stream+" >")...)
				}
				return b
			}),
			Roles: []Role{{
				Connections: 50, Deaf: true, Lives: 30 * time.Millisecond, Ends: Resets,
				Once: func(connection, _ int) []byte {
					return encode("PING", fmt.Sprintf("XAUTOCLAIM hot%d g c%d 500 0 COUNT 1000", connection%hot, connection))
				},
			}},
		},
		{
			Name: "ever-new-streams", What: "50 connections create ten streams, read and claim from them, every 50 ms, under ever new names",
			Promise: "what is known of streams is bounded",
			Roles: []Role{{Connections: 50, Await: true, Pause: 50 * time.Millisecond, Repeat: func(_, turn int) []byte {
				var b []byte
				for i := range 10 {
					n := 10*turn + i
					b = append(b, encode(
						fmt.Sprintf("XGROUP CREATE new%d g 0 MKSTREAM", n),
						fmt.Sprintf("XREADGROUP GROUP g c%d COUNT 1 STREAMS new%d >", n, n),
						fmt.Sprintf("XAUTOCLAIM new%d g c%d 2000 0 COUNT 100", n, n),
					)...)
				}
				return b
			}}},
		},
		{
			Name: "ever-new-consumers", What: "50 connections read 300 streams with one XREADGROUP every 50 ms, as ever new consumers",
			Promise: "what is known of streams is bounded",
			Prepare: same(func() []byte {
				var b []byte
				for i := range 300 {
					b = append(b, encode(fmt.Sprintf("XGROUP CREATE many%d g 0 MKSTREAM", i))...)
				}
				return b
			}),
			Roles: []Role{{Connections: 50, Await: true, Pause: 50 * time.Millisecond, Repeat: func(_, turn int) []byte {
				text := fmt.Sprintf("XREADGROUP GROUP g c%d COUNT 1 STREAMS", turn)
				for i := range 300 {
					text += numbered(" many", i)
				}
				return encode(text + strings.Repeat(" >", 300))
			}}},
		},
	}
}
