package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/clusterclass"
	"github.com/slipwayhq/slipway/internal/controllers/clusterresourceset"
	"github.com/slipwayhq/slipway/internal/controllers/credentials"
	"github.com/slipwayhq/slipway/internal/controllers/extensionconfig"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machinehealthcheck"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/controllers/topology"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/hosted"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/hosted/servingcerts"
	hostedsimulated "github.com/slipwayhq/slipway/internal/hosted/simulated"
	hostedsnapshots "github.com/slipwayhq/slipway/internal/hosted/snapshots"
	"github.com/slipwayhq/slipway/internal/hosted/statefulset"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane"
	"github.com/slipwayhq/slipway/internal/local"
	localmachine "github.com/slipwayhq/slipway/internal/local/machine"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/simulated"
	slipwaysnapshots "github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/ssh"
	"github.com/slipwayhq/slipway/internal/workload"
)

// addControllers adds the controllers of the enabled providers, and the storage migration, to the manager. [Run] calls
// it before the manager starts. A controller that is added here also belongs in package providerset.
func addControllers(ctx context.Context, mgr manager.Manager, cfg Config) error {
	p, err := newParts(ctx, mgr, cfg)
	if err != nil {
		return err
	}
	add := map[providerset.Name]func() error{
		providerset.Core:                p.addCore,
		providerset.BootstrapKubeadm:    p.addBootstrap,
		providerset.ControlPlaneKubeadm: p.addKubeadmControlPlane,
		providerset.ControlPlaneHosted:  p.addHosted,
		providerset.InfrastructureLocal: p.addLocal,
		providerset.InfrastructureSSH:   p.addSSH,
	}
	for _, set := range cfg.Policy.Sets() {
		if f := add[set.Name]; f != nil {
			if err := f(); err != nil {
				return fmt.Errorf("provider %s: %w", set.Name, err)
			}
		}
	}
	return mgr.Add(crds.NewMigrator(mgr.GetAPIReader(), mgr.GetClient(), p.stored(), cfg.SkipMigration))
}

// stored returns the CRDs whose stored objects are migrated: those of providers with controllers in this
// manager.
func (p *controllerDeps) stored() map[string]crds.Access {
	out := map[string]crds.Access{}
	for _, set := range p.cfg.Policy.Sets() {
		for _, crd := range set.CRDs {
			if m := p.members[set.Name]; len(set.Controllers) > 0 {
				out[crd] = crds.Access{Reader: m.GetAPIReader(), Client: m.GetClient()}
			}
		}
	}
	return out
}

// controllerDeps holds the dependencies of the controllers.
type controllerDeps struct {
	ctx     context.Context
	cfg     Config
	common  reconciler.Setup
	members map[providerset.Name]manager.Manager
	// process is the manager with the identity of the process.
	process manager.Manager
	// clusters connects to workload clusters. It is nil if no enabled provider needs it.
	clusters *workload.Clusters
	// simulated is nil if no enabled provider has a simulated backend.
	simulated *simulated.Server
	// extensions is nil until a controller needs it.
	extensions hook.Client
	// tasks runs snapshot uploads and downloads, with a limit for the whole process.
	tasks *jobs.Runner
}

// newParts returns the dependencies and adds the shared ones to the manager.
func newParts(ctx context.Context, mgr manager.Manager, cfg Config) (*controllerDeps, error) {
	p := &controllerDeps{ctx: ctx, cfg: cfg, process: mgr, members: map[providerset.Name]manager.Manager{}, tasks: jobs.NewRunner(ctx, time.Now, jobs.SnapshotLimits())}
	provider, err := tracing(ctx, cfg)
	if err != nil {
		return nil, err
	}
	tracer, err := addTracing(mgr, provider, cfg.Policy.Runs(providerset.Core))
	if err != nil {
		return nil, err
	}
	if p.common, err = cfg.common(tracer); err != nil {
		return nil, err
	}
	for _, set := range cfg.Policy.Sets() {
		p.members[set.Name] = mgr
		if access := cfg.Identities[set.Name]; access != nil {
			if p.members[set.Name], err = newMember(mgr, access); err != nil {
				return nil, fmt.Errorf("provider %s: %w", set.Name, err)
			}
		}
		if set.ConnectsToWorkloads && p.clusters == nil {
			if p.clusters, err = addRemote(p.members[set.Name], cfg, ctrlmetrics.Registry); err != nil {
				return nil, err
			}
		}
	}
	if cfg.Policy.Runs(providerset.ControlPlaneHosted) || cfg.Policy.Runs(providerset.InfrastructureLocal) {
		p.simulated, err = addSimulated(ctx, mgr, cfg)
	}
	return p, err
}

