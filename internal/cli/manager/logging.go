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

// logging holds the logging flags.
type logging struct {
	format    string
	verbosity int
}

func (l *logging) bind(f *pflag.FlagSet) {
	f.IntVarP(&l.verbosity, "v", "v", 2, "how much to log: 0 to 10, where more than 7 is 7: what comes after that is requests and responses, with the Secrets in them")
	f.StringVar(&l.format, "logging-format", textFormat, "format of the log: text or json")
}

// complete applies the flags to the manager's configuration.
func (l *logging) complete(e term.Env, cfg *manager.Config) error {
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

// logger returns a logger to standard error. With level -v it writes messages up to V(v).
func logger(e term.Env, asJSON bool, level slog.Leveler) logr.Logger {
	options := &slog.HandlerOptions{Level: cappedLevel{level}}
	var handler slog.Handler = slog.NewTextHandler(e.Err, options)
	if asJSON {
		handler = slog.NewJSONHandler(e.Err, options)
	}
	return logr.FromSlogHandler(lazy{Handler: handler})
}

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
