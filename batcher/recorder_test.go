package batcher

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a sink that keeps everything it is told, in the words of a script:
// bytes as they come, "?" for an unknown outcome, "!" for a command not sent.
type recorder struct {
	mu      sync.Mutex
	cond    sync.Cond
	got     strings.Builder
	ended   int // commands answered or failed
	flushes int
	open    int
	gone    bool // Fail with 0
	// pace, if set, is what Pace does.
	pace func(limit int64, stall time.Duration) bool
}

var _ Sink = (*recorder)(nil)

func newRecorder() *recorder {
	r := &recorder{}
	r.cond.L = &r.mu
	return r
}

func (r *recorder) note(text string, n int) {
	r.got.WriteString(text)
	r.ended += n
	r.cond.Broadcast()
}

func (r *recorder) Reply(b []byte, done, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = open
	r.note(string(b), done)
}

func (r *recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushes++
	r.cond.Broadcast()
}

func (r *recorder) Fail(n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n == 0 {
		r.gone = true
	}
	sign := "?"
	if errors.Is(err, ErrNotSent) {
		sign = "!"
	}
	r.note(strings.Repeat(sign, n), n)
}

func (r *recorder) Pace(limit int64, stall time.Duration) bool {
	if r.pace == nil {
		return true
	}
	return r.pace(limit, stall)
}

// wait blocks until ok, which is called with the lock held.
func (r *recorder) wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		late = true
		r.cond.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ok() && !late {
		r.cond.Wait()
	}
	if late {
		t.Fatalf("waited in vain for %s; got %.200q", what, r.got.String())
	}
}

// expect waits until n commands have ended and compares all that came.
func (r *recorder) expect(t *testing.T, n int, want string) {
	t.Helper()
	r.wait(t, want, func() bool { return r.ended >= n })
	if got := r.text(); got != want {
		t.Errorf("got %.300q, want %.300q", got, want)
	}
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}
