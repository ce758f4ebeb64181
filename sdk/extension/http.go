package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// maxRequest is the maximum size of a request. The templates of a large topology have a few MiB.
const maxRequest = 64 << 20

// Log returns the logger of the call with the context ctx, with the hook, handler, object and trace as attributes. The
// same logger is available to libraries that use logr, such as klog and controller-runtime: logr.FromContext,
// klog.FromContext, log.FromContext. Outside of a call it is slog's default.
func Log(ctx context.Context) *slog.Logger {
	if l := logr.FromContextAsSlogLogger(ctx); l != nil {
		return l
	}
	return slog.Default()
}

// Handler serves the hooks, without TLS and health endpoints. log receives a line for every call; nil means slog's
// default. Programs use [Extension.Serve]; Handler is for tests and custom servers, which must limit the time for
// reading a request: [http.Server.ReadTimeout].
func (x *Extension) Handler(log *slog.Logger) http.Handler { return x.handler(Config{Log: log}) }

// handler is [Extension.Handler] with [Config.Propagate] and [Config.Quiet].
func (x *Extension) handler(cfg Config) http.Handler {
	log, propagate := cfg.Log, cfg.Propagate
	if log == nil {
		log = slog.Default()
	}
	answered := slog.LevelInfo
	if cfg.Quiet {
		answered = slog.LevelDebug
	}
	x.deprecated.Do(func() { x.warnDeprecated(log) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if propagate != nil {
			r = r.WithContext(propagate(r.Context(), r.Header))
		}
		x.serve(w, r, voice{log, answered})
	})
}

// warnDeprecated logs the handlers that serve a deprecated version of a hook.
func (x *Extension) warnDeprecated(log *slog.Logger) {
	for _, path := range x.order {
		if r := x.routes[path]; r.hook.Deprecation != nil {
			log.Warn("the handler serves a deprecated version of a hook", "handler", r.handler.Name, "hook", r.hook.ID.String(),
				"since", r.hook.Deprecation.Since.Minor, "advice", r.hook.Deprecation.Advice())
		}
	}
}

// voice is the logger, and the level for completed calls.
type voice struct {
	log      *slog.Logger
	answered slog.Level
}

func (x *Extension) serve(w http.ResponseWriter, r *http.Request, v voice) {
	rt, ok := x.routes[r.URL.Path]
	if !ok {
		http.Error(w, "no handler is served at "+r.URL.Path+"; the Discovery hook names those that are", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "hooks are called with POST", http.StatusMethodNotAllowed)
		return
	}
	began := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	trace, traced := traceIn(r.Header)
	log := v.log.With(said("hook", rt.hook.ID.Hook, "handler", rt.handler.Name, "object", recording.Object(body), "trace_id", trace.TraceID)...)
	if err != nil {
		x.refuse(w, refusal{rt, log, fmt.Errorf("reading the request: %w", err)})
		return
	}
	defer x.metrics.begin(rt)()
	ctx, cancel := context.WithTimeout(logr.NewContextWithSlogLogger(r.Context(), log), timeoutOf(rt, r.URL.Query()))
	defer cancel()
	if traced {
		ctx = context.WithValue(ctx, traceKey{}, trace)
	}
	answer, err := rt.call(ctx, body)
	if err != nil {
		x.refuse(w, refusal{rt, log, err})
		return
	}
	result := settle(rt, answer, log)
	x.metrics.done(rt, result, time.Since(began))
	log.With(said("result", result, "message", answer.response.GetMessage())...).
		Log(ctx, v.answered, "answered", "duration", time.Since(began).Round(time.Microsecond))
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer.response); err != nil {
		log.Warn("the response was not written", "error", err)
	}
}

// timeoutOf returns the timeout of a call: the timeout of the handler, or the one in the request if it is shorter.
func timeoutOf(rt route, query url.Values) time.Duration {
	d := rt.handler.timeout()
	if asked, err := time.ParseDuration(query.Get("timeout")); err == nil && asked > 0 {
		return min(d, asked)
	}
	return d
}

// refusal is a request that is rejected without calling a handler.
type refusal struct {
	route route
	log   *slog.Logger
	err   error
}

func (x *Extension) refuse(w http.ResponseWriter, r refusal) {
	code := http.StatusBadRequest
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(r.err, &tooLarge) {
		code = http.StatusRequestEntityTooLarge
	} else if errors.Is(r.err, os.ErrDeadlineExceeded) {
		code = http.StatusRequestTimeout
	}
	x.metrics.done(r.route, resultInvalid, 0)
	r.log.Warn("refused", "code", strconv.Itoa(code), "error", r.err)
	http.Error(w, r.err.Error(), code)
}

// settle converts the result of a handler to a valid response, and returns the result for metrics. The value of a panic
// is only logged, because callers display messages to users, and messages must be stable.
func settle(rt route, answer reply, log *slog.Logger) string {
	if answer.panicked != nil {
		log.Error("the handler panicked", "panic", fmt.Sprint(answer.panicked), "stack", string(answer.stack))
		fail(answer.response, fmt.Sprintf("handler %q panicked", rt.handler.Name))
		_ = complete(answer.response, rt.hook)
		return resultPanic
	}
	if err := complete(answer.response, rt.hook); err != nil {
		log.Error("the response is invalid", "error", err)
		fail(answer.response, fmt.Sprintf("handler %q answered wrongly: %v", rt.handler.Name, err))
	}
	return string(answer.response.GetStatus())
}

// said returns the key/value pairs with non-empty values.
func said(pairs ...string) []any {
	var out []any
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i], pairs[i+1])
		}
	}
	return out
}
