package simulated

import (
	"context"
	"io"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/recovery"
	"github.com/slipwayhq/slipway/internal/simulated/etcd"
)

// members returns the etcd cluster of the machine's cluster.
func (m *Machines) members(ref backend.Ref) (*etcd.Cluster, error) {
	members := m.server.Etcd(clusterOf(ref))
	if members == nil {
		return nil, absent(ref.Cluster)
	}
	return members, nil
}

// Survey implements backend.Etcds.
func (m *Machines) Survey(_ context.Context, ref backend.Ref) (recovery.Member, error) {
	members, err := m.members(ref)
	if err != nil {
		return recovery.Member{}, err
	}
	host := backend.Hostname(ref.Object.Name)
	for _, one := range members.Members() {
		if one.Name == host && !one.Stopped {
			return recovery.Member{Leader: members.HasQuorum(), Index: members.Term()}, nil
		}
	}
	return recovery.Member{}, fault.New(fault.Invalid, "EtcdMemberSilent", "The member of etcd on machine %s does not answer", ref.Name)
}

// Rebuild implements backend.Etcds. Simulated members have no data, so the content of a snapshot is not restored.
func (m *Machines) Rebuild(_ context.Context, ref backend.Ref, order recovery.Order) error {
	members, err := m.members(ref)
	if err != nil {
		return err
	}
	if order.Step == recovery.Restore && members.Staged() != order.ID {
		return fault.New(fault.Invalid, "SnapshotNotStaged", "No snapshot was staged on machine %s", ref.Name)
	}
	return members.Rebuild(backend.Hostname(ref.Object.Name), order.ID)
}

// Rebuilt implements backend.Etcds.
func (m *Machines) Rebuilt(_ context.Context, ref backend.Ref, order recovery.Order) (backend.Progress, error) {
	members, err := m.members(ref)
	if err != nil {
		return backend.Progress{}, err
	}
	if members.Rebuilt() == order.ID {
		return backend.Progress{Phase: backend.Succeeded}, nil
	}
	return backend.Progress{Phase: backend.NotStarted}, nil
}

// Stage implements backend.Etcds. It reads the snapshot to detect errors in it.
func (m *Machines) Stage(_ context.Context, ref backend.Ref, order recovery.Order, content func(io.Writer) error) error {
	members, err := m.members(ref)
	if err != nil {
		return err
	}
	if err := content(io.Discard); err != nil {
		return err
	}
	return members.Stage(order.ID)
}

// Staged implements backend.Etcds.
func (m *Machines) Staged(_ context.Context, ref backend.Ref, order recovery.Order) (bool, error) {
	members, err := m.members(ref)
	if err != nil {
		return false, err
	}
	return members.Staged() == order.ID, nil
}
