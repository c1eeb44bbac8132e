// Package netlab stands between a client and a server as the network that a
// test, a benchmark or the demo wants: far away, or failing in a chosen way at
// a chosen moment.
//
// A Link forwards every connection to one address. What arrives is stamped and
// leaves Delay later, in order, and never because of what else travels: the
// link adds distance, not a bottleneck. A connect itself is not delayed, since
// the kernel answers it.
//
// Goroutines: one accepts, until Close or Refuse; each connection has one that
// reads and one that writes for each direction, and one that waits for those
// four. Cut, Reset, Close or the end of both directions end them; Close joins all.
package netlab
