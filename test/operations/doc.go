// Package operations holds the shipped binary to docs/operations.md: drains under load in both kinds of
// pod, restarts and hangs of the server under many clients, probes, exit codes, fleets. The build tag
// operations keeps these tests out of a plain run. CASES_LONG=1 runs them at full size.
package operations
