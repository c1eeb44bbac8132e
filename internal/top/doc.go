// Package top shows what a running proxy does, from the pages that it publishes: the
// numbers of /metrics and /stats.json, and what became of them within an interval.
//
// The files, by noun:
//
//	source, series, reading   a page, the numbers on it, and all there is at one time
//	view, format              two readings as rows for people
//	screen, terminal          rows on a terminal that is drawn over, and its keys
//	top                       once, or until somebody has seen enough
//
// Goroutines: one that reads the terminal's keys, from the opening of the terminal to
// its end.
package top
