package fault_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestKindOf(t *testing.T) {
	gr := schema.GroupResource{Resource: "clusters"}
	cases := map[string]struct {
		reason string
		err    error
		want   fault.Kind
	}{
		"conflict":        {"another writer was first", apierrors.NewConflict(gr, "a", errors.New("x")), fault.Conflict},
		"exists":          {"a create lost a race with itself", apierrors.NewAlreadyExists(gr, "a"), fault.Conflict},
		"not found":       {"the object is gone", apierrors.NewNotFound(gr, "a"), fault.Gone},
		"bad request":     {"trying again cannot help", apierrors.NewBadRequest("x"), fault.Invalid},
		"network":         {"nobody listens", &net.OpError{Op: "dial", Err: errors.New("refused")}, fault.Unreachable},
		"deadline":        {"nobody answered in time", context.DeadlineExceeded, fault.Unreachable},
		"i/o timeout":     {"nobody answered in time", fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), fault.Unreachable},
		"handshake":       {"the server accepts connections and is too busy for more", requestError(t, http.Client{Transport: &http.Transport{TLSHandshakeTimeout: time.Nanosecond}}), fault.Unreachable},
		"response":        {"the deadline of a client is no deadline of a context", requestError(t, http.Client{Timeout: time.Nanosecond}), fault.Unreachable},
		"wrapped timeout": {"a transport may wrap the error", &url.Error{Op: "Get", Err: fmt.Errorf("trying: %w", requestError(t, http.Client{Timeout: time.Nanosecond}))}, fault.Unreachable},
		"locked file":     {"the error number has a timeout, and nothing is connected", fmt.Errorf("locking: %w", syscall.EAGAIN), fault.Transient},
		"busy":            {"the API server responds", apierrors.NewTimeoutError("request did not complete", 0), fault.Transient},
		"anything else":   {"nothing is known of it", errors.New("x"), fault.Transient},
		"wrapped fault":   {"wrapping keeps the kind", fmt.Errorf("reading: %w", fault.New(fault.Bug, "Panic", "x")), fault.Bug},
		"fault over kube": {"the outermost opinion wins", fault.New(fault.Invalid, "Bad", "x").From(apierrors.NewNotFound(gr, "a")), fault.Invalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fault.KindOf(tc.err); got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// requestError returns the error of a request to a server that accepts connections and never responds.
func requestError(t *testing.T, c http.Client) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	response, err := c.Get("https://" + l.Addr().String())
	if err == nil {
		_ = response.Body.Close()
		t.Fatal("the request succeeds")
	}
	return err
}

func TestFaultIsASentinel(t *testing.T) {
	sentinel := fault.New(fault.Unreachable, "NotConnected", "the workload cluster is not connected")
	err := fmt.Errorf("listing nodes: %w", sentinel.With("cluster", "a").From(errors.New("eof")))
	if !errors.Is(err, sentinel) {
		t.Error("a fault with details and a cause is still the same fault")
	}
	if got, want := fault.UserMessage(err), "the workload cluster is not connected"; got != want {
		t.Errorf("user message: got %q, want %q", got, want)
	}
	if len(sentinel.Details) != 0 || sentinel.Cause != nil {
		t.Error("With and From must not change the sentinel")
	}
}

func TestRetryAfter(t *testing.T) {
	busy := fault.New(fault.Unreachable, "Busy", "the workload cluster answers slowly")
	cases := map[string]struct {
		reason string
		err    error
		want   time.Duration
	}{
		"said":      {"wrapping keeps it", fmt.Errorf("calling: %w", busy.RetryIn(time.Minute)), time.Minute},
		"not said":  {"nothing is known", busy, 0},
		"no fault":  {"nothing is known", errors.New("x"), 0},
		"no error":  {"there is nothing to retry", nil, 0},
		"described": {"what is added keeps it", busy.RetryIn(time.Second).With("a", "b").From(errors.New("x")), time.Second},
	}
	for name, tc := range cases {
		if got := fault.RetryAfter(tc.err); got != tc.want {
			t.Errorf("%s: %s, but %s", name, got, tc.reason)
		}
	}
	if busy.RetryAfter != 0 {
		t.Error("RetryIn must not change the sentinel")
	}
}
