// Package clients runs real client libraries, each in its own language, through the shipped proxy
// against each server of the matrix. The programs lie in folders by language and print lines:
//
//	version V            of the library
//	ok NAME              a check passed; it becomes a subtest, as does the next
//	failed NAME # why
//	refused NAME # why   the library does not offer this with the server, directly connected or not
//	restart              Redis is to be restarted; a line comes back when it was
//
// They find the proxy in PROXY_HOST and PROXY_PORT, and the server itself, for what others do
// meanwhile, at REDIS_PORT. The command line tools and the Go libraries are checked from here. The
// build tag clients keeps them out of a plain test run: they need package registries the first time.
//
// matrix.go declares servers, clients and features. With WRITE_MATRIX=1 a run in which everything
// passed writes what it found to testdata/matrix.json and to docs/compatibility.md, also a run of a
// part; a plain test run fails when those two and the declaration do not agree.
package clients