// setup returns the setup for the controller with this name.
func (p *controllerDeps) setup(controller string) reconciler.Setup {
	s := p.common
	for _, set := range p.cfg.Policy.Sets() {
		if _, ok := set.Controllers[controller]; ok {
			s.Manager, s.Concurrency = p.members[set.Name], p.cfg.concurrency(set, controller)
			if s.Manager != p.process {
				s.Process = p.process
			}
		}
	}
	return s
}

// AddPlanned adds the core controllers that only write to the management cluster. Package plan runs them
// against a copy of its objects. `slipway plan` passes it to package plan.
func AddPlanned(setup reconciler.Setup, clusters workload.Workloads, extensions hook.Client, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	p := &controllerDeps{cfg: cfg, common: setup, members: map[providerset.Name]manager.Manager{providerset.Core: setup.Manager}}
	return p.addPlanned(clusters, extensions)
}

// PlannedAdmission returns the feature gates and the policy with which admission validates the objects of a
// plan. `slipway plan` calls it.
func PlannedAdmission(cfg Config) (admission.Gates, policy.Configuration, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return admission.Gates{}, policy.Configuration{}, err
	}
	return admissionGates(cfg.Gates), cfg.Policy, nil
}

// addPlanned adds the core controllers that only write to the management cluster.
func (p *controllerDeps) addPlanned(clusters workload.Workloads, extensions hook.Client) error {
	cfg := p.cfg
	errs := []error{
		cluster.Add(p.setup(cluster.Name), clusters, cluster.Settings{ConnectionGrace: cfg.ConnectionGrace, DeleteHook: cfg.deleteHook()}),
		machine.Add(p.setup(machine.Name), clusters, extensions, cfg.machines()),
		machinehealthcheck.Add(p.setup(machinehealthcheck.Name), clusters),
		machinedeployment.Add(p.setup(machinedeployment.Name), extensions, cfg.machineDeployments()),
		machineset.Add(p.setup(machineset.Name), clusters, cfg.machineSets()),
	}
	if cfg.Gates.Enabled(providerset.GateMachinePool) {
		pools := machinepool.Settings{Policy: cfg.Policy, SyncLabels: cfg.Machines.SyncLabels}
		errs = append(errs, machinepool.Add(p.setup(machinepool.Name), clusters, pools))
	}
	if cfg.Gates.Enabled(providerset.GateClusterTopology) {
		errs = append(errs, clusterclass.Add(p.setup(clusterclass.Name), extensions), topology.Add(p.setup(topology.Name), extensions))
	}
	return errors.Join(errs...)
}

func (p *controllerDeps) addCore() error {
	extensions, err := p.calledExtensions()
	if err != nil {
		return err
	}
	namespaces := p.cfg.Namespaces
	return errors.Join(
		p.addPlanned(p.clusters, extensions),
		clusterresourceset.Add(p.setup(clusterresourceset.Name), p.clusters, clusterresourceset.Settings{Namespaces: namespaces, DeleteHook: p.cfg.deleteHook()}),
		credentials.Add(p.setup(credentials.Name), p.clusters, credentials.Settings{Namespaces: namespaces}),
	)
}

func (p *controllerDeps) addBootstrap() error {
	return bootstrap.Add(p.setup(bootstrap.Name), p.clusters, bootstrap.Settings{
		TokenTTL: p.cfg.BootstrapTokenTTL, Ignition: p.cfg.Gates.Enabled(providerset.GateKubeadmBootstrapIgnition), Policy: p.cfg.Policy,
	})
}

