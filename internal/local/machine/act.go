package machine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// checkQuota reads the number of existing machines and the resolved mounts for a new machine. controller.readRequested
// (observe.go) reads them when [decide] requests it.
type checkQuota struct{}

func (checkQuota) String() string { return "the quota for a new machine" }

// readProgress reads the progress of the bootstrap. controller.readRequested (observe.go) reads it when [decide]
// requests it.
type readProgress struct{ Name string }

func (a readProgress) String() string {
	return "the bootstrap progress of machine " + a.Name
}

// createMachine creates and starts the machine.
type createMachine struct {
	Name, Image string
	// Startup is the duration of the machine's start. Zero: it runs at once, or an event reports it.
	Startup time.Duration
	Why     string
}

func (a createMachine) String() string {
	from, in := "", ""
	if a.Image != "" {
		from = " of " + a.Image
	}
	if a.Startup > 0 {
		in = fmt.Sprintf(", which takes %s", a.Startup)
	}
	return fmt.Sprintf("create and start machine %s%s%s: %s", a.Name, from, in, a.Why)
}

// updateMachine applies pending changes to a running machine.
type updateMachine struct{ Name, Why string }

func (a updateMachine) String() string { return fmt.Sprintf("change machine %s: %s", a.Name, a.Why) }

// setProviderID writes the provider ID and the finalizer before anything is created. The ID can be written this early
// because it is derived from the name, and the finalizer is needed only for a machine that exists.
type setProviderID struct{ ID string }

func (a setProviderID) String() string {
	return fmt.Sprintf("set the provider ID to %s: it identifies the machine", a.ID)
}

// runBootstrap runs the bootstrap data in the machine.
type runBootstrap struct{ Name, Secret string }

func (a runBootstrap) String() string {
	return fmt.Sprintf("run the bootstrap data of Secret %s in machine %s: the machine runs and is not bootstrapped", a.Secret, a.Name)
}

// deleteMachine removes the machine and its data.
type deleteMachine struct{ Name, Why string }

func (a deleteMachine) String() string { return fmt.Sprintf("delete machine %s: %s", a.Name, a.Why) }

// act runs one action on the host or on the LocalMachine. Package reconciler calls it for each action that [decide]
// planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	b, err := c.backendOf(s)
	if err != nil {
		return err
	}
	switch a := a.(type) {
	case createMachine, updateMachine:
		want := desiredMachine(s)
		want.Files = func(ctx context.Context) (map[string][]byte, error) { return c.files(ctx, s) }
		notes, err := b.Machines.Create(ctx, want)
		for _, note := range notes {
			c.events.Eventf(s.Object, nil, corev1.EventTypeWarning, "HostLimit", "Create", "%s", note)
		}
		return err
	case setProviderID:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) {
			o.(*infrav1.LocalMachine).Spec.ProviderID = a.ID
			controllerutil.AddFinalizer(o, infrav1.LocalMachineFinalizer)
		})
	case runBootstrap:
		return c.bootstrap(ctx, b.Scripts, s, a)
	case rebuildEtcd, stageSnapshot, reportEtcd:
		return c.actOnEtcd(ctx, b.EtcdRecovery, s, a)
	case deleteMachine:
		return b.Machines.Delete(ctx, s.ref())
	}
	return reconciler.UnknownAction("local machine", a)
}

// desiredMachine returns the desired machine.
func desiredMachine(s snapshot) backend.MachineSpec {
	m := backend.MachineSpec{
		Owner:             backend.Owner{Cluster: s.clusterName(), Object: client.ObjectKeyFromObject(s.Object), UID: s.Object.UID},
		Name:              s.Name,
		Hostname:          backend.Hostname(s.Object.Name),
		ProviderID:        backend.ProviderID(s.Name),
		Zone:              s.failureDomain(),
		Version:           s.version(),
		Startup:           s.startup(),
		ControlPlane:      s.controlPlane(),
		ProvisionedBefore: s.Machine != nil && s.Machine.Spec.ProviderID != "",
		Image:             s.Capabilities.Image,
		Ranges:            slices.DeleteFunc(backend.ClusterRanges(s.Cluster), isNotIPv4),
		Resources:         s.Capabilities.Resources,
		Maximum:           s.Capabilities.Maximum,
		Policy:            s.Policy,
	}
	if s.Network != nil { // the status only provides the network's name, which another management cluster may have chosen
		m.Network = backend.Ref{Object: client.ObjectKeyFromObject(s.Network), Name: s.Network.Status.Network.Name}
	}
	if s.Cluster != nil && s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		at := s.Cluster.Spec.ControlPlaneEndpoint
		m.Endpoint = net.JoinHostPort(at.Host, strconv.Itoa(int(at.Port)))
	}
	if s.Quota != nil {
		m.Mounts, m.HostView = s.Quota.Mounts, s.Quota.HostView
	}
	return m
}

func isNotIPv4(p netip.Prefix) bool { return !p.Addr().Is4() }

// bootstrap reads the bootstrap data and runs it in the machine. The data must never be stored in a snapshot, a log or
// a label.
func (c *controller) bootstrap(ctx context.Context, scripts backend.Scripts, s snapshot, a runBootstrap) error {
	data, err := c.bootstrapData(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: a.Secret})
	if err != nil {
		return err
	}
	script, err := cloudinit.RenderScript(data, s.nodeSettings(), s.Capabilities.Timeout)
	if err != nil {
		return inSecret(a.Secret, err)
	}
	return scripts.Bootstrap(ctx, s.ref(), script)
}

// nodeSettings describes the machine for its bootstrap data.
func (s snapshot) nodeSettings() cloudinit.NodeSettings {
	return cloudinit.NodeSettings{
		Name: s.Name, Hostname: cmp.Or(s.HostMachine.Hostname, backend.Hostname(s.Object.Name)), ProviderID: backend.ProviderID(s.Name),
		Address: s.HostMachine.Address, Offline: s.offline(),
	}
}

// offline reports whether the network of the machine has no route out of the host.
func (s snapshot) offline() bool {
	if s.Network == nil {
		return false
	}
	c := s.Network.Spec.Backend.Container
	return s.Capabilities.Networked && (c == nil || !c.Network.Internet)
}

// files returns the files in the machine's bootstrap data.
func (c *controller) files(ctx context.Context, s snapshot) (map[string][]byte, error) {
	data, err := c.bootstrapData(ctx, client.ObjectKey{Namespace: s.Object.Namespace, Name: s.bootstrapSecretName()})
	if err != nil {
		return nil, err
	}
	files, err := cloudinit.WrittenFiles(data, s.nodeSettings())
	return files, inSecret(s.bootstrapSecretName(), err)
}

// inSecret adds the name of the Secret to an error about its bootstrap data.
func inSecret(name string, err error) error {
	if f := fault.As(err); f != nil {
		return fault.New(f.Kind, f.Reason, "Secret %s: %s; correct the bootstrap data", name, f.Message).From(err)
	}
	return err
}

// bootstrapData reads the Secret with the bootstrap data.
func (c *controller) bootstrapData(ctx context.Context, key client.ObjectKey) (cloudinit.BootstrapData, error) {
	value, format, err := infrastructure.ReadBootstrapData(ctx, c.secrets, key)
	return cloudinit.BootstrapData{Value: value, Format: format}, err
}
