package telemetry

import (
	"bufio"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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
				if took := time.Since(began); took > grace {
					t.Errorf("served after %v", took)
				}
				s.Close()
			})
		})
	}
}

// Who has to go for one more: those whose last answer was given, those who have not asked yet, the longest first, and then who has been
// answered for longest.
func TestWhoGoesForOneMore(t *testing.T) { synctest.Test(t, whoGoesForOneMore) }

func whoGoesForOneMore(t *testing.T) {
	l := limit(newPipeListener())
	add := func() (c, out *limitedConn) {
		c = &limitedConn{l: l}
		out, wait := l.enter(c)
		if wait > 0 {
			time.Sleep(wait)
			out, wait = l.enter(c)
		}
		if wait > 0 {
			t.Fatal("nobody goes when the time is over")
		}
		return c, out
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
	l.finish(conns[1], false) // idle, since just now
	over := conns[maxConns-1]
	l.begin(over)
	l.finish(over, true)
	want := slices.Concat([]*limitedConn{over}, conns[2:maxConns-1], conns[1:2])
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
