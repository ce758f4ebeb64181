package simulated

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// simulatedMachines implements backend.Machines, for the LocalMachine controller, with the machines of the simulated
// clusters of a server. All methods except Delete return a fault of kind Unreachable while the control plane of the
// machine's Cluster is not simulated or does not run.
type simulatedMachines struct {
	server *simulated.Server
	// reader reads the LocalMachines, to count them.
	reader client.Reader
	crowd  machineCounter
	now    func() time.Time
}

var (
	_ backend.Machines = (*simulatedMachines)(nil)
	_ backend.Watcher  = (*simulatedMachines)(nil)
	_ faultyKubelets   = (*simulatedMachines)(nil)
)

// New returns the backend for the clusters of a server, without faults. The provider (package local) calls it, and adds
// faults with [WrapFaulty]. The reader must return all LocalMachines.
func New(s *simulated.Server, reader client.Reader, now func() time.Time) backend.Backend {
	m := &simulatedMachines{server: s, reader: reader, now: now}
	b := &balancers{server: s, names: map[types.NamespacedName]string{}}
	return backend.Backend{Networks: networks{}, Machines: m, Watcher: m, Balancers: b, RecordCluster: b.recordCluster, DeleteState: b.deleteState, EtcdRecovery: m}
}

// machineState is the stored state of a machine. It is stored as JSON next to the objects of its cluster, so its JSON
// names must not change.
type machineState struct {
	Owner  types.UID `json:"owner,omitempty"`
	Booted time.Time `json:"booted,omitzero"`
	// Joined is the time at which its Node was created.
	Joined   time.Time `json:"joined,omitzero"`
	NotReady bool      `json:"notReady,omitempty"`
	// ControlPlane is set if the machine runs the control plane, Faults are the faults of that control plane.
	ControlPlane bool   `json:"controlPlane,omitempty"`
	Faults       string `json:"faults,omitempty"`
}

// Inspect implements backend.Machines. A machine that is counted but does not exist is Orphaned.
func (m *simulatedMachines) Inspect(ctx context.Context, ref backend.Ref) (backend.Machine, error) {
	out := backend.Machine{Name: ref.Name, State: backend.Absent}
	if err := m.crowd.seed(ctx, m.reader); err != nil {
		return out, err
	}
	if m.crowd.has(ref.Object) {
		out.State = backend.Orphaned
	}
	notes, err := m.notes(ref.ClusterKey())
	if err != nil && ref.ControlPlane { // Create creates the cluster
		return out, nil
	}
	if err != nil {
		return out, err
	}
	n := readState(notes, backend.Hostname(ref.Object.Name))
	out.Owner = backend.Owner{Cluster: ref.Cluster, Object: ref.Object, UID: n.Owner}
	switch {
	case !n.Joined.IsZero():
		out = running(out)
		out.Since, out.Degraded, out.Faults = n.Joined, n.NotReady, n.Faults
	case !n.Booted.IsZero():
		out.State, out.Since = backend.Created, n.Booted
	}
	return out, nil
}

func (m *simulatedMachines) CheckQuota(ctx context.Context, spec backend.MachineSpec) (backend.Quota, error) {
	if err := m.crowd.seed(ctx, m.reader); err != nil {
		return backend.Quota{}, err
	}
	return m.crowd.quota(spec.Owner.Object), nil
}

// Create implements backend.Machines: it starts the machine, and creates its Node when the startup duration is over.
func (m *simulatedMachines) Create(ctx context.Context, spec backend.MachineSpec) ([]string, error) {
	if why := m.crowd.enter(spec.Owner.Object, spec.Maximum); why != "" {
		return nil, fault.New(fault.Invalid, "DeniedByPolicy", "%s", why)
	}
	ref := backend.Ref{Object: spec.Owner.Object, Name: spec.Name, Cluster: spec.Owner.Cluster}
	if spec.ControlPlane {
		if err := m.controlPlane(ctx, spec); err != nil {
			return nil, err
		}
	}
	notes, err := m.notes(ref.ClusterKey())
	if err != nil {
		return nil, err
	}
	now, n := m.now(), readState(notes, spec.Hostname)
	switch {
	case !n.Joined.IsZero():
		return nil, nil
	case n.Booted.IsZero() && spec.Startup > 0:
		return nil, writeState(notes, spec.Hostname, machineState{Owner: spec.Owner.UID, Booted: now, ControlPlane: spec.ControlPlane})
	case now.Before(n.Booted.Add(spec.Startup)):
		return nil, nil
	case n.Booted.IsZero():
		n.Booted = now
	}
	if err := m.createNode(ctx, ref, spec, now); err != nil {
		return nil, err
	}
	if spec.ControlPlane {
		if err := m.join(ctx, ref, spec); err != nil {
			return nil, err
		}
	}
	n.Owner, n.Joined, n.NotReady, n.ControlPlane = spec.Owner.UID, now, false, spec.ControlPlane
	return nil, writeState(notes, spec.Hostname, n)
}

