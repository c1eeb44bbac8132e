// Package redistest runs real Redis servers for tests and speaks to them in raw
// bytes, so that a test compares what is on the wire and not what a client
// library makes of it.
//
// A missing server fails the test: a suite that skips its proof proves nothing.
// ALLOW_SKIP=1 in the environment turns that into a skip; REDIS_SERVER names
// another binary (Valkey, a newer Redis) than the redis-server on PATH.
package redistest
