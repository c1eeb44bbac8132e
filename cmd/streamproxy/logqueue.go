package main

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"
)

const (
	// logBacklog is how many lines wait for whoever reads the log: a hundred kilobytes or
	// two, and more than any burst of lines that are not at debug level.
	logBacklog = 1024
	// logPatience is how long the end of the process waits for the reader of its log.
	logPatience = time.Second
)

// logQueue writes a log from a goroutine of its own, because a pipe that is full and
// that nobody reads would hold whoever writes, and with it clients and the drain. Lines
// that find the queue full, or that cannot be written, are dropped and counted.
type logQueue struct {
	to      io.Writer
	report  func(dropped int64) error // writes a line about those to the same writer
	lines   chan []byte
	dropped atomic.Int64
	ending  chan struct{}
	ended   chan struct{}
}

// newLogQueue starts the goroutine, which close ends.
func newLogQueue(to io.Writer, report func(dropped int64) error) *logQueue {
	q := &logQueue{to: to, report: report, lines: make(chan []byte, logBacklog), ending: make(chan struct{}), ended: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer for one line. It never waits and never fails.
func (q *logQueue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *logQueue) run() {
	defer close(q.ended)
	for {
		select {
		case line := <-q.lines:
			q.put(line)
			continue
		default:
		}
		select {
		case line := <-q.lines:
			q.put(line)
		case <-q.ending:
			return
		}
	}
}

// put writes a line, and after the last of those that waited how many were dropped. If it
// cannot, there is nowhere to complain until it can again.
func (q *logQueue) put(line []byte) {
	if _, err := q.to.Write(line); err != nil {
		q.dropped.Add(1)
		return
	}
	if len(q.lines) > 0 {
		return
	}
	if n := q.dropped.Swap(0); n > 0 && q.report(n) != nil {
		q.dropped.Add(n)
	}
}

// close writes what waits, as far as it is taken within a second.
func (q *logQueue) close() {
	close(q.ending)
	select {
	case <-q.ended:
	case <-time.After(logPatience):
	}
}

// writeBriefly writes text, unless nobody takes it for a second.
func writeBriefly(to io.Writer, text string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.WriteString(to, text)
	}()
	select {
	case <-done:
	case <-time.After(logPatience):
	}
}
