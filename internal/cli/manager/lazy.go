package manager

import (
	"context"
	"log/slog"
	"slices"
)

// lazy is a handler that writes down what its lines have in common when it writes a line. Every pass over an object has a
// logger with attributes of its own, and one that finds nothing to do says nothing.
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

// detailed are lines of controller-runtime that are many at each start, and of little use.
var detailed = map[string]bool{"Starting EventSource": true, "Starting Controller": true, "Starting workers": true}

// detail is the level that they are written at, that of -v 2.
const detail = slog.Level(-2)

// Handle implements slog.Handler.
func (l lazy) Handle(ctx context.Context, r slog.Record) error {
	if detailed[r.Message] && !l.Enabled(ctx, detail) {
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
