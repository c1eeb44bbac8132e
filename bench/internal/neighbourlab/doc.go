// Package neighbourlab measures what well-behaved clients wait while others misbehave.
//
// The files, by noun:
//
//	attack       what a crowd of clients does wrong, declared as data
//	replies, commands, private, visits, users, streams   the attacks
//	payload      the bytes that attackers send
//	attacker     one connection of an attack, again and again
//	neighbour    who only wants its commands answered, in four ways
//	waits        how long the neighbours waited, by phase
//	client       a connection of a neighbour
//	child        the processes in which neighbours and attackers run, seen from inside
//	company      the same from outside
//	stand        one attack against one side
//	meter        what the proxy used meanwhile
//	report, table   what was found, as JSON and as Markdown
//
// Neighbours and attackers have a process each, so that neither's runtime makes the other wait, and
// the attackers' yields to everybody else's: on a machine of two cores a crowd would otherwise be
// felt for the processor time that it takes itself, which in life it takes elsewhere.
package neighbourlab
