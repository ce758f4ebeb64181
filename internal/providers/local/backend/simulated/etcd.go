package simulated

import (
	"context"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/recovery"
	"github.com/slipwayhq/slipway/internal/simulated/etcd"
)

// members are those of the cluster of a machine.
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

// Rebuild implements backend.Etcds.
func (m *Machines) Rebuild(_ context.Context, ref backend.Ref, id string) error {
	members, err := m.members(ref)
	if err != nil {
		return err
	}
	return members.Rebuild(backend.Hostname(ref.Object.Name), id)
}

// Rebuilt implements backend.Etcds.
func (m *Machines) Rebuilt(_ context.Context, ref backend.Ref, id string) (backend.Progress, error) {
	members, err := m.members(ref)
	if err != nil {
		return backend.Progress{}, err
	}
	if members.Rebuilt() == id {
		return backend.Progress{Phase: backend.Succeeded}, nil
	}
	return backend.Progress{Phase: backend.NotStarted}, nil
}
