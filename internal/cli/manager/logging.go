package manager

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// Values of --logging-format.
const (
	textFormat = "text"
	jsonFormat = "json"
)

// loggingFlags holds the logging flags, which have the names of Kubernetes components. options.bind adds them, and
// options.complete applies them (manager.go).
type loggingFlags struct {
	format    string
	verbosity int
}

func (l *loggingFlags) bind(f *pflag.FlagSet) {
	f.IntVarP(&l.verbosity, "v", "v", 2, "log verbosity, 0 to 10; more than 7 counts as 7, because higher levels log requests and responses with Secrets")
	f.StringVar(&l.format, "logging-format", textFormat, "log format: text or json")
}

// complete applies the flags to the manager's configuration.
func (l *loggingFlags) complete(e term.Env, cfg *manager.Config) error {
	if l.format != textFormat && l.format != jsonFormat {
		return fault.New(fault.Invalid, "InvalidFlag", "--logging-format: there is no format %q; use %s or %s", l.format, textFormat, jsonFormat)
	}
	level := &slog.LevelVar{}
	level.Set(slog.Level(-l.verbosity))
	cfg.Log, cfg.Endpoints.Verbosity = logger(e, l.format == jsonFormat, level), level
	return nil
}

// mostDetailed is the lowest level that is written. At V(8) and above client-go logs requests and responses including
// Secrets, which must not reach a log.
const mostDetailed = slog.Level(-7)

// cappedLevel is a level that is never below mostDetailed.
type cappedLevel struct{ slog.Leveler }

// Level implements slog.Leveler.
func (s cappedLevel) Level() slog.Level { return max(s.Leveler.Level(), mostDetailed) }

// logger returns a logger to standard error. With level -v it writes messages up to V(v). complete creates the logger
// of the manager command with it, and embeddedConfig the logger of `slipway up`.
func logger(e term.Env, asJSON bool, level slog.Leveler) logr.Logger {
	options := &slog.HandlerOptions{Level: cappedLevel{level}}
	var handler slog.Handler = slog.NewTextHandler(e.Err, options)
	if asJSON {
		handler = slog.NewJSONHandler(e.Err, options)
	}
	return logr.FromSlogHandler(lazyHandler{Handler: handler})
}

// lazyHandler is a handler that formats its attributes only when it writes a line. Each reconciliation has a logger
// with its own attributes, and a reconciliation without changes logs nothing.
type lazyHandler struct {
	slog.Handler
	common []slog.Attr
}

// WithAttrs implements slog.Handler.
func (l lazyHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lazyHandler{Handler: l.Handler, common: append(slices.Clip(l.common), attrs...)}
}

// WithGroup implements slog.Handler.
func (l lazyHandler) WithGroup(name string) slog.Handler {
	return lazyHandler{Handler: l.resolved().WithGroup(name)}
}

// detailedMessages lists prefixes of frequent and rarely useful library messages at startup.
var detailedMessages = []string{"Starting EventSource", "Starting Controller", "Starting workers", "Adding GroupVersion ", "Skipping API "}

// detailLevel is the level of these messages, that is -v 2.
const detailLevel = slog.Level(-2)

// Handle implements slog.Handler.
func (l lazyHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelInfo && !l.Enabled(ctx, detailLevel) && slices.ContainsFunc(detailedMessages, func(begin string) bool { return strings.HasPrefix(r.Message, begin) }) {
		return nil
	}
	return l.resolved().Handle(ctx, r)
}

func (l lazyHandler) resolved() slog.Handler {
	if len(l.common) == 0 {
		return l.Handler
	}
	return l.Handler.WithAttrs(l.common)
}
