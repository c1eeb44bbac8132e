package telemetry

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// TestConnectionsAreLimited fills a site with connections that say nothing: one more
// waits, and is served when they have said nothing for too long.
func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.DiscardHandler))
		for range maxConns {
			c, err := l.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			synctest.Wait()
		}
		began := time.Now()
		var served atomic.Bool
		var asking sync.WaitGroup
		asking.Go(func() {
			if code, _ := l.get(t, "/livez"); code == 200 {
				served.Store(true)
			}
		})
		synctest.Wait()
		if served.Load() {
			t.Errorf("served beside %d others", maxConns)
		}
		asking.Wait()
		if took := time.Since(began); !served.Load() || took > headerTimeout {
			t.Errorf("served %v after %v, want within %v", served.Load(), took, headerTimeout)
		}
		s.Close()
	})
}

// slowGatherer counts how often it is asked, and answers when told to.
type slowGatherer struct {
	asked atomic.Int64
	ready chan struct{}
}

func (g *slowGatherer) Gather() ([]*dto.MetricFamily, error) {
	g.asked.Add(1)
	<-g.ready
	return []*dto.MetricFamily{{}}, nil
}

// TestABusySiteKeepsNoConnections: who asks again and again on many connections does
// not hold them.
func TestABusySiteKeepsNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.DiscardHandler))
		kept := 0
		for range maxConns {
			c, err := l.dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() { _, _ = c.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")) }()
			r, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Close {
				kept++
			}
			synctest.Wait()
		}
		if kept == 0 || kept > maxConns/2 {
			t.Errorf("%d connections are kept, want 1 to %d", kept, maxConns/2)
		}
		s.Close()
	})
}

func TestScrapesAtOneTimeAreGatheredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowGatherer{ready: make(chan struct{})}
		s := shared{from: slow}
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				if families, err := s.Gather(); err != nil || len(families) != 1 {
					t.Errorf("got %d families, %v", len(families), err)
				}
			})
		}
		synctest.Wait()
		close(slow.ready)
		asking.Wait()
		if n := slow.asked.Load(); n != 1 {
			t.Errorf("gathered %d times, want once", n)
		}
	})
}

func TestALongProfileIsRefused(t *testing.T) {
	for _, seconds := range []string{"301", "1e9", "inf", "nan"} {
		w := httptest.NewRecorder()
		briefly(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: recorded", seconds) })(w,
			httptest.NewRequest("GET", "/debug/pprof/trace?seconds="+seconds, nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", seconds, w.Code)
		}
	}
}
