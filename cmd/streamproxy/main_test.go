package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"streamproxy/internal/config"
	"streamproxy/internal/upstream"
)

func TestMain(m *testing.M) {
	// The race detector makes each process wait a second at its end; ours are many.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	testscript.Main(m, map[string]func(){"streamproxy": main})
}

// TestScripts runs the command line as a user would: testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			for _, name := range []string{"TELEMETRY", "NOBODY"} {
				addr, err := freeAddr()
				if err != nil {
					return err
				}
				e.Setenv(name, addr)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "awaitok": awaitOK,
		},
	})
}

// freeAddr returns a loopback address at which nobody listens.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// exits is the script command "exits CODE ARG...": streamproxy must exit with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: exits CODE ARG...")
	}
	err := ts.Exec("streamproxy", args[1:]...)
	code := 0
	var ee interface{ ExitCode() int }
	if errors.As(err, &ee) {
		code = ee.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// awaitOK is the script command "awaitok URL": wait until URL answers 200.
func awaitOK(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: awaitok URL")
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := ask(context.Background(), args[0])
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{config.Faults{{Name: "--x"}}, 2},
		{fmt.Errorf("wrapped: %w", config.Faults{{Name: "--x"}}), 2},
		{fmt.Errorf("wrapped: %w", upstream.ErrNotYetSupported), 2},
		{errUnanswered, 3},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestPageURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9380": "http://127.0.0.1:9380/livez",
		":9380":          "http://127.0.0.1:9380/livez",
		"0.0.0.0:1":      "http://127.0.0.1:1/livez",
		"[::]:1":         "http://[::1]:1/livez",
		"localhost:1":    "http://localhost:1/livez",
		"off":            "",
		"9380":           "",
	} {
		got, err := pageURL(listen, "/livez")
		if got != want || (err == nil) != (want != "") {
			t.Errorf("pageURL(%q) = %q, %v; want %q", listen, got, err, want)
		}
	}
}

// The generated pages in docs/ must be those of this program (make docs).
func TestDocsAreCurrent(t *testing.T) {
	for name, want := range docs() {
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what the program generates: run make docs", name)
		}
		if strings.Contains(string(want), "\t") {
			t.Errorf("docs/%s has a tab", name)
		}
	}
}
