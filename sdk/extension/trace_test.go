package extension_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

// RT-23: a handler knows the trace of its call, passes it on, and has it in its log. What is no trace is none.
func TestTrace(t *testing.T) {
	cases := map[string]struct {
		reason, parent, state string
		sampled               bool
		want                  string // traceparent of a request of the handler; empty: no trace
	}{
		"sampled":      {"the caller records", "00-" + traceID + "-" + spanID + "-01", "a=1", true, "00-" + traceID + "-" + spanID + "-01"},
		"not sampled":  {"the caller does not", "00-" + traceID + "-" + spanID + "-00", "", false, "00-" + traceID + "-" + spanID + "-00"},
		"newer":        {"a later version has more", "cc-" + traceID + "-" + spanID + "-03-more", "", true, "00-" + traceID + "-" + spanID + "-03"},
		"more":         {"version 00 has no more", "00-" + traceID + "-" + spanID + "-01-more", "", false, ""},
		"version":      {"ff is no version", "ff-" + traceID + "-" + spanID + "-01", "", false, ""},
		"upper case":   {"hexadecimal is lower case", "00-" + strings.ToUpper(traceID) + "-" + spanID + "-01", "", false, ""},
		"zero trace":   {"zero is no trace", "00-00000000000000000000000000000000-" + spanID + "-01", "", false, ""},
		"zero span":    {"zero is no span", "00-" + traceID + "-0000000000000000-01", "", false, ""},
		"none":         {"there is no header", "", "", false, ""},
		"text":         {"a log line cannot be forged", "00-x\" trace_id=1", "", false, ""},
		"second lines": {"nor with a line of its own", "00-" + traceID + "-" + spanID + "-01\nlevel=ERROR", "", false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, found := http.Header{}, false
			x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
				var trace extension.Trace
				if trace, found = extension.TraceOf(ctx); found {
					trace.Inject(out)
					if trace.TraceID != traceID || trace.ParentID != spanID || trace.Sampled != tc.sampled {
						t.Errorf("got %+v", trace)
					}
				}
			}))
			var log bytes.Buffer
			callCreate(t, x.Handler(slog.New(slog.NewTextHandler(&log, nil))), http.Header{"Traceparent": {tc.parent}, "Tracestate": {tc.state}})
			if found != (tc.want != "") || out.Get("traceparent") != tc.want || out.Get("tracestate") != tc.state {
				t.Errorf("%s: got %v", tc.reason, out)
			}
			if got := strings.Contains(log.String(), " trace_id="+traceID+" "); got != found || strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log:\n%s", log.String())
			}
		})
	}
	if _, ok := extension.TraceOf(t.Context()); ok {
		t.Error("there is a trace outside of a call")
	}
}

// RT-23: a state that is longer than a header may be is left out, the trace is not.
func TestTraceStateTooLong(t *testing.T) {
	out := http.Header{}
	x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
		trace, _ := extension.TraceOf(ctx)
		trace.Inject(out)
	}))
	callCreate(t, x.Handler(quiet()), http.Header{
		"Traceparent": {"00-" + traceID + "-" + spanID + "-01"}, "Tracestate": {"a=" + strings.Repeat("x", 512)},
	})
	if out.Get("traceparent") == "" || out.Get("tracestate") != "" {
		t.Errorf("got %v", out)
	}
}

// RT-23: what logs with logr says hook, handler and object too; a logger that a handler puts into its context is the
// one that Log returns.
func TestLogr(t *testing.T) {
	var log bytes.Buffer
	x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
		l := logr.FromContextOrDiscard(ctx)
		l.Info("from a library")
		extension.Log(logr.NewContext(ctx, l.WithValues("step", 2))).Info("from the handler")
	}))
	callCreate(t, x.Handler(slog.New(slog.NewTextHandler(&log, nil))), nil)
	for _, want := range []string{
		`msg="from a library" hook=BeforeClusterCreate handler=before-create`,
		`msg="from the handler" hook=BeforeClusterCreate handler=before-create step=2`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, log.String())
		}
	}
	if extension.Log(t.Context()) != slog.Default() {
		t.Error("outside of a call the logger is not slog's default")
	}
}

// RT-25: the author learns of a deprecated hook in the log of the extension, once.
func TestDeprecatedHookIsSaid(t *testing.T) {
	all := hooks.ClusterAPI()
	for i := range all {
		if all[i].ID.Hook == "BeforeClusterCreate" {
			all[i].Deprecation = &hooks.Deprecation{Since: hooks.Release{Minor: "v1.14", Date: "2026-08-01"}}
		}
	}
	catalog, err := hooks.New(all)
	if err != nil {
		t.Fatal(err)
	}
	x, err := extension.NewFor(catalog, create(answerNothing),
		extension.On("other", hooksv1.AfterClusterUpgrade, func(context.Context, *hooksv1.AfterClusterUpgradeRequest, *hooksv1.AfterClusterUpgradeResponse) {}))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for range 2 {
		x.Handler(slog.New(slog.NewTextHandler(&log, nil)))
	}
	want := `level=WARN msg="the handler serves a deprecated version of a hook" handler=before-create ` +
		`hook="hooks.runtime.cluster.x-k8s.io/v1alpha1, Hook=BeforeClusterCreate" since=v1.14 advice="the hook goes without a replacement"` + "\n"
	if _, got, _ := strings.Cut(log.String(), " "); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
