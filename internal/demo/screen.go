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

// view is what a load shows of itself: a line a second with a head above, or a table
// that is drawn over itself. took is the time since the last of them.
type view interface {
	head() string
	line(took time.Duration) string
	table(took time.Duration) string
}

// screen shows a run while it lasts.
type screen struct {
	out      io.Writer
	terminal bool
	view     view
	began    time.Time
	total    time.Duration // how long the run shall take
	last     time.Time     // of what was shown
	drawn    int           // lines of the table now on the terminal
}

func newScreen(o Options, v view, total time.Duration) *screen {
	now := time.Now()
	return &screen{out: o.Out, terminal: o.Terminal, view: v, began: now, last: now, total: total}
}

// show goes on until done brings the run's error, which it returns.
func (s *screen) show(done <-chan error) error {
	every := line
	if s.terminal {
		every = redraw
	} else {
		fmt.Fprintf(s.out, "%6s | %s\n", "", s.view.head())
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
	elapsed := now.Sub(s.began).Round(redraw)
	if !s.terminal {
		fmt.Fprintf(s.out, "%6s | %s\n", elapsed, s.view.line(took))
		return
	}
	s.erase()
	text := fmt.Sprintf("%s of %s\n\n%s", elapsed, s.total.Round(redraw), s.view.table(took))
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
