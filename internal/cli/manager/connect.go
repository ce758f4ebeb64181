package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// minRetryDelay is the delay before a start is retried after the connection to the API server was lost. It doubles up
// to maxRetryDelay.
const minRetryDelay, maxRetryDelay = time.Second, 30 * time.Second

// managerResult is the result of a manager that had started its controllers; its error may be nil. The function start
// of [retryUntilReachable] returns it, and it ends the retries.
type managerResult struct{ error }

// checkReachable fails if the API server is unreachable. The manager command calls it once before it starts the
// controllers; at this time the address is probably wrong, so it does not retry.
func checkReachable(access *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(access)
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	if _, err := client.ServerVersion(); err != nil {
		return fmt.Errorf("reading the version of the management cluster: %w", err)
	}
	return nil
}

// retryUntilReachable starts the manager. options.run calls it after checkReachable (manager.go). If the API server was
// reachable but the connection is lost during the start, it retries, because the API server may be restarting or its
// host may be busy.
func retryUntilReachable(ctx context.Context, log logr.Logger, start func() error) error {
	for d := minRetryDelay; ; d = min(2*d, maxRetryDelay) {
		err := start()
		if done := (managerResult{}); errors.As(err, &done) {
			return done.error
		}
		if err == nil || ctx.Err() != nil || fault.KindOf(err) != fault.Unreachable || fault.As(err) != nil {
			return err
		}
		log.Info("waiting for the API server of the management cluster, because the connection was lost during startup", "error", err.Error())
		if pause.Sleep(ctx, d) != nil {
			return err
		}
	}
}
