package components

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/plane/group"
)

// readyEvery is how often a starting API server is probed; readyWithin is how
// long it may take, a large database included.
const (
	readyEvery  = 50 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// AwaitReady waits for /readyz, not counting the checks named in exclude.
func AwaitReady(g *group.Group, c *rest.Config, exclude ...string) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.Context(), readyWithin)
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		request := client.Discovery().RESTClient().Get().AbsPath("/readyz")
		for _, check := range exclude {
			request = request.Param("exclude", check)
		}
		answer, err := request.DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if g.Context().Err() != nil {
				return errors.Join(g.Cause(), g.Context().Err())
			}
			return fmt.Errorf("kube-apiserver is not ready after %s: %w: %s", readyWithin, err, answer)
		}
	}
}
