package demo

import (
	"strings"
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	direct := figures{commands: 1000, asked: 1000, writes: 1000, perSecond: 500, p50: 28 * time.Millisecond, p95: 29 * time.Millisecond, conns: 50}
	proxied := figures{commands: 990, asked: 990, writes: 99, perSecond: 495, p50: 28500 * time.Microsecond, p95: 29 * time.Millisecond, conns: 4}
	var b strings.Builder
	summarise(&b, 2*time.Second, direct, proxied)
	const want = `Summary of 2.0 s. Every reply was the one its client waited for.

                                   direct      proxied
commands                             1000          990
commands/s                            500          495
latency p50                       28.0 ms      28.5 ms
latency p95                       29.0 ms      29.0 ms
upstream writes                      1000           99
commands per upstream write           1.0         10.0
upstream connections                   50            4

Per command, the server was written to 10.0 times as often directly as through the
proxy, over 4 connections instead of 50; the median latency differs by +0.5 ms.
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// A run without a command has nothing to compare, and nothing to divide by.
func TestSummariseNothing(t *testing.T) {
	var b strings.Builder
	summarise(&b, 0, figures{}, figures{})
	if text := b.String(); !strings.HasSuffix(text, "Too short to compare.\n") || strings.Contains(text, "NaN") {
		t.Errorf("got\n%s", text)
	}
}
