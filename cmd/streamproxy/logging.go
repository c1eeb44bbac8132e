package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
)

// newLogger writes to w in the format that c asks for and counts what it writes. level
// is set to what c says and can be changed later.
func newLogger(w io.Writer, c config.Config, m *telemetry.Metrics, level *slog.LevelVar) *slog.Logger {
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level.Set(slog.LevelInfo) // Validate has refused every other word
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