func (p *controllerDeps) addKubeadmControlPlane() error {
	settings := p.cfg.KubeadmControlPlanes
	settings.ConnectionGrace, settings.Policy = cmp.Or(p.cfg.Machines.ConditionsGrace, machine.DefaultConditionsGrace), p.cfg.Policy
	settings.InPlaceUpdates = p.cfg.Gates.Enabled(providerset.GateInPlaceUpdates)
	var extensions hook.Client
	if settings.InPlaceUpdates {
		var err error
		if extensions, err = p.calledExtensions(); err != nil {
			return err
		}
	}
	return controlplane.Add(p.setup(controlplane.Name), p.clusters, extensions, settings)
}

// calledExtensions returns the Runtime Extensions client shared by all controllers of this process, or nil if
// no enabled feature calls extensions. Without the core provider, the client only uses extensions that
// another manager discovered.
func (p *controllerDeps) calledExtensions() (hook.Client, error) {
	if !p.cfg.Gates.Enabled(providerset.GateRuntimeSDK) && !p.cfg.Gates.Enabled(providerset.GateInPlaceUpdates) {
		return nil, nil
	}
	if p.extensions == nil {
		settings, setup := p.cfg.Extensions, p.setup(extensionconfig.Name)
		if !p.cfg.Policy.Runs(providerset.Core) {
			settings.ReadOnly, setup = true, p.setup(controlplane.Name)
		}
		registry, err := addExtensions(setup, settings)
		if err != nil {
			return nil, err
		}
		p.extensions = registry
	}
	return p.extensions, nil
}

func (p *controllerDeps) addLocal() error {
	return local.Add(p.setup, local.Config{
		Instance: p.cfg.Host.Instance, Simulated: p.simulated, Policy: p.cfg.Policy, DataDir: p.cfg.Host.DataDir, ReservedPorts: p.cfg.reservedPorts(),
		Balancers: p.cfg.Host.balancers(), Jobs: p.tasks, Stores: p.snapshotStores(p.setup(localmachine.Name).Manager.GetAPIReader()),
	})
}

func (p *controllerDeps) addSSH() error {
	return ssh.Add(p.setup, ssh.Config{
		Instance: p.cfg.Host.Instance, Workloads: p.clusters, Bundles: p.cfg.Host.bundles(), Policy: p.cfg.Policy, Jobs: jobs.NewRunner(p.ctx, time.Now, ssh.Limits(p.cfg.Policy)),
	})
}

// snapshotStores returns the permitted destinations of etcd snapshots.
func (p *controllerDeps) snapshotStores(secrets client.Reader) slipwaysnapshots.StoreSettings {
	s := slipwaysnapshots.StoreSettings{Policy: p.cfg.Policy, Secrets: secrets}
	if !p.cfg.Host.TemporaryData {
		s.Root = datadir.Dir(p.cfg.Host.DataDir).Snapshots()
	}
	return s
}

// hostedBackends returns the backends for hosted control planes. The process backend runs them as Pods if the
// manager itself is a Pod. Otherwise it runs processes, which continue after the manager ends and are adopted
// at its next start.
func (p *controllerDeps) hostedBackends() (backend.Set, error) {
	out := backend.Set{hostedv1.BackendSimulated: hostedsimulated.WithFaults(hostedsimulated.New(p.simulated), p.simulated)}
	if pods := p.cfg.Host.Pods; pods.Namespace != "" {
		mgr := p.setup(hosted.Name).Manager
		connection, err := statefulset.Connect(mgr.GetConfig(), mgr.GetLogger(), pods.Namespace)
		if err != nil {
			return nil, err
		}
		if out[hostedv1.BackendProcess], err = statefulset.New(p.ctx, connection, pods); err != nil {
			return nil, err
		}
		return out, mgr.Add(connection)
	}
	kubernetes := p.cfg.releases()
	supervisor := supervisor.New(p.ctx, supervisor.Config{
		Root: datadir.Dir(p.cfg.Host.DataDir).Planes(), Now: time.Now, Versions: kubernetes.Versions,
		Command:       []string{p.cfg.Host.Executable, "control-plane", "run", "--releases", kubernetes.Dir, "--config"},
		Transfers:     hosttransfer.Open(datadir.Dir(p.cfg.Host.DataDir), p.cfg.Host.Instance),
		SeparateUsers: true,
	})
	out[hostedv1.BackendProcess] = process.New(supervisor, p.cfg.Host.TemporaryData)
	return out, nil
}

