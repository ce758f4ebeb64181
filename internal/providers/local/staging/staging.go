// Package staging brings snapshots of etcd onto machines of control planes.
//
// Does: finds the snapshot that an order names, in the store of a policy of the namespace of the machine, checks that it fits there, and
// sends it, beside the controllers: one of each namespace at a time.
//
// Never: decides when, changes what a machine uses, or opens a snapshot.
//
// Read first: [Stager.Start].
package staging

import (
	"context"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/recovery"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/snapshots/jobs"
	"github.com/slipwayhq/slipway/internal/snapshots/retrieval"
	"github.com/slipwayhq/slipway/internal/version"
)

// Stager stages snapshots.
type Stager struct {
	retrieval.Source
	Jobs *jobs.Jobs
}

// Target is the machine that a snapshot is brought to.
type Target struct {
	// Machine is its LocalMachine, Version that of its Kubernetes.
	Machine client.ObjectKey
	Version string
	// Cluster is the one of the machine.
	Cluster snapshots.Cluster
	// Stage puts a snapshot there that content writes; it counts only where that has no error.
	Stage func(ctx context.Context, content func(io.Writer) error) error
}

func keyOf(machine client.ObjectKey) string { return jobs.Key("LocalMachine", machine, "etcd") }

// State is how far an order is. The zero value: it has not begun.
type State struct {
	// Running tells that it is under way, or that it waits for others.
	Running bool
	// Err is how it ended; nil: well, or it has not.
	Err error
}

// State returns how far an order is in this process.
func (s *Stager) State(machine client.ObjectKey, order recovery.Order) State {
	if s == nil || s.Jobs == nil {
		return State{Err: fault.New(fault.Invalid, "RestoreImpossible", "This manager has no stores of snapshots")}
	}
	job := s.Jobs.State(keyOf(machine))
	same := job.What == order.String()
	out := State{Running: job.Running || job.Busy && !(same && job.Err != nil)}
	if same && !job.Running {
		out.Err = job.Err
	}
	return out
}

// Start begins an order, unless others have to end before.
func (s *Stager) Start(to Target, order recovery.Order) {
	s.Jobs.Start(keyOf(to.Machine), order.String(), func(ctx context.Context) error { return s.stage(ctx, to, order.Snapshot) })
}

func (s *Stager) stage(ctx context.Context, to Target, want recovery.Snapshot) error {
	found, err := s.Find(ctx, to.Cluster, retrieval.Wanted{Policy: want.Policy, Snapshot: want.Name, IdentitySecret: want.IdentitySecret, OtherCluster: want.OtherCluster})
	if err != nil {
		return err
	}
	if err := fits(found.Manifest, to.Version); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshots.Timeout)
	defer cancel()
	return to.Stage(ctx, func(w io.Writer) error { return found.Copy(ctx, w) })
}

// fits refuses a snapshot that a control plane of the version cannot run with. kubeadm's configuration, the add-ons and their rights in a
// snapshot are those of its version: new machines would join with it.
func fits(m snapshots.Manifest, to string) error {
	if m.EncryptionKeys != "" {
		return fault.New(fault.Invalid, "SnapshotEncryptionKeys", "Snapshot %s is of a HostedControlPlane that encrypts objects: its keys are not on machines", m.Name)
	}
	from, err := version.Parse(m.Kubernetes)
	if err != nil {
		return fault.New(fault.Invalid, "SnapshotVersion", "Snapshot %s does not say which version of Kubernetes wrote it", m.Name).From(err)
	}
	have, err := version.Parse(to)
	if err != nil {
		return fault.New(fault.Invalid, "SnapshotVersion", "The version of the Machine cannot be read").From(err)
	}
	if from.Major != have.Major || from.Minor != have.Minor {
		return fault.New(fault.Invalid, "SnapshotVersion", "Snapshot %s is of Kubernetes %s, and the control plane runs %s: use one of the same minor version", m.Name, m.Kubernetes, to)
	}
	return nil
}
