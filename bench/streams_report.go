package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"streamproxy/bench/internal/streamlab"
)

const streamsText = `The experiment of taskiq's issue 699 with the real packages: a worker reads many streams through
RedisStreamBroker over a link of 14 ms each way (xread_block 5000, xread_count 8,
unacknowledged_batch_size 5, idle_timeout 1,800,000, lock timeout 60 s), somebody publishes at the same
distance, and the time from publishing a message to listen() yielding it is taken. *direct* is the
package as it is; *patched* is our own version of the loop that the issue proposes (reads in one task, a
scan under a lease every 30 s in another), direct; *streamproxy* is the package as it is, with the proxy
in its default configuration between worker and link. Every side has a server of its own and all of them
run at the same time, their messages in turn; *reference* is a direct worker over one stream beside them,
and latencies are held against it rather than against the row of one stream: with busy neighbours on the
same two processors everybody, the reference too, is up to a millisecond slower than in that row.
Commands are counted by INFO commandstats, publisher included, over 2.5 intervals of 30 s that begin
after the first pass and the first scan, so that two more scans fall into the span on either side.

redis-py 8 gives up on a read that lasts as long as its socket timeout of 5 s, direct or not, which is
the experiment's xread_block: random gaps are cut at 4 s, and where queues are idle for long (fleet,
recovery) xread_block is the package's default of 2000.

Pairs: 1.2.2+7 is taskiq-redis 1.2.2 with redis-py 7, and so on. 1.2.4 asks for redis-py 8 and is run
with 7 as well because that speaks RESP2.
`

// streamChapter adds the streams to the page and their pictures to the folder. found is false if
// there are no results.
func streamChapter(page *bytes.Buffer, results, pictures string) (found bool, err error) {
	r, err := streamlab.Load(results)
	if err != nil || len(r.Measured) == 0 {
		return false, err
	}
	fmt.Fprintf(page, "\n## Stream workers\n\n%s\n", streamsText)
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return false, err
	}
	for _, pair := range streamlab.PairNames {
		if r.Find(pair, proxied, 1, streamlab.Steady) == nil {
			continue
		}
		file := "streams-" + strings.ReplaceAll(pair, "+", "-redis-py-") + ".svg"
		if err := os.WriteFile(filepath.Join(pictures, file), r.Picture(pair), 0o644); err != nil {
			return false, err
		}
		fmt.Fprintf(page, "![Publish to yield, %s](pictures/%s)\n\n", pair, file)
	}
	r.Markdown(page)
	fmt.Fprintf(page, "\n### Goals of the streams\n")
	writeVerdicts(page, judgeStreams(r))
	return true, nil
}
