package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"

	"streamproxy/internal/config"
	"streamproxy/internal/telemetry"
)

// newLogger writes to w in the format that c asks for and counts what it writes. level
// is set to what c says and can be changed later. Nobody who logs waits for w; end
// writes what is left, and is called when all have stopped to log.
func newLogger(w io.Writer, c config.Config, m *telemetry.Metrics, level *slog.LevelVar) (log *slog.Logger, end func()) {
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level.Set(slog.LevelInfo) // Validate has refused every other word
	}
	text := c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(w)
	handler := func(w io.Writer) slog.Handler {
		opts := &slog.HandlerOptions{Level: level}
		if text {
			return slog.NewTextHandler(w, opts)
		}
		return slog.NewJSONHandler(w, opts)
	}
	straight := m.CountLogs(handler(w))
	q := newLogQueue(w, func(dropped int64) error { return tellDropped(straight, dropped) })
	return slog.New(m.CountLogs(handler(q))), q.close
}

// tellDropped logs how many lines were dropped. Unlike a logger it tells whether that could be
// written.
func tellDropped(h slog.Handler, lines int64) error {
	ctx := context.Background()
	if !h.Enabled(ctx, slog.LevelWarn) {
		return nil
	}
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines of the log were dropped, because it was not read or could not be written", 0)
	r.AddAttrs(slog.Int64("lines", lines))
	return h.Handle(ctx, r)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
