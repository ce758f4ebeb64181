package machine

import (
	"context"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/version"
)

// stager copies etcd snapshots onto the machines of control planes, for the action stageSnapshot. It finds the snapshot
// of an order in the store of a policy in the machine's namespace, checks that the control plane can run with it, and
// streams it to the machine in a background job, one per namespace at a time. The data that the machine uses are not
// changed.
type stager struct {
	snapshots.Retriever
	Jobs *jobs.Runner
}

// stagingTarget is the machine that receives a snapshot. controller.stage (etcd.go) fills it in.
type stagingTarget struct {
	// Machine is its LocalMachine, Version its Kubernetes version.
	Machine client.ObjectKey
	Version string
	// Cluster of the machine.
	Cluster snapshots.Cluster
	// Stage writes the output of content to the machine as a snapshot. If it returns an error, the snapshot is not
	// staged.
	Stage func(ctx context.Context, content func(io.Writer) error) error
}

func jobKey(machine client.ObjectKey) string {
	return jobs.Key("LocalMachine", machine, "etcd")
}

// stagingState is the progress of an order. The zero value means that it has not started.
type stagingState struct {
	// Running is set while the order runs or waits for others.
	Running bool
	// Err is the error of a finished order. Nil: it succeeded, or is not finished.
	Err error
}

// State returns the progress of an order in this process. readStaging (etcd.go) calls it.
func (s *stager) State(machine client.ObjectKey, order recovery.EtcdOrder) stagingState {
	if s == nil || s.Jobs == nil {
		return stagingState{Err: fault.New(fault.Invalid, "RestoreImpossible", "This manager has no snapshot stores")}
	}
	job := s.Jobs.State(jobKey(machine))
	same := job.What == order.String()
	out := stagingState{Running: job.Running || job.Busy && !(same && job.Err != nil)}
	if same && !job.Running {
		out.Err = job.Err
	}
	return out
}

// Start starts an order, unless others have to end first. controller.stage (etcd.go) calls it. State returns an error
// if there are no Jobs, so that no order is started then.
func (s *stager) Start(to stagingTarget, order recovery.EtcdOrder) {
	s.Jobs.Start(jobKey(to.Machine), order.String(), func(ctx context.Context) error { return s.stage(ctx, to, order.Snapshot) })
}

func (s *stager) stage(ctx context.Context, to stagingTarget, want recovery.Snapshot) error {
	found, err := s.Find(ctx, to.Cluster, snapshots.RetrievalRequest{Policy: want.Policy, Snapshot: want.Name, IdentitySecret: want.IdentitySecret, OtherCluster: want.OtherCluster})
	if err != nil {
		return err
	}
	if err := checkSnapshotVersion(found.Manifest, to.Version); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshots.Timeout)
	defer cancel()
	return to.Stage(ctx, func(w io.Writer) error { return found.Copy(ctx, w) })
}

// checkSnapshotVersion returns an error if a control plane of the version cannot run with the snapshot. The snapshot
// contains the kubeadm configuration, the add-ons and their RBAC of its own version, which new machines would use to
// join.
func checkSnapshotVersion(m snapshots.Manifest, to string) error {
	if m.EncryptionKeys != "" {
		return fault.New(fault.Invalid, "SnapshotEncryptionKeys", "Snapshot %s is of a HostedControlPlane that encrypts objects: machines do not have its keys", m.Name)
	}
	from, err := version.Parse(m.Kubernetes)
	if err != nil {
		return fault.New(fault.Invalid, "SnapshotVersion", "Snapshot %s does not record its Kubernetes version", m.Name).From(err)
	}
	have, err := version.Parse(to)
	if err != nil {
		return fault.New(fault.Invalid, "SnapshotVersion", "The version of the Machine is invalid").From(err)
	}
	if from.Major != have.Major || from.Minor != have.Minor {
		return fault.New(fault.Invalid, "SnapshotVersion", "Snapshot %s is of Kubernetes %s, and the control plane runs %s: use a snapshot of the same minor version", m.Name, m.Kubernetes, to)
	}
	return nil
}
