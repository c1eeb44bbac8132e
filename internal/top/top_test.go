package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// publish serves a page; every question gets the next of the texts, and then the last again. An
// empty text is an error.
func publish(t *testing.T, texts ...string) Source {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := texts[min(int(asked.Add(1)), len(texts))-1]
		if text == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return Source{URL: s.URL, Client: s.Client()}
}

func TestOnce(t *testing.T) {
	o := Options{Metrics: publish(t, quiet, busy), Stats: publish(t, `{"version":"v1","upstream_up":true,"clients":7}`), Every: MinEvery}
	var out bytes.Buffer
	if err := o.Once(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"serving  up 0 us  v1\n", "7 connected", "6 commands each", "flushes   delay 75 %  idle 25 %\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("it is not plain: %q", out.String())
	}
}

// Either page will do; with none there is nothing to show.
func TestOnePageIsEnough(t *testing.T) {
	for name, o := range map[string]Options{
		"no stats":        {Metrics: publish(t, busy), Every: MinEvery},
		"broken stats":    {Metrics: publish(t, busy), Stats: publish(t, ""), Every: MinEvery},
		"no metrics":      {Stats: publish(t, `{"clients":201}`), Every: MinEvery},
		"failing metrics": {Metrics: publish(t, ""), Stats: publish(t, `{"clients":201}`), Every: MinEvery},
	} {
		var out bytes.Buffer
		if err := o.Once(t.Context(), &out); err != nil || !strings.Contains(out.String(), "201 connected") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	o := Options{Every: MinEvery}
	if err := o.Once(t.Context(), new(bytes.Buffer)); !errors.Is(err, errNobody) {
		t.Errorf("nobody is asked: %v", err)
	}
	o = Options{Metrics: publish(t, ""), Stats: publish(t, ""), Every: MinEvery}
	if err := o.Once(t.Context(), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("nobody answers: %v", err)
	}
}

// What stands at the default address of administration may be another proxy.
func TestStatsOfAnotherProcessAreLeftOut(t *testing.T) {
	began := float64(time.Now().Add(-time.Hour).Unix())
	metrics := busy + fmt.Sprintf("\nprocess_start_time_seconds %v\n", began)
	for uptime, same := range map[float64]bool{3600: true, 3599: true, 3500: false, 3700: false} {
		o := Options{Metrics: publish(t, metrics), Stats: publish(t, fmt.Sprintf(`{"clients":7,"uptime_seconds":%v}`, uptime)), Every: MinEvery}
		r, err := o.read(t.Context())
		if err != nil || r.metrics == nil || (r.stats != nil) != same {
			t.Errorf("up for %v s: stats %v, %v; want them: %v", uptime, r.stats, err, same)
		}
	}
}

// endingAfter ends a context with the nth write.
type endingAfter struct {
	text bytes.Buffer
	n    int
	end  context.CancelFunc
}

func (w *endingAfter) Write(b []byte) (int, error) {
	if w.n--; w.n == 0 {
		w.end()
	}
	return w.text.Write(b)
}

func TestLinesGoOnUntilTheEnd(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	out := &endingAfter{n: 4, end: end} // a view and the blank line behind it are two
	o := Options{Metrics: publish(t, busy), Every: MinEvery}
	if err := o.Lines(ctx, out); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out.text.String(), "state "); n != 2 {
		t.Errorf("%d views:\n%s", n, out.text.String())
	}
}
