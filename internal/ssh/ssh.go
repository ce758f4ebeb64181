package ssh

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/clusters"
	"github.com/slipwayhq/slipway/internal/ssh/hosts"
	"github.com/slipwayhq/slipway/internal/ssh/machines"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Config contains the options and dependencies of the provider. The manager fills it in.
type Config struct {
	// Instance names the management cluster in the records on hosts.
	Instance string
	// Workloads connects to workload clusters.
	Workloads hosts.Workloads
	// Bundles is the directory with the bundles.
	Bundles bundle.Store
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// Jobs runs what takes longer than a reconciliation: the preparation and the cleaning of hosts.
	Jobs *jobs.Runner
}

// Limits returns the limits of the jobs of the provider. Half of the calls to hosts remains for checks. A quarter of the jobs remains
// for the hosts of other namespaces. The manager creates the runner of [Config].Jobs with them.
func Limits(p policy.Configuration) jobs.Limits {
	total := max(int(p.Hosts.AtOnce)/2, 1)
	return jobs.Limits{Total: total, Namespace: max(total-max(total/4, 1), 1)}
}

// Add adds all controllers of the provider to the manager and calls setup with the name of each controller. The manager
// calls it at its start.
func Add(setup func(controller string) reconciler.Setup, cfg Config) error {
	pool := remote.NewPool(remote.Limits{Hosts: int(cfg.Policy.Hosts.AtOnce)})
	s := setup(hosts.Name)
	for _, add := range []func() error{
		func() error {
			return hosts.Add(s, hosts.Config{
				Instance: cfg.Instance, Connector: hostConnector{pool}, Workloads: cfg.Workloads, Bundles: &bundleVersions{store: cfg.Bundles, now: s.Clock()}, Jobs: cfg.Jobs, Policy: cfg.Policy,
			})
		},
		func() error {
			return machines.Add(setup(machines.Name), machines.Config{
				Connector: machineConnector{pool}, Bundles: cfg.Bundles, Jobs: cfg.Jobs, Policy: cfg.Policy,
			})
		},
		func() error {
			return clusters.Add(setup(clusters.Name), clusters.Config{Connector: clusterConnector{pool}, Policy: cfg.Policy})
		},
		func() error { return addTemplates(setup(templatesName)) },
		func() error { return s.Manager.Add(closing(pool)) },
	} {
		if err := add(); err != nil {
			return fmt.Errorf("SSH provider: %w", err)
		}
	}
	return nil
}

// closing closes the connections when the manager ends.
func closing(pool *remote.Pool) manager.RunnableFunc {
	return func(ctx context.Context) error {
		<-ctx.Done()
		pool.Close()
		return nil
	}
}

// hostConnector connects the controller of SSHHosts, machineConnector the controller of SSHMachines, and clusterConnector the
// controller of SSHClusters, each with the interface of that controller.
type (
	hostConnector    struct{ pool *remote.Pool }
	machineConnector struct{ pool *remote.Pool }
	clusterConnector struct{ pool *remote.Pool }
)

// Connect implements [hosts.Connector].
func (c hostConnector) Connect(ctx context.Context, t remote.Target) (hosts.Host, error) {
	h, err := c.pool.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Connect implements [machines.Connector].
func (c machineConnector) Connect(ctx context.Context, t remote.Target) (machines.Host, error) {
	h, err := c.pool.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Connect implements [clusters.Connector].
func (c clusterConnector) Connect(ctx context.Context, t remote.Target) (clusters.Host, error) {
	h, err := c.pool.Connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// listInterval is the interval in which the bundles are listed again for a digest that is unknown.
const listInterval = time.Minute

// bundleVersions names the versions of bundles by their digests. A bundle has the programs and images of a node for one
// Kubernetes version. The SSHHost controller reports the versions of the bundles on a host.
type bundleVersions struct {
	store bundle.Store
	now   func() time.Time

	mu       sync.Mutex
	listed   time.Time
	versions map[string]string
}

// Version implements [hosts.Bundles].
func (b *bundleVersions) Version(digest string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.versions[digest]; ok || b.now().Sub(b.listed) < listInterval {
		return v
	}
	b.listed, b.versions = b.now(), map[string]string{}
	found, _, err := b.store.List()
	if err != nil {
		return "" // the hosts that have the bundle are only not preferred
	}
	for _, f := range found {
		for _, controlPlane := range []bool{false, true} {
			b.versions[f.ForNode(controlPlane).Digest] = f.KubernetesVersion
		}
	}
	return b.versions[digest]
}
