package manager

import (
	"context"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// addSimulated adds the server of simulated clusters, which costs nothing until there is one. The manager ends when
// their state is written.
func addSimulated(ctx context.Context, mgr manager.Manager, cfg Config) (*simulated.Server, error) {
	server := simulated.New(ctx, simulated.Config{
		Dir: datadir.Dir(cfg.Host.DataDir).Simulated(), Log: cfg.Log.WithName("simulated"), Objects: int(cfg.Policy.Maxima.SimulatedObjects),
		Memory: debug.SetMemoryLimit(-1), // GOMEMLIMIT, which slipway up sets, or none
	})
	return server, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		<-server.Ended()
		return nil
	}))
}