func (m *simulatedMachines) createNode(ctx context.Context, ref backend.Ref, spec backend.MachineSpec, now time.Time) error {
	ctx, client := m.server.Workload(ctx, ref.ClusterKey())
	if client == nil {
		return unreachableFault(ref.Cluster)
	}
	if spec.Version == "" {
		spec.Version = m.server.StatusOf(ref.ClusterKey()).Spec.Version
	}
	desired := newNode(spec, now)
	_, err := client.CoreV1().Nodes().Create(ctx, desired, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = recreateNode(ctx, client, desired)
	}
	if err != nil {
		return fmt.Errorf("creating Node %s: %w", spec.Hostname, err)
	}
	return nil
}

// recreateNode recreates the Node if an existing Node of the same name belongs to another machine.
func recreateNode(ctx context.Context, client kubernetes.Interface, desired *corev1.Node) error {
	nodes := client.CoreV1().Nodes()
	old, err := nodes.Get(ctx, desired.Name, metav1.GetOptions{})
	if err == nil && old.Spec.ProviderID == desired.Spec.ProviderID {
		return nil
	}
	if err == nil {
		err = nodes.Delete(ctx, desired.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = nodes.Create(ctx, desired, metav1.CreateOptions{})
	return err
}

func (m *simulatedMachines) SetReady(ctx context.Context, ref backend.Ref, ready bool) error {
	notes, err := m.notes(ref.ClusterKey())
	if err != nil {
		return err
	}
	ctx, client := m.server.Workload(ctx, ref.ClusterKey())
	if client == nil {
		return unreachableFault(ref.Cluster)
	}
	name := backend.Hostname(ref.Object.Name)
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		setReady(node, readiness(ready), metav1.NewTime(m.now()))
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing the status of Node %s: %w", name, err)
	}
	n := readState(notes, name)
	n.NotReady = !ready
	return writeState(notes, name, n)
}

// Delete implements backend.Machines. The Node remains until it is deleted, as for a machine that is switched off.
func (m *simulatedMachines) Delete(_ context.Context, ref backend.Ref) error {
	if notes := m.server.Notes(ref.ClusterKey()); notes != nil {
		if err := notes.Delete(backend.Hostname(ref.Object.Name)); err != nil {
			return err
		}
	}
	m.crowd.leave(ref.Object)
	return m.leave(ref)
}

// Watch implements backend.Watcher: all machines of a cluster may have changed when its control plane starts.
func (m *simulatedMachines) Watch(ctx context.Context, handle func(backend.Event)) error {
	tell := func(name string) {
		if st := m.server.Status(name); st.Running {
			handle(backend.Event{Cluster: st.Spec.Cluster})
		}
	}
	cancel := m.server.Subscribe(tell)
	defer cancel()
	for _, name := range m.server.Names() { // control planes that started earlier
		tell(name)
	}
	<-ctx.Done()
	return nil
}

func (m *simulatedMachines) notes(cluster types.NamespacedName) (*simulated.Notes, error) {
	if notes := m.server.Notes(cluster); notes != nil {
		return notes, nil
	}
	return nil, unreachableFault(cluster.Name)
}

// writeState stores the state of a machine. It needs no lock, because one controller reconciles a machine, one
// reconciliation at a time.
func writeState(notes *simulated.Notes, name string, n machineState) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return notes.Set(name, data)
}

// readState returns the stored state of a machine. Unreadable state counts as lost: the machine is created again.
func readState(notes *simulated.Notes, name string) machineState {
	var n machineState
	if err := json.Unmarshal(notes.Get(name), &n); err != nil {
		return machineState{}
	}
	return n
}

func unreachableFault(cluster string) error {
	return fault.New(fault.Unreachable, "WaitingForControlPlane",
		"Waiting for the simulated control plane of Cluster %s: simulated machines need a HostedControlPlane with spec.backend.simulated, or a control plane on simulated machines", cluster)
}
