// Package certs turns PEM files into TLS configurations that follow their files:
// whoever renews a certificate puts the new file in the old one's place, and the
// next handshake uses it.
//
// A file that cannot be used, because it is being written or is of another key,
// does not take a running process down: what was read last stays in force, and
// Source.Failed is told once. There are no goroutines.
package certs
