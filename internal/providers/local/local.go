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
	"github.com/slipwayhq/slipway/internal/balancer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/kept"
	simulatedbackend "github.com/slipwayhq/slipway/internal/providers/local/backend/simulated"
	"github.com/slipwayhq/slipway/internal/providers/local/cluster"
	"github.com/slipwayhq/slipway/internal/providers/local/machine"
	"github.com/slipwayhq/slipway/internal/providers/local/machinepool"
	"github.com/slipwayhq/slipway/internal/providers/local/machinetemplate"
	"github.com/slipwayhq/slipway/internal/providers/local/offer"
	"github.com/slipwayhq/slipway/internal/providers/local/wake"
	"github.com/slipwayhq/slipway/internal/simulated"
	"github.com/slipwayhq/slipway/internal/snapshots/destination"
	"github.com/slipwayhq/slipway/internal/snapshots/jobs"
)

// Config is what the provider needs.
type Config struct {
	// Instance names the management cluster on this host; what it makes carries the name. Required, and the same for
	// the whole life of the management cluster.
	Instance string
	// Docker is the address of the engine; empty: DOCKER_HOST, else Docker's default.
	Docker string
	// Simulated serves simulated clusters; nil: none are offered.
	Simulated *simulated.Server
	// Policy is what the operator allows. Required: the zero value allows nothing.
	Policy policy.Configuration
	// DataDir is the data directory of the management cluster, which no node may mount, and which says what was handed over to it and
	// to others; empty: there is none.
	DataDir string
	// Balancers keeps the load balancers of control planes on machines; nil: this process offers none.
	Balancers *balancer.Keeper
	// ReservedPorts are those of the management cluster itself, which no load balancer listens at.
	ReservedPorts []uint16
	// Stores are where snapshots of etcd may be, Jobs brings them onto machines; nil: none is.
	Stores destination.Settings
	Jobs   *jobs.Jobs
}

// Add adds all controllers of the provider to the manager. Setup is asked for each controller by its name. It fails
// if the configuration cannot be used; a host without Docker is no failure: the objects say so in their conditions.
func Add(setup func(controller string) loop.Setup, cfg Config) error {
	if cfg.Instance == "" {
		return errors.New("local provider: the management cluster has no instance, by which its containers are told from those of others")
	}
	var reserved []string
	if cfg.DataDir != "" {
		reserved = append(reserved, cfg.DataDir)
	}
	s := setup(cluster.Name)
	engine, err := container.New(container.Config{
		Instance: cfg.Instance, Custody: cfg.custody(), Address: cfg.Docker, Reserved: reserved, Named: cfg.named(s.Manager.GetConfig().Host),
	})
	if err != nil {
		return fmt.Errorf("local provider: %w", err)
	}
	host, err := offer.ThisHost()
	if err != nil {
		return fmt.Errorf("local provider: %w", err)
	}
	containers := engine.Backend(cfg.balancers())
	if cfg.DataDir != "" {
		containers = kept.Around(containers, kept.Archives{Dir: datadir.Dir(cfg.DataDir).Images()}, engine)
	}
	backends := backend.Set{infrav1.ContainerBackend: containers}
	if cfg.Simulated != nil {
		backends[infrav1.SimulatedBackend] = simulatedbackend.New(cfg.Simulated, s.Manager.GetClient())
	}
	nodes := offer.Nodes{Host: host, Backends: backends, Policy: cfg.Policy}
	hub := wake.NewHub(backends)
	if cfg.Balancers != nil {
		cfg.Balancers.Ended = func(name string) {
			if o, ok := container.BalancedBy(name); ok {
				hub.Tell(backend.Event{Balancer: o})
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
		func() error { return machinetemplate.Add(setup(machinetemplate.Name), nodes) },
		func() error { return s.Manager.Add(hub) },
		func() error { return s.Manager.Add(sweeper{backends: backends, reader: s.Manager.GetAPIReader()}) },
	} {
		if err := add(); err != nil {
			return fmt.Errorf("local provider: %w", err)
		}
	}
	return nil
}

// named are the hosts that clusters must not cut this host off from: what the operator's file names, the API server of the management
// cluster, and the proxies of this process.
func (c Config) named(server string) []policy.Named {
	out := append(c.Policy.Named(), policy.NamedURL(server, "the API server of the management cluster"))
	for _, variable := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		out = append(out, policy.NamedURL(os.Getenv(variable), "a proxy in the environment of Slipway"))
	}
	return out
}

// custody says what on the host is this instance's.
func (c Config) custody() *custody.Book {
	if c.DataDir == "" {
		return custody.Labels(c.Instance)
	}
	return custody.Open(datadir.Dir(c.DataDir), c.Instance)
}

func (c Config) balancers() backend.Balancers {
	if c.Balancers == nil {
		return nil
	}
	return container.Balancers{Keeper: c.Balancers}
}

// sweeper removes, once at the start, what this instance made on the host for objects that do not exist any more: a
// finalizer was removed by force, or data were restored from a backup. What belongs to a Cluster that is not here (any
// more) stays: it may have been moved to another management cluster.
type sweeper struct {
	backends backend.Sweeper
	reader   client.Reader
}

// Start implements manager.Runnable.
func (s sweeper) Start(ctx context.Context) error {
	keep := backend.Keep{
		Machine: func(o backend.Owner) bool { return s.keep(ctx, o, &infrav1.LocalMachine{}) },
		Network: func(o backend.Owner) bool { return s.keep(ctx, o, &infrav1.LocalCluster{}) },
	}
	if err := s.backends.Sweep(ctx, keep); err != nil {
		ctrl.LoggerFrom(ctx).Info("searching the host for what no object owns failed", "reason", fault.UserMessage(err))
	}
	return nil
}

// keep reports whether something of the owner stays: only what is certainly not needed goes.
func (s sweeper) keep(ctx context.Context, o backend.Owner, owner client.Object) bool {
	if o.Object.Name == "" || o.Cluster == "" {
		return true
	}
	if err := s.reader.Get(ctx, o.Object, owner); !apierrors.IsNotFound(err) {
		return true
	}
	key := client.ObjectKey{Namespace: o.Object.Namespace, Name: o.Cluster}
	return s.reader.Get(ctx, key, &clusterv1.Cluster{}) != nil
}
