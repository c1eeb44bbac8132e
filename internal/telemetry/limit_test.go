package telemetry

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Whatever keeps the connections of a site, one more is served at once, and no more than the limit
// are open.
func TestSlowRequestsShutNobodyOut(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":                           "",
		"a request that never ends":         "GET /livez HTTP/1.1\r\nHost: x\r\nX: ",
		"an answer that is not read":        "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"an answer, and then another began": "GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /livez",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipeListener()
				s := New(testBuild, testLabels).Serve(l, testBuild, (&state{}).get, slog.New(slog.DiscardHandler))
				for range maxConns {
					c, err := l.dial(t.Context(), "", "")
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					go func() { _, _ = c.Write([]byte(request)) }()
					synctest.Wait()
				}
				began := time.Now()
				for range 3 * maxConns {
					if code, _ := l.get(t, "/livez"); code != 200 {
						t.Fatalf("not served: %d", code)
					}
				}
				if took := time.Since(began); took > 0 {
					t.Errorf("served after %v", took)
				}
				s.Close()
			})
		})
	}
}

// Who has to go for one more: those who have not asked yet, the longest first, and then who has been
// answered for longest.
func TestWhoGoesForOneMore(t *testing.T) {
	l := limit(newPipeListener())
	add := func() (c, out *limitedConn) {
		c = &limitedConn{l: l}
		return c, l.enter(c)
	}
	var conns []*limitedConn
	for range maxConns {
		c, out := add()
		if out != nil {
			t.Fatal("one has to go before the site is full")
		}
		conns = append(conns, c)
	}
	l.begin(conns[0])
	l.begin(conns[1])
	l.finish(conns[1]) // idle, since just now
	want := slices.Concat(conns[2:], conns[1:2])
	for i, c := range want {
		next, out := add()
		if out != c {
			t.Fatalf("number %d is not the one that goes", i)
		}
		l.begin(next)
	}
	if _, out := add(); out != conns[0] {
		t.Error("of those that are answered not the longest goes")
	}
	if len(l.conns) != maxConns {
		t.Errorf("%d are open", len(l.conns))
	}
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
