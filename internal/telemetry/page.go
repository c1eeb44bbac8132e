package telemetry

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// pageEvery is how often a page is made at most. Who asks sooner waits for the next one, together
// with all who do: what is answered is never older than the question.
const pageEvery = 100 * time.Millisecond

// page is made once for all who ask for it in the same form at about the same time.
type page struct {
	make http.HandlerFunc
	pace *pace
	// copies are the last ones, by their form; they belong to who has the turn.
	copies map[string]*copyOf
}

func newPage(make http.HandlerFunc) *page {
	return &page{make: make, pace: newPace(), copies: map[string]*copyOf{}}
}

// form is all that can make an answer differ from another one.
func form(r *http.Request) string {
	return r.Header.Get("Accept") + "\n" + r.Header.Get("Accept-Encoding") + "\n" + r.URL.RawQuery
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := p.get(r)
	if c == nil {
		return // nobody is there any more
	}
	maps.Copy(w.Header(), c.header)
	w.Header().Set("Content-Length", strconv.Itoa(c.body.Len()))
	w.WriteHeader(c.code)
	_, _ = w.Write(c.body.Bytes()) // a reader that has gone need not be told
}

// get returns a copy that was begun after r was there; none if its client has gone.
func (p *page) get(r *http.Request) *copyOf {
	asked, ctx := time.Now(), r.Context()
	if p.pace.enter(ctx) != nil {
		return nil
	}
	defer p.pace.leave()
	last := p.copies[form(r)]
	switch {
	case last == nil:
	case last.begun.After(asked):
		return last
	case sleepUntil(ctx, last.begun.Add(pageEvery)) != nil:
		return nil
	}
	c := &copyOf{header: http.Header{}, code: http.StatusOK}
	if p.pace.do(ctx, func() { p.fill(c, r) }) != nil {
		return nil
	}
	return c
}

func (p *page) fill(c *copyOf, r *http.Request) {
	c.begun = time.Now()
	maps.DeleteFunc(p.copies, func(_ string, old *copyOf) bool { return c.begun.Sub(old.begun) >= pageEvery })
	p.make(c, r)
	p.copies[form(r)] = c
}

// copyOf is a page as it is answered.
type copyOf struct {
	begun  time.Time
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (c *copyOf) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *copyOf) WriteHeader(code int) { c.code = code }

// Write implements http.ResponseWriter.
func (c *copyOf) Write(b []byte) (int, error) { return c.body.Write(b) }
