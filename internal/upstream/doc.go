// Package upstream reaches the Redis server behind the proxy: it parses the
// URL that names the server, dials and greets connections for the data path,
// and holds the control plane, one connection of a full client library for the
// few questions the proxy asks on its own behalf.
//
// The data path gets plain net.Conns on which every byte after the greeting is
// still unread. Nothing here starts a goroutine of its own; the control plane's
// library runs its reader and writer until Control.Close.
package upstream
