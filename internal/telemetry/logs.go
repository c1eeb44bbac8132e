package telemetry

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// CountLogs returns a handler that passes records on to next and counts those that
// next wants, by level.
func (m *Metrics) CountLogs(next slog.Handler) slog.Handler {
	return &countingHandler{Handler: next, logged: m.logged}
}

type countingHandler struct {
	slog.Handler
	logged map[string]prometheus.Counter
}

// Handle implements slog.Handler.
func (h *countingHandler) Handle(ctx context.Context, r slog.Record) error {
	countWord(h.logged, levelName(r.Level))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *countingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &countingHandler{h.Handler.WithAttrs(attrs), h.logged}
}

// WithGroup implements slog.Handler.
func (h *countingHandler) WithGroup(name string) slog.Handler {
	return &countingHandler{h.Handler.WithGroup(name), h.logged}
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}
