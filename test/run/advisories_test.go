package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestReachable(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.NotFound(w, r)
		}
	}))
	if err := reachable(t.Context(), s.URL+"/there"); err != nil {
		t.Error(err)
	}
	if reachable(t.Context(), s.URL+"/away") == nil {
		t.Error("a page that is not there counts as reachable")
	}
	s.Close()
	if reachable(t.Context(), s.URL+"/there") == nil {
		t.Error("nobody is there")
	}
}
