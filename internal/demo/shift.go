package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// messageEvery is the pause between two messages to a worker.
const messageEvery = 500 * time.Millisecond

// shiftTime is how long the workers are shown: for two passes of the direct one, so
// that its messages have met every part of a pass, or a few times the first part where
// that was made short.
func shiftTime(o Options) time.Duration { return min(2*directPass, 3*o.Duration) }

// shift is the second load: on each side a worker over many streams, and somebody who
// sends it messages.
type shift struct {
	stage  *stage
	desks  []*desk
	prefix string
}

// desk is one side's part of a shift.
type desk struct {
	side   *side
	ledger ledger
	worker *worker
	post   *talk // sends messages
}

func newShift(st *stage) *shift {
	s := &shift{stage: st, prefix: "streamproxy:demo:" + rand.Text()}
	for _, side := range []*side{st.direct, st.proxied} {
		s.desks = append(s.desks, &desk{side: side})
	}
	return s
}

// open connects everybody.
func (s *shift) open(ctx context.Context) error {
	for _, d := range s.desks {
		if err := d.open(ctx, s.prefix+":"+d.side.name); err != nil {
			return fmt.Errorf("demo: %s: %w", d.side.name, err)
		}
	}
	return nil
}

func (d *desk) open(ctx context.Context, prefix string) error {
	talks := make([]*talk, 3)
	for i := range talks {
		conn, err := d.side.dial(ctx)
		if err != nil {
			return err
		}
		talks[i] = newTalk(conn)
		if i == 0 {
			d.post = talks[0] // so that close finds it
		}
	}
	var err error
	d.worker, err = newWorker(talks[1], talks[2], prefix, &d.ledger)
	return err
}

// run lets everybody work until ctx ends or somebody fails.
func (s *shift) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, d := range s.desks {
		g.Go(func() error { return d.worker.run(ctx) })
		g.Go(func() error { return d.send(ctx, messageEvery*time.Duration(i)/time.Duration(len(s.desks))) })
	}
	return g.Wait()
}

// send sends messages, the streams taking turns, after a first pause that keeps the
// sides apart.
func (d *desk) send(ctx context.Context, first time.Duration) error {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for i := 0; ; i++ {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		timer.Reset(messageEvery)
		stream := d.worker.streams[i*37%workerStreams] // from all over
		if _, err := d.post.do("XADD", stream, "*", "n", strconv.Itoa(d.ledger.post())); err != nil {
			return err
		}
	}
}

// close deletes what was made and sends everybody home.
func (s *shift) close() error {
	var g errgroup.Group
	for _, d := range s.desks {
		if d.post == nil {
			continue
		}
		g.Go(func() error {
			defer d.post.conn.Close()
			if d.worker == nil {
				return nil
			}
			defer d.worker.reader.conn.Close()
			defer d.worker.acker.conn.Close()
			return d.worker.remove(d.post)
		})
	}
	return g.Wait()
}

// show is the second part of the demo.
func (s *shift) show(ctx context.Context, o Options) (err error) {
	fmt.Fprintf(o.Out, "\nNow a worker over %d streams on each side, of the kind that looks for what dead workers have left\n"+
		"before every read: stream by stream, in %d round trips each. A message every %v, for %v.\n\n",
		workerStreams, tripsPerStream, messageEvery, shiftTime(o).Round(time.Second))
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	if err := s.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	limited, cancel := context.WithTimeout(ctx, shiftTime(o))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.run(limited) }()
	if err := newScreen(o, s, shiftTime(o)).show(done); err != nil {
		return err
	}
	s.summarise(o.Out)
	return nil
}

// head, line and table implement view.
func (s *shift) head() string {
	cell := fmt.Sprintf("%9s %8s %10s %10s %10s", "messages", "waiting", "p50", "p95", "last pass")
	return fmt.Sprintf("direct %s | proxied %s", cell, cell)
}

func (s *shift) line(time.Duration) string {
	cells := make([]string, len(s.desks))
	for i, d := range s.desks {
		v := d.ledger.delays()
		cells[i] = fmt.Sprintf("%*s %9d %8d %10s %10s %10s", len(d.side.name), "", v.sent, v.waiting, duration(v.p50), duration(v.p95), duration(v.pass))
	}
	return strings.Join(cells, " | ")
}

func (s *shift) table(time.Duration) string {
	direct, proxied := s.desks[0].ledger.delays(), s.desks[1].ledger.delays()
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %12s %12s\n", "", "direct", "proxied")
	for _, r := range []struct {
		title string
		value func(delays) string
	}{
		{"messages sent", func(d delays) string { return strconv.Itoa(d.sent) }},
		{"not yet received", func(d delays) string { return strconv.Itoa(d.waiting) }},
		{"sent to received p50", func(d delays) string { return duration(d.p50) }},
		{"sent to received p95", func(d delays) string { return duration(d.p95) }},
		{"last pass over the streams", func(d delays) string { return duration(d.pass) }},
	} {
		fmt.Fprintf(&b, "%-28s %12s %12s\n", r.title, r.value(direct), r.value(proxied))
	}
	return b.String()
}

// summarise closes the second part.
func (s *shift) summarise(w io.Writer) {
	fmt.Fprintf(w, "The workers' messages; those not yet received count at their age.\n\n%s", s.table(0))
}

// duration prints a time in a unit that suits it, a dash for none.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "–"
	case d < 10*time.Second:
		return milliseconds(d)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
