package extension_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
)

// RT-23: an error of a handler is a response with status Failure, which holds nothing back, whatever the handler had said before.
func TestOnErr(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status hooksv1.ResponseStatus
		want   string
		retry  int32
	}{
		"error": {errors.New("no quota for team-a"), hooksv1.ResponseStatusFailure, "no quota for team-a", 0},
		"none":  {nil, hooksv1.ResponseStatusSuccess, "wait", 8},
	} {
		t.Run(name, func(t *testing.T) {
			x := newExtension(t, extension.OnErr("before-create", hooksv1.BeforeClusterCreate,
				func(_ context.Context, _ *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) error {
					extension.Hold(out, 7100*time.Millisecond, "wait")
					return tc.err
				}))
			out := extensiontest.Call[hooksv1.BeforeClusterCreateResponse](t, x, "before-create", &hooksv1.BeforeClusterCreateRequest{})
			if out.Status != tc.status || out.Message != tc.want || out.RetryAfterSeconds != tc.retry {
				t.Errorf("got %+v", out)
			}
		})
	}
}

// RT-23: the error of a handler is in its log too.
func TestOnErrLogs(t *testing.T) {
	var log bytes.Buffer
	x := newExtension(t, extension.OnErr("before-create", hooksv1.BeforeClusterCreate,
		func(context.Context, *hooksv1.BeforeClusterCreateRequest, *hooksv1.BeforeClusterCreateResponse) error {
			return errors.New("no quota")
		}))
	callCreate(t, x.Handler(slog.New(slog.NewTextHandler(&log, nil))), nil)
	if !strings.Contains(log.String(), `msg="the handler returned an error" hook=BeforeClusterCreate handler=before-create error="no quota"`) {
		t.Errorf("the log:\n%s", log.String())
	}
}

// callCreate calls the handler before-create.
func callCreate(t *testing.T, h http.Handler, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, group+"beforeclustercreate/before-create",
		strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`))
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w
}

// RT-23: Fail and Hold leave a response that says one thing.
func TestFailAndHold(t *testing.T) {
	out := &hooksv1.BeforeClusterCreateResponse{}
	for _, step := range []struct {
		name   string
		do     func()
		status hooksv1.ResponseStatus
		text   string
		retry  int32
	}{
		{"hold", func() { extension.Hold(out, time.Minute, "busy") }, hooksv1.ResponseStatusSuccess, "busy", 60},
		{"no error", func() { extension.Fail(out, nil) }, hooksv1.ResponseStatusSuccess, "busy", 60},
		{"fail", func() { extension.Fail(out, errors.New("broken")) }, hooksv1.ResponseStatusFailure, "broken", 0},
		{"hold at once", func() { extension.Hold(out, 0, "now") }, hooksv1.ResponseStatusSuccess, "now", 1},
		{"a part of a second", func() { extension.Hold(out, 1500*time.Millisecond, "soon") }, hooksv1.ResponseStatusSuccess, "soon", 2},
		{"too long", func() { extension.Hold(out, math.MaxInt64, "never") }, hooksv1.ResponseStatusSuccess, "never", math.MaxInt32},
	} {
		step.do()
		if out.Status != step.status || out.Message != step.text || out.RetryAfterSeconds != step.retry {
			t.Errorf("%s: got %+v", step.name, out)
		}
	}
}
