// Package differential compares two equal servers, one spoken to directly, one through the proxy.
//
// The same bytes go to both, in the same order, and what comes back must be the same bytes. The
// few commands whose replies differ between any two servers are listed in normal.go, each with
// its reason.
//
//	pair, player       the two servers; playing a script on one side
//	script, format     what is played, and its form as text; ids, in place of those of connections
//	compare, normal    transcripts and what may differ in them; overheard, lines of MONITOR
//	tree               a reply as a tree, for comparing what has no order
//	grammar, values    random commands from the server's own COMMAND DOCS
//	custom             commands whose random form needs thought, or that are left out
//	generate           random scripts, of one connection's doings after the other's (episode,
//	                   waiting, listening, modes, conditions) or of several at a time (company)
//	shrink             the smallest script that still differs in the same way
//	coverage           which commands and options a run has sent, and which were accepted
//
// A plain test run plays the table and a few hundred random scripts. A long run:
//
//	go test ./test/differential -run TestSoak -timeout 0 -args -commands 1000000 -seed 7
//
// It says how far it is and, in the end, what it has not sent. REDIS_SERVER names another server
// to compare with. A failure prints its seed and the shrunk script, which -args -script FILE plays
// again.
package differential
