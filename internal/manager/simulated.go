package manager

import (
	"context"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// addSimulated adds the server of simulated clusters (package simulated) to the manager for the backends of hosted
// control planes and local machines. It uses no resources until there is a cluster. On shutdown, the manager waits
// until its state is saved. newParts calls it before the controllers are added.
func addSimulated(ctx context.Context, mgr manager.Manager, cfg Config) (*simulated.Server, error) {
	server := simulated.New(ctx, simulated.Config{
		Dir: datadir.Dir(cfg.Host.DataDir).Simulated(), Log: cfg.Log.WithName("simulated"), Objects: int(cfg.Policy.Maxima.SimulatedObjects),
		Memory: debug.SetMemoryLimit(-1), // GOMEMLIMIT, as set by slipway up, or no limit
	})
	return server, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		<-server.Ended()
		return nil
	}))
}
