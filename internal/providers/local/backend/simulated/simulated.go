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

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// Backend implements backend.Simulation.
type Backend struct {
	server *simulated.Server
	now    func() time.Time
}

var _ backend.Simulation = (*Backend)(nil)

// New returns the backend for the clusters of a server.
func New(s *simulated.Server) *Backend { return &Backend{server: s, now: time.Now} }

// note is what is written down about a machine.
type note struct {
	Owner  types.UID `json:"owner,omitempty"`
	Booted time.Time `json:"booted,omitzero"`
	// Joined is when its Node was made.
	Joined   time.Time `json:"joined,omitzero"`
	NotReady bool      `json:"notReady,omitempty"`
}

// Inspect implements backend.Simulation.
func (b *Backend) Inspect(_ context.Context, cluster types.NamespacedName, name string) (backend.SimulatedMachine, error) {
	notes, err := b.notes(cluster)
	if err != nil {
		return backend.SimulatedMachine{}, err
	}
	n := read(notes, name)
	return backend.SimulatedMachine{
		Owner: n.Owner, Booted: n.Booted, Joined: !n.Joined.IsZero(), Since: n.Joined, NotReady: n.NotReady,
	}, nil
}

// Boot implements backend.Simulation.
func (b *Backend) Boot(_ context.Context, cluster types.NamespacedName, spec backend.SimulatedNode) error {
	return b.change(cluster, spec.Name, func(n *note) { *n = note{Owner: spec.Owner, Booted: spec.At} })
}

// Join implements backend.Simulation.
func (b *Backend) Join(ctx context.Context, cluster types.NamespacedName, spec backend.SimulatedNode) error {
	ctx, client := b.server.Workload(ctx, cluster)
	if client == nil {
		return absent(cluster)
	}
	if spec.Version == "" {
		spec.Version = b.server.StatusOf(cluster).Spec.Version
	}
	nodes := client.CoreV1().Nodes()
	wanted := newNode(spec)
	_, err := nodes.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = replace(ctx, client, wanted)
	}
	if err != nil {
		return fmt.Errorf("making Node %s: %w", spec.Name, err)
	}
	return b.change(cluster, spec.Name, func(n *note) {
		if n.Booted.IsZero() {
			n.Booted = spec.At
		}
		n.Owner, n.Joined, n.NotReady = spec.Owner, spec.At, false
	})
}

// replace makes the Node anew where one of its name is another machine's.
func replace(ctx context.Context, client kubernetes.Interface, wanted *corev1.Node) error {
	nodes := client.CoreV1().Nodes()
	old, err := nodes.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err == nil && old.Spec.ProviderID == wanted.Spec.ProviderID {
		return nil
	}
	if err == nil {
		err = nodes.Delete(ctx, wanted.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = nodes.Create(ctx, wanted, metav1.CreateOptions{})
	return err
}

// SetReady implements backend.Simulation.
func (b *Backend) SetReady(ctx context.Context, cluster types.NamespacedName, name string, ready bool) error {
	ctx, client := b.server.Workload(ctx, cluster)
	if client == nil {
		return absent(cluster)
	}
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		setReady(node, readiness(ready), metav1.NewTime(b.now()))
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing the status of Node %s: %w", name, err)
	}
	return b.change(cluster, name, func(n *note) { n.NotReady = !ready })
}

// Remove implements backend.Simulation.
func (b *Backend) Remove(_ context.Context, cluster types.NamespacedName, name string) error {
	if notes := b.server.Notes(cluster); notes != nil {
		return notes.Delete(name)
	}
	return nil
}

// Subscribe implements backend.Simulation.
func (b *Backend) Subscribe(tell func(cluster types.NamespacedName)) (cancel func()) {
	return b.server.Subscribe(func(name string) {
		if st := b.server.Status(name); st.Running {
			tell(st.Spec.Cluster)
		}
	})
}

func (b *Backend) notes(cluster types.NamespacedName) (*simulated.Notes, error) {
	if notes := b.server.Notes(cluster); notes != nil {
		return notes, nil
	}
	return nil, absent(cluster)
}

// change changes the note about a machine. One controller writes about a machine, one pass at a time.
func (b *Backend) change(cluster types.NamespacedName, name string, change func(*note)) error {
	notes, err := b.notes(cluster)
	if err != nil {
		return err
	}
	n := read(notes, name)
	change(&n)
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return notes.Set(name, data)
}

// read returns the note about a machine. One that cannot be read counts as lost: the machine is simulated anew.
func read(notes *simulated.Notes, name string) note {
	var n note
	if err := json.Unmarshal(notes.Get(name), &n); err != nil {
		return note{}
	}
	return n
}

func absent(cluster types.NamespacedName) error {
	return fault.New(fault.Unreachable, "WaitingForControlPlane",
		"waiting for the simulated control plane of Cluster %s: simulated machines need a HostedControlPlane with spec.backend.simulated", cluster.Name)
}
