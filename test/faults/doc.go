// Package faults breaks what the proxy stands on, again and again, under load of many kinds, and
// keeps ledgers of what clients were told and what the server did.
//
// The proxy is the shipped binary in a process of its own, so that its memory, descriptors and
// processor time are its own. Behind it is a real redis-server, with a link between them that fails
// as it is told (internal/netlab). A schedule drawn from a seed says which fault comes when; clients
// draw from the same seed, so that a run can be repeated as closely as time allows.
//
// Everything needs the build tag faults. Flags follow -args:
//
//	go test -tags faults ./test/faults                                    what CI runs
//	go test -tags faults ./test/faults -run TestLab -args -runs 50 -time 30s -seed 100 -record runs.jsonl
//	go test -tags faults ./test/faults -run TestSoak -args -time 10m
//
// Goroutines: one a client, ended by lab.finish; links and servers have their own. Faults are
// injected by the test's own goroutine, one after the other.
package faults
