// Package clients runs real client libraries, each in its own language, through the shipped proxy
// against each server of the matrix. The programs lie in folders by language; each prints one line
// per check, "ok NAME" or "not ok NAME # why", which becomes a subtest. The build tag clients keeps
// them out of a plain test run: they need package registries the first time.
package clients