// addHosted adds the controllers of HostedControlPlanes and of etcd snapshots.
func (p *controllerDeps) addHosted() error {
	backends, err := p.hostedBackends()
	if err != nil {
		return err
	}
	gateways, err := local.NewGateways(local.Config{Instance: p.cfg.Host.Instance, DataDir: p.cfg.Host.DataDir})
	if err != nil {
		return err
	}
	setup := p.setup(hostedsnapshots.Name)
	reader := setup.Manager.GetClient()
	err = hostedsnapshots.Add(setup, hostedsnapshots.Config{
		Stores: p.snapshotStores(reader), Jobs: p.tasks, Sources: hostedsnapshots.EtcdConnector{
			Client: reader, Planes: datadir.Dir(p.cfg.Host.DataDir).Planes(), InPods: p.cfg.Host.Pods.Namespace != "", Forwarder: p.clusters, Now: time.Now,
		},
	})
	if err != nil {
		return err
	}
	if err := servingcerts.Add(p.setup(servingcerts.Name), p.clusters); err != nil {
		return err
	}
	return hosted.Add(p.setup(hosted.Name), hosted.Config{
		Backends: backends, Workloads: p.clusters, Gateways: gateways, Policy: p.cfg.Policy, ReservedPorts: p.cfg.reservedPorts(),
		Stores: p.snapshotStores(reader), Jobs: p.tasks,
	})
}

// deleteHook reports whether the deletion of Clusters with a topology waits for the hook BeforeClusterDelete.
func (c Config) deleteHook() bool {
	return c.Gates.Enabled(providerset.GateRuntimeSDK) && c.Gates.Enabled(providerset.GateClusterTopology)
}

// machines returns the settings of the Machine controller, including those set by feature gates.
func (c Config) machines() machine.Settings {
	s := c.Machines
	s.TaintPropagation, s.VolumeAttachments = c.Gates.Enabled(providerset.GateMachineTaintPropagation), c.Gates.Enabled(providerset.GateVolumeAttachments)
	s.InPlaceUpdates = c.Gates.Enabled(providerset.GateInPlaceUpdates)
	return s
}

// machineDeployments returns the settings of the MachineDeployment controller, including those set by feature
// gates.
func (c Config) machineDeployments() machinedeployment.Settings {
	return machinedeployment.Settings{Topology: c.Gates.Enabled(providerset.GateClusterTopology), InPlace: c.Gates.Enabled(providerset.GateInPlaceUpdates), Policy: c.Policy}
}

func (c Config) machineSets() machineset.Settings {
	s := c.MachineSets
	s.NoPreflight = !c.Gates.Enabled(providerset.GateMachineSetPreflightChecks)
	s.Topology = c.Gates.Enabled(providerset.GateClusterTopology)
	s.InPlace = c.Gates.Enabled(providerset.GateInPlaceUpdates)
	s.Policy = c.Policy
	return s
}

// reservedPorts returns the ports of the management cluster and of the manager, which workload clusters on
// the same addresses must not use.
func (c Config) reservedPorts() []uint16 {
	out := []uint16{uint16(c.Webhook.Port)}
	server, _, err := rest.DefaultServerURL(c.REST.Host, "", schema.GroupVersion{}, true)
	if err != nil || !c.couldServe(server.Hostname()) {
		return out
	}
	if port, err := strconv.ParseUint(server.Port(), 10, 16); err == nil {
		out = append(out, uint16(port))
	}
	return out
}

// couldServe reports whether a workload cluster of this host could listen at the address of the host.
// Workload clusters listen at addresses of their own networks and at addresses that the operator allows. At
// any other address, the management cluster can share a port number with them.
func (c Config) couldServe(host string) bool {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return true // a name can resolve to any address
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsUnspecified() ||
		slices.ContainsFunc(c.Policy.ControlPlanes.Addresses, func(p netip.Prefix) bool { return p.Contains(address) })
}
