// Package demo shows on one machine what the proxy is for: the same load against a
// server far away, once from clients that each hold a connection of their own and
// once from as many clients behind the proxy, at the same time and side by side.
//
// The files, by noun:
//
//	demo           Run: what is shown, for how long, and the summary
//	stage          what both sides stand on: server, links, proxy
//	side, meter    one of the two sides, and what is counted of it
//	crowd, client  the first load: many clients of one command each at a time
//	shift, worker  the second: a worker over many streams on each side, who is sent messages
//	talk, ledger   a worker's connection, and when its messages were sent and arrived
//	screen, table  what is seen of it while it runs
//
// A stage knows no load and a load knows only sides, so that another load can be
// shown on the same stage.
//
// Nothing is simulated but the distance (internal/netlab) and, unless a server is
// named, the server (an embedded one in memory). All of it shares one process and
// its processors, so the figures compare the sides; they say nothing about how fast
// a proxy in a process of its own is.
//
// Goroutines: one per client and the screen's ticker, joined by Run; those of the
// proxy, its listener, the links and the embedded server, joined by the stage's
// close.
package demo
