// Package streams tells the story of abandoned stream entries from outside: workers die, proxies
// die, servers die, and every entry arrives at somebody alive, once, in time. Servers and
// connections are real; a proxy runs in the test's process, or as the built binary where it has to
// be killed. The workers are written in raw RESP, in the forms that libraries use, so that a test
// sees every byte; the libraries themselves run from virtual environments in .cache.
//
// The build tag streams keeps all of it out of a plain test run.
package streams
