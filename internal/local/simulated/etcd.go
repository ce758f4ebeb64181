package simulated

import (
	"context"
	"io"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// members returns the etcd cluster of the machine's cluster. The methods of this file implement backend.EtcdRecovery
// for the LocalMachine controller, with the etcd that package internal/simulated/store simulates.
func (m *simulatedMachines) members(ref backend.Ref) (*store.EtcdCluster, error) {
	members := m.server.Etcd(ref.ClusterKey())
	if members == nil {
		return nil, unreachableFault(ref.Cluster)
	}
	return members, nil
}

func (m *simulatedMachines) Survey(_ context.Context, ref backend.Ref) (recovery.MemberState, error) {
	members, err := m.members(ref)
	if err != nil {
		return recovery.MemberState{}, err
	}
	host := backend.Hostname(ref.Object.Name)
	for _, one := range members.Members() {
		if one.Name == host && !one.Stopped {
			return recovery.MemberState{Leader: members.HasQuorum(), Index: members.Term()}, nil
		}
	}
	return recovery.MemberState{}, fault.New(fault.Invalid, "EtcdMemberSilent", "The etcd member on machine %s does not answer", ref.Name)
}

// Rebuild implements backend.EtcdRecovery. Simulated members have no data, so the content of a snapshot is not
// restored.
func (m *simulatedMachines) Rebuild(_ context.Context, ref backend.Ref, order recovery.EtcdOrder) error {
	members, err := m.members(ref)
	if err != nil {
		return err
	}
	if order.Step == recovery.Restore && members.Staged() != order.ID {
		return fault.New(fault.Invalid, "SnapshotNotStaged", "No snapshot was staged on machine %s", ref.Name)
	}
	return members.Rebuild(backend.Hostname(ref.Object.Name), order.ID)
}

func (m *simulatedMachines) RebuildProgress(_ context.Context, ref backend.Ref, order recovery.EtcdOrder) (backend.Progress, error) {
	members, err := m.members(ref)
	if err != nil {
		return backend.Progress{}, err
	}
	if members.Rebuilt() == order.ID {
		return backend.Progress{Phase: backend.Succeeded}, nil
	}
	return backend.Progress{Phase: backend.NotStarted}, nil
}

// Stage implements backend.EtcdRecovery. It reads the snapshot to detect errors in it.
func (m *simulatedMachines) Stage(_ context.Context, ref backend.Ref, order recovery.EtcdOrder, content func(io.Writer) error) error {
	members, err := m.members(ref)
	if err != nil {
		return err
	}
	if err := content(io.Discard); err != nil {
		return err
	}
	return members.Stage(order.ID)
}

func (m *simulatedMachines) Staged(_ context.Context, ref backend.Ref, order recovery.EtcdOrder) (bool, error) {
	members, err := m.members(ref)
	if err != nil {
		return false, err
	}
	return members.Staged() == order.ID, nil
}
