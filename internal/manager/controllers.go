package manager

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/clusterresourceset"
	"github.com/slipwayhq/slipway/internal/controllers/extensionconfig"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machinehealthcheck"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/process"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap"
	"github.com/slipwayhq/slipway/internal/providers/local"
	simulatedbackend "github.com/slipwayhq/slipway/internal/providers/local/backend/simulated"
	"github.com/slipwayhq/slipway/internal/remote"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// addControllers is the one list of all controllers.
func addControllers(ctx context.Context, mgr manager.Manager, cfg Config) error {
	provider, err := tracing(ctx, cfg)
	if err != nil {
		return err
	}
	tracer, err := addTracing(mgr, provider)
	if err != nil {
		return err
	}
	setup, err := cfg.setups(mgr, tracer)
	if err != nil {
		return err
	}
	server, err := addSimulated(ctx, mgr, cfg)
	if err != nil {
		return err
	}
	clusters, err := addRemote(mgr, cfg, ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	add := []func() error{
		func() error {
			return cluster.Add(setup(cluster.Name), clusters, cluster.Settings{ConnectionGrace: cfg.ConnectionGrace})
		},
		func() error { return machine.Add(setup(machine.Name), clusters, cfg.machines()) },
		func() error {
			return machinehealthcheck.Add(setup(machinehealthcheck.Name), clusters)
		},
		func() error {
			return clusterresourceset.Add(setup(clusterresourceset.Name), clusters, clusterresourceset.Settings{Namespaces: cfg.Namespaces})
		},
		func() error { return machinedeployment.Add(setup(machinedeployment.Name)) },
		func() error { return machineset.Add(setup(machineset.Name), clusters, cfg.machineSets()) },
	}
	provided := map[policy.Provider]func() error{
		policy.BootstrapKubeadm: func() error { return bootstrap.Add(setup(bootstrap.Name), clusters, cfg.BootstrapTokenTTL) },
		policy.ControlPlaneHosted: func() error {
			return addHosted(ctx, setup(hosted.Name), cfg, planes{server, clusters})
		},
		policy.InfrastructureLocal: func() error {
			return local.Add(setup, local.Config{
				Instance: cfg.Host.Instance, Simulation: simulatedbackend.New(server), Policy: cfg.Policy, DataDir: cfg.Host.DataDir,
			})
		},
	}
	for _, p := range slices.Sorted(maps.Keys(provided)) {
		if cfg.Policy.Runs(p) {
			add = append(add, provided[p])
		}
	}
	if cfg.Gates.Enabled(GateMachinePool) {
		add = append(add, func() error { return machinepool.Add(setup(machinepool.Name), clusters, cfg.Policy) })
	}
	if cfg.Gates.Enabled(GateRuntimeSDK) {
		add = append(add, func() error {
			_, err := addExtensions(setup(extensionconfig.Name), cfg.Extensions)
			return err
		})
	}
	for _, f := range add {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// machines are the settings of the Machine controller with those that are gates.
func (c Config) machines() machine.Settings {
	s := c.Machines
	s.TaintPropagation, s.VolumeAttachments = c.Gates.Enabled(GateMachineTaintPropagation), c.Gates.Enabled(GateVolumeAttachments)
	return s
}

// machineSets are the settings of the MachineSet controller with those that are gates.
func (c Config) machineSets() machineset.Settings {
	s := c.MachineSets
	s.NoPreflight = !c.Gates.Enabled(GateMachineSetPreflightChecks)
	s.Topology = c.Gates.Enabled(GateClusterTopology)
	return s
}

// planes is what HostedControlPlanes are made with.
type planes struct {
	simulated *simulated.Server
	clusters  *remote.Clusters
}

// addHosted adds HostedControlPlanes. Their processes outlive the manager: its next start takes them over.
func addHosted(ctx context.Context, s loop.Setup, cfg Config, p planes) error {
	supervisor := process.New(ctx, process.Config{
		Root: datadir.Dir(cfg.Host.DataDir).Planes(), Command: []string{cfg.Host.Executable, "control-plane", "run", "--config"},
		Versions: []string{buildinfo.Kubernetes()}, Now: time.Now,
	})
	gateways, err := local.NewGateways(local.Config{Instance: cfg.Host.Instance})
	if err != nil {
		return err
	}
	return hosted.Add(s, hosted.Config{
		Processes: hosted.NewSupervised(supervisor), Simulation: hosted.NewSimulated(p.simulated), Carried: supervisor.Versions(),
		Workloads: p.clusters, Gateways: gateways, Policy: cfg.Policy, ReservedPorts: cfg.reservedPorts(),
	})
}

// reservedPorts are the ports of the management cluster and of the manager on this host.
func (c Config) reservedPorts() []uint16 {
	out := []uint16{uint16(c.Webhook.Port)}
	if server, _, err := rest.DefaultServerURL(c.REST.Host, "", schema.GroupVersion{}, true); err == nil {
		if port, err := strconv.ParseUint(server.Port(), 10, 16); err == nil {
			out = append(out, uint16(port))
		}
	}
	return out
}
