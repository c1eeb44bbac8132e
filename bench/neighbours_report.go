package main

import (
	"bytes"
	"fmt"

	"streamproxy/bench/internal/neighbourlab"
)

const neighboursText = `What four well-behaved clients wait while others misbehave, at the server directly and through the
proxy: a ` + "`GET`" + ` every 2 ms, a transaction (` + "`WATCH`, `MULTI`, `SET`, `EXEC`" + `), an ` + "`RPUSH` and `BLPOP`" + `, and a
new connection with ` + "`AUTH` and `GET`" + `. They are there for a second, then comes the attack, and a second later
one looks whether it is over. Every attack has a server and proxies of its own; attackers have a process
with lower priority, as in life they have other machines. A wait counts for those too who would have come
meanwhile. The timer asks nobody anything and sleeps for a millisecond: what it takes longer, the machine
itself had everybody wait. The ratio is that of the ` + "`GET`" + `'s 99th percentiles; in brackets stand the rounds with the least
and the largest. Errors are those of all neighbours together.

` + "`go run ./bench neighbours --runs 5`" + ` measures all of it, ` + "`--only pop-and-leave,guesses`" + ` some attacks, whose
rows replace those of earlier runs; ` + "`--delay 28ms`" + ` puts a link of that round trip before the server, and
` + "`--time 10s`" + ` has an attack last longer.
`

// neighbourChapter adds the neighbours to the page. found is false if there are no results: then
// the chapter says what there is to be measured.
func neighbourChapter(page *bytes.Buffer, results string) (found bool, err error) {
	r, err := neighbourlab.Load(results)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(page, "\n## Neighbours\n\n%s\n", neighboursText)
	r.Markdown(page)
	return len(r.Runs) > 0, nil
}
