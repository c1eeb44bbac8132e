package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// pages serves one page whose answers come one after the other; the last one stays.
func pages(t *testing.T, answers ...int) (url string) {
	t.Helper()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := min(int(asked.Add(1)), len(answers))
		w.WriteHeader(answers[n-1])
		_, _ = w.Write([]byte("because\n"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAwaitAsksUntilTheGoal(t *testing.T) {
	url := pages(t, 503, 503, 200)
	if heard, ok := await(t.Context(), url, goals["ready"].reached); !ok {
		t.Errorf("gave up after hearing %q", heard)
	}
}

// What was heard last is what helps; that time is up is known already.
func TestAwaitTellsWhatItHeard(t *testing.T) {
	for code, want := range map[int]string{503: "503 Service Unavailable: because", 200: "answers"} {
		url := pages(t, code)
		ctx, cancel := context.WithCancel(t.Context())
		heard, ok := await(ctx, url, func(error) bool {
			cancel() // time is up with the first answer
			return false
		})
		if ok || !strings.Contains(heard, want) {
			t.Errorf("%d: heard %q, %v", code, heard, ok)
		}
	}
}

// Only a machine that refuses says that the process has ended: one that cannot be found,
// or a process that is too busy to answer, does not.
func TestDrainedMeansEnded(t *testing.T) {
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	reached := goals["drained"].reached
	if err := ask(t.Context(), "http://"+addr+"/livez"); !reached(err) {
		t.Errorf("nobody is there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"answers": ask(t.Context(), pages(t, 200)), "refuses to serve": ask(t.Context(), pages(t, 503)),
		"is silent": ask(ctx, pages(t, 200)),
	} {
		if reached(err) {
			t.Errorf("a process that %s counts as ended: %v", what, err)
		}
	}
}
