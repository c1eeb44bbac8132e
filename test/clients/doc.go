// Package clients runs real client libraries, each in its own language, through the shipped proxy
// against each server of the matrix. The programs lie in folders by language; each prints one line
// per check, "ok NAME" or "not ok NAME # why", which becomes a subtest; a line "restart" asks for a
// restart of Redis, after which a line comes back. The command line tools and the Go library are
// checked from here. The build tag clients keeps them out of a plain test run: they need package
// registries the first time.
//
// matrix.go declares servers, clients and features. With WRITE_MATRIX=1 a run in which everything
// passed writes what it found to testdata/matrix.json and to docs/compatibility.md; a plain test run
// fails when those two and the declaration do not agree.
package clients
