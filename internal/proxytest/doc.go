// Package proxytest runs the shipped binary for tests that look at it from outside, as its
// supervisor, its probes and its clients do. The binary is built from this module once for each
// test package.
package proxytest
