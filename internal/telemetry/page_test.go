package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// numbered is a page that tells how often it has been made, and takes so long.
type numbered struct {
	made  atomic.Int64
	takes time.Duration
}

func (n *numbered) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/x-number")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprint(w, n.made.Add(1))
	time.Sleep(n.takes)
}

// ask returns the page's body, in the form that accept names.
func ask(ctx context.Context, h http.Handler, accept string) (*httptest.ResponseRecorder, string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, w.Body.String()
}

// Who asks while a page is made gets the next one, with all who ask until it is begun.
func TestAPageIsMadeOnceForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &numbered{takes: 2 * time.Millisecond}
		p := newPage(n.serve)
		first, body := ask(t.Context(), p, "")
		if body != "1" || first.Code != http.StatusAccepted || first.Header().Get("Content-Type") != "text/x-number" || first.Header().Get("Content-Length") != "1" {
			t.Errorf("got %d %q, %v", first.Code, body, first.Header())
		}
		began := time.Now()
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				if _, body := ask(t.Context(), p, ""); body != "2" {
					t.Errorf("got %q", body)
				}
			})
		}
		asking.Wait()
		if took := time.Since(began); took > pageEvery {
			t.Errorf("they waited for %v", took)
		}
	})
}

// A scraper that comes less often never waits, and sees what is so at that moment.
func TestAScraperSeesPresentValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &state{}
		m := New(testBuild, testLabels)
		m.Observe(st.get)
		l := newPipeListener()
		s := m.Serve(l, testBuild, st.get, slog.New(slog.DiscardHandler))
		for i := range 5 {
			time.Sleep(time.Second)
			st.set(Snapshot{Clients: 10 + i})
			began := time.Now()
			if _, body := l.get(t, "/metrics"); !strings.Contains(body, fmt.Sprintf("\nstreamproxy_client_connections %d\n", 10+i)) {
				t.Error("an old value")
			}
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
		}
		s.Close()
	})
}

// However many ask without a pause, in however many forms, little time goes to the page, and nobody
// waits for long.
func TestAPageTakesAShareOfTheProcessor(t *testing.T) {
	for name, forms := range map[string]int{"one form": 1, "a form each": maxConns} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &numbered{takes: 2 * time.Millisecond}
				p := newPage(n.serve)
				const lasts = 20 * time.Second
				end := time.Now().Add(lasts)
				var asking sync.WaitGroup
				for i := range maxConns {
					asking.Go(func() {
						for time.Now().Before(end) {
							began := time.Now()
							ask(t.Context(), p, fmt.Sprint(i%forms))
							if took := time.Since(began); took > 2*time.Second {
								t.Errorf("one waited for %v", took)
							}
						}
					})
				}
				asking.Wait()
				if spent := time.Duration(n.made.Load()) * n.takes; spent > lasts/8 {
					t.Errorf("it took %v of %v", spent, lasts)
				}
				if len(p.copies) > maxConns {
					t.Errorf("%d copies are kept", len(p.copies))
				}
			})
		})
	}
}

// Who leaves while waiting is waited for no more.
func TestWhoLeavesMakesNoPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &numbered{}
		p := newPage(n.serve)
		ask(t.Context(), p, "")
		ctx, leave := context.WithCancel(t.Context())
		leave()
		ask(ctx, p, "")
		if _, body := ask(t.Context(), p, ""); body != "2" {
			t.Errorf("got %q", body)
		}
	})
}

// Profiles are made one at a time, with pauses, and another recording is refused.
func TestProfilesAreMadeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &numbered{takes: 50 * time.Millisecond}
		profile := newPace().profile(n.serve)
		began := time.Now()
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() { ask(t.Context(), profile, "") })
		}
		asking.Wait()
		if took := time.Since(began); took != 2*10*n.takes+n.takes {
			t.Errorf("three took %v", took)
		}
		record := newPace().record(n.serve)
		asking.Go(func() { ask(t.Context(), record, "") })
		synctest.Wait()
		if w, body := ask(t.Context(), record, ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("got %d %q", w.Code, body)
		}
		asking.Wait()
		if w, _ := ask(t.Context(), record, ""); w.Code != http.StatusAccepted {
			t.Errorf("got %d", w.Code)
		}
	})
}

// The pages of one connection keep a distance, and the first is answered at once.
func TestAnswersOnOneConnectionKeepADistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.DiscardHandler))
		client := http.Client{Transport: &http.Transport{DialContext: l.dial, MaxConnsPerHost: 1}}
		began := time.Now()
		for i := range 10 {
			r, err := client.Get("http://x/livez")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
			if took := time.Since(began); took != time.Duration(i)*answerEvery {
				t.Errorf("answer %d came after %v", i, took)
			}
		}
		client.CloseIdleConnections()
		s.Close()
	})
}

// Who comes in a burst of more than there are places is served, however many come behind.
func TestABurstIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.DiscardHandler))
		var asking sync.WaitGroup
		for range 4 * maxConns {
			asking.Go(func() {
				if code, _ := l.get(t, "/livez"); code != http.StatusOK {
					t.Errorf("got %d", code)
				}
			})
		}
		asking.Wait()
		s.Close()
	})
}
