package manager

import (
	"context"
	"log/slog"
	"slices"
	"strings"
)

// lazy is a handler that formats its attributes only when it writes a line. Each reconciliation has a logger with its
// own attributes, and a reconciliation without changes logs nothing.
type lazy struct {
	slog.Handler
	common []slog.Attr
}

// WithAttrs implements slog.Handler.
func (l lazy) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lazy{Handler: l.Handler, common: append(slices.Clip(l.common), attrs...)}
}

// WithGroup implements slog.Handler.
func (l lazy) WithGroup(name string) slog.Handler { return lazy{Handler: l.now().WithGroup(name)} }

// detailed lists prefixes of frequent and rarely useful library messages at startup.
var detailed = []string{"Starting EventSource", "Starting Controller", "Starting workers", "Adding GroupVersion ", "Skipping API "}

// detail is the level of these messages, that is -v 2.
const detail = slog.Level(-2)

// Handle implements slog.Handler.
func (l lazy) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && !l.Enabled(ctx, detail) && slices.ContainsFunc(detailed, func(begin string) bool { return strings.HasPrefix(r.Message, begin) }) {
		return nil
	}
	return l.now().Handle(ctx, r)
}

func (l lazy) now() slog.Handler {
	if len(l.common) == 0 {
		return l.Handler
	}
	return l.Handler.WithAttrs(l.common)
}
