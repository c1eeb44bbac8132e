package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
)

// newLogger writes to w in the format that c asks for and counts what it writes.
func newLogger(w io.Writer, c config.Config, m *telemetry.Metrics) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // Validate has refused every other word
	}
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewJSONHandler(w, opts)
	if c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(w) {
		h = slog.NewTextHandler(w, opts)
	}
	return slog.New(m.CountLogs(h))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
