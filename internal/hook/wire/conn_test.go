package wire

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// RT-10: an answer whose end comes only because nobody waits any longer is not an answer.
func TestEndAfterTheTimeout(t *testing.T) {
	e, err := EndpointOf(runtimev1.ClientConfig{URL: "https://host"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		within context.Context
		want   string
	}{
		"in time":  {within: t.Context()},
		"too late": {within: expired(t), want: ReasonTimeout},
	} {
		_, err := c.read(tt.within, &http.Response{Body: io.NopCloser(strings.NewReader("  "))})
		if f := fault.As(err); (f != nil) != (tt.want != "") || f != nil && f.Reason != tt.want {
			t.Errorf("%s: want %q, got %v", name, tt.want, err)
		}
	}
}

func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	t.Cleanup(cancel)
	return ctx
}
