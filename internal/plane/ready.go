package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// readyEvery is how often a starting API server is probed; readyWithin is how
// long it may take, a large database included.
const (
	readyEvery  = 50 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// slowHooks are the parts of kube-apiserver's start that administrators need not
// wait for: the default roles, which are written after a pause of a second, and
// the default configuration of priority and fairness, which they are exempt from.
func slowHooks() []string {
	return []string{
		"poststarthook/rbac/bootstrap-roles",
		"poststarthook/priority-and-fairness-config-producer", "poststarthook/priority-and-fairness-config-consumer",
	}
}

// awaitReady waits for /readyz, not counting the checks named in exclude.
func awaitReady(g *group, c *rest.Config, exclude ...string) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.ctx, readyWithin)
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
			if g.ctx.Err() != nil {
				return errors.Join(g.cause(), g.ctx.Err())
			}
			return fmt.Errorf("kube-apiserver is not ready after %s: %w: %s", readyWithin, err, answer)
		}
	}
}
