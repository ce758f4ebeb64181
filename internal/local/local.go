package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cluster"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
	"github.com/slipwayhq/slipway/internal/local/machine"
	"github.com/slipwayhq/slipway/internal/local/machinepool"
	localsimulated "github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/simulated"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// Config holds the options and dependencies of the provider. Package manager fills it in from the configuration of the
// manager.
type Config struct {
	// Instance names the management cluster on this host. Every container, network and volume is labelled with it.
	// Required, and constant for the whole life of the management cluster.
	Instance string
	// Docker is the address of the Docker Engine. Empty: DOCKER_HOST, else Docker's default.
	Docker string
	// Simulated serves simulated clusters. Nil: the simulated backend is not available.
	Simulated *simulated.Server
	// Policy is the operator's configuration. Required: the zero value allows nothing.
	Policy policy.Configuration
	// DataDir is the data directory of the management cluster, which no node may mount. It also holds the records of
	// host resources that were transferred to or from other management clusters. Empty: there is none.
	DataDir string
	// Balancers supervises the load balancers of control planes that run on machines. Nil: none are available.
	Balancers *loadbalancer.Supervisor
	// ReservedPorts are the ports of the management cluster itself. No load balancer listens on them.
	ReservedPorts []uint16
	// Stores are the locations of etcd snapshots, Jobs copies snapshots onto machines in the background. Nil: not
	// available.
	Stores snapshots.StoreSettings
	Jobs   *jobs.Runner
}

// Add adds all controllers of the provider to the manager and calls setup with the name of each controller. Package
// manager calls it when the manager starts with the provider enabled. It returns an error if the configuration is
// unusable. A host without Docker is not an error: the objects report it in their conditions.
func Add(setup func(controller string) reconciler.Setup, cfg Config) error {
	if cfg.Instance == "" {
		return errors.New("local provider: the management cluster has no instance name, which identifies its containers")
	}
	var reserved []string
	if cfg.DataDir != "" {
		reserved = append(reserved, cfg.DataDir)
	}
	s := setup(cluster.Name)
	engine, err := container.New(container.Config{
		Instance: cfg.Instance, Ownership: cfg.ownership(), Address: cfg.Docker, Reserved: reserved, Named: cfg.reachableHosts(s.Manager.GetConfig().Host),
	})
	if err != nil {
		return fmt.Errorf("local provider: %w", err)
	}
	host, err := backend.ThisHost()
	if err != nil {
		return fmt.Errorf("local provider: %w", err)
	}
	containers := engine.Backend(cfg.balancers())
	if cfg.DataDir != "" {
		containers = backend.WrapPreloading(containers, backend.ImageArchives{Dir: datadir.Dir(cfg.DataDir).Images()}, engine)
	}
	backends := backend.Set{infrav1.ContainerBackend: containers}
	if cfg.Simulated != nil {
		backends[infrav1.SimulatedBackend] = localsimulated.WrapFaulty(localsimulated.New(cfg.Simulated, s.Manager.GetClient(), s.Clock()), s.Clock())
	}
	nodes := backend.CapacityCalculator{Host: host, Backends: backends, Policy: cfg.Policy}
	hub := backend.NewBroadcaster(backends)
	if cfg.Balancers != nil {
		cfg.Balancers.OnExit = func(name string) {
			if o, ok := container.ClusterOfBalancer(name); ok {
				hub.Notify(backend.Event{Balancer: o})
			}
		}
	}
	for _, add := range []func() error{
		func() error {
			return cluster.Add(s, cluster.Config{Instance: cfg.Instance, Backends: backends, Hub: hub, Policy: cfg.Policy, ReservedPorts: cfg.ReservedPorts})
		},
		func() error {
			return machine.Add(setup(machine.Name), machine.Config{
				Instance: cfg.Instance, Backends: backends, Hub: hub, Policy: cfg.Policy, Stores: cfg.Stores, Jobs: cfg.Jobs,
			})
		},
		func() error { return machinepool.Add(setup(machinepool.Name), nodes) },
		func() error { return addTemplates(setup(templatesName), nodes) },
		func() error { return s.Manager.Add(hub) },
		func() error { return s.Manager.Add(sweeper{backends: backends, reader: s.Manager.GetAPIReader()}) },
	} {
		if err := add(); err != nil {
			return fmt.Errorf("local provider: %w", err)
		}
	}
	return nil
}

// reachableHosts returns the hosts that cluster networks must not make unreachable from this host: the hosts in the
// operator's configuration, the API server of the management cluster, and the proxies of this process.
func (c Config) reachableHosts(server string) []policy.ReachableHost {
	out := append(c.Policy.ReachableHosts(), policy.ReachableURL(server, "the API server of the management cluster"))
	for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		out = append(out, policy.ReachableURL(os.Getenv(variable), "a proxy in the environment of Slipway"))
	}
	return out
}

// ownership returns the record of the host resources that belong to this instance.
func (c Config) ownership() *hosttransfer.Store {
	if c.DataDir == "" {
		return hosttransfer.LabelsOnly(c.Instance)
	}
	return hosttransfer.Open(datadir.Dir(c.DataDir), c.Instance)
}

func (c Config) balancers() backend.Balancers {
	if c.Balancers == nil {
		return nil
	}
	return container.Balancers{Supervisor: c.Balancers}
}

// sweeper removes, once at startup, host resources of this instance whose objects no longer exist, for example because
// a finalizer was removed by force or because data were restored from a backup. Resources of a Cluster that does not
// exist here are retained, because the Cluster may have been moved to another management cluster.
type sweeper struct {
	backends backend.Sweeper
	reader   client.Reader
}

func (s sweeper) Start(ctx context.Context) error {
	keep := backend.InUse{
		Machine: func(o backend.Owner) bool { return s.isInUse(ctx, o, &infrav1.LocalMachine{}) },
		Network: func(o backend.Owner) bool { return s.isInUse(ctx, o, &infrav1.LocalCluster{}) },
	}
	if err := s.backends.Sweep(ctx, keep); err != nil {
		ctrl.LoggerFrom(ctx).Info("failed to remove host resources without owners", "reason", fault.UserMessage(err))
	}
	return nil
}

// isInUse reports whether the owner's resources are retained. Only resources that are certainly unused are removed.
func (s sweeper) isInUse(ctx context.Context, o backend.Owner, owner client.Object) bool {
	if o.Object.Name == "" || o.Cluster == "" {
		return true
	}
	if err := s.reader.Get(ctx, o.Object, owner); !apierrors.IsNotFound(err) {
		return true
	}
	key := client.ObjectKey{Namespace: o.Object.Namespace, Name: o.Cluster}
	return s.reader.Get(ctx, key, &clusterv1.Cluster{}) != nil
}
