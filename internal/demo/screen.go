package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// How often the screen changes.
const (
	redraw = 500 * time.Millisecond
	line   = time.Second
)

// screen shows a run while it lasts.
type screen struct {
	out      io.Writer
	terminal bool
	stage    *stage
	began    time.Time
	total    time.Duration // how long the run shall take
	last     time.Time     // of what was shown
	drawn    int           // lines of the table now on the terminal
}

func newScreen(o Options, st *stage, began time.Time) *screen {
	return &screen{out: o.Out, terminal: o.Terminal, stage: st, began: began, last: began, total: o.Duration}
}

// show goes on until done brings the run's error, which it returns.
func (s *screen) show(done <-chan error) error {
	every := line
	if s.terminal {
		every = redraw
	} else {
		fmt.Fprintf(s.out, "%6s | %s | %s\n", "", head("direct"), head("proxied"))
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.update(now)
		case err := <-done:
			s.erase()
			if !s.terminal {
				fmt.Fprintln(s.out)
			}
			return err
		}
	}
}

// update shows what happened since the last update.
func (s *screen) update(now time.Time) {
	took := now.Sub(s.last)
	s.last = now
	direct, proxied := s.stage.direct.recent(took), s.stage.proxied.recent(took)
	elapsed := now.Sub(s.began).Round(redraw)
	if !s.terminal {
		fmt.Fprintf(s.out, "%6s | %s | %s\n", elapsed, row(direct), row(proxied))
		return
	}
	s.erase()
	text := fmt.Sprintf("%s of %s\n\n%s", elapsed, s.total, table(direct, proxied, liveRows))
	_, _ = io.WriteString(s.out, text) // a terminal that is gone takes the process with it
	s.drawn = strings.Count(text, "\n")
}

// erase removes the table, so that the next text begins where it began.
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}
