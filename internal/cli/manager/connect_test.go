package manager

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/slipwayhq/slipway/internal/fault"
)

// A manager whose API server is lost while it starts waits for it. Other errors, and the end of one that has started, end it.
func TestUntilReached(t *testing.T) {
	lost := fmt.Errorf("preparing webhooks: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	wrong := fault.New(fault.Invalid, "PortTaken", "port 9443 is taken")
	for name, test := range map[string]struct {
		starts []error
		want   error
	}{
		"lost twice":      {[]error{lost, lost, managerResult{nil}}, nil},
		"another error":   {[]error{lost, wrong}, wrong},
		"lost at the end": {[]error{managerResult{lost}}, lost},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, n := time.Now(), 0
			err := retryUntilReachable(t.Context(), logr.Discard(), func() error {
				n++
				return test.starts[n-1]
			})
			if !errors.Is(err, test.want) || n != len(test.starts) || n == 3 && time.Since(began) != 3*time.Second {
				t.Errorf("%s: %d starts in %s, %v", name, n, time.Since(began), err)
			}
		})
	}
}
