// Package streamlab rebuilds the experiment of taskiq's issue 699: a real redis-server, a link that
// delays, and real taskiq-redis workers, with or without streamproxy between worker and link.
//
// The files, by noun:
//
//	pair       one version of taskiq-redis with one of redis-py, installed on demand
//	worker     a worker process, and what it tells (worker.py)
//	stand      a server, its link and the proxies before it
//	publisher  who sends messages, from the far side of the link like everybody
//	commands   what the server was asked, from INFO commandstats
//	row, burst, cold, fleet, recovery   the experiments
//	report, picture                     what they found, as JSON, Markdown and SVG
//
// Every side has a stand of its own and all of them run at the same time, so that whatever else
// the machine does meets them all; their messages are sent in turn, so that they do not meet each
// other.
package streamlab
