package machines

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/kube"
)

// MachineWriter creates, changes and deletes the Machines of owners. The MachineSet, KubeadmControlPlane and
// MachinePool controllers create it when they run an action.
type MachineWriter struct {
	// Live reads from the API server, because the cache does not contain all managed fields.
	Live   client.Reader
	Writer *kube.Writer
	// Manager is the owner's field manager, with which Machines are created and updated. MetadataManager applies the
	// metadata of clones. Their names must not change, because fields of existing objects belong to them.
	Manager, MetadataManager string
	// Former are field managers that previously applied the fields that Manager applies now. The ownership of their
	// fields that follow the template is transferred to Manager.
	Former []string
	// Exclusive is set if only this owner used the former managers. Labels and annotations that the owner no longer
	// wants are then transferred as well, so that they can be removed.
	Exclusive bool
	// Pending remembers created and deleted Machines. It is nil if the owner does not count Machines.
	Pending *Pending
}

// Sync applies the desired Machine, as returned by [InPlace]. [MachineWriter.Act] calls it, and the MachinePool
// controller for Machines of pools.
func (k MachineWriter) Sync(ctx context.Context, live, want *clusterv1.Machine) error {
	if err := k.transferFieldOwnership(ctx, live, want); err != nil {
		return err
	}
	u, err := Applied(want)
	if err != nil {
		return err
	}
	return k.Writer.WithManager(k.Manager).Apply(ctx, nil, u)
}

// transferFieldOwnership transfers the ownership of fields that older programs applied to the current field manager,
// once. Without the transfer the current manager could not change or remove them.
func (k MachineWriter) transferFieldOwnership(ctx context.Context, m, want *clusterv1.Machine) error {
	if owned := kube.OwnedMetadata(m, k.Manager); len(owned.Labels)+len(owned.Annotations) > 0 {
		return nil
	}
	live := &clusterv1.Machine{}
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	return k.Writer.WithManager(k.Manager).TransferOwnership(ctx, live, kube.OwnershipTransfer{
		From: k.Former, To: k.Manager, Takes: func(p fieldpath.Path) bool { return k.claims(want, p) },
	})
}

// claims reports whether the owner applies a field of a Machine.
func (k MachineWriter) claims(want *clusterv1.Machine, p fieldpath.Path) bool {
	if len(p) < 2 || p[0].FieldName == nil || p[1].FieldName == nil {
		return false
	}
	switch *p[0].FieldName + "." + *p[1].FieldName {
	case "metadata.labels":
		return k.Exclusive || namesKey(want.Labels, p)
	case "metadata.annotations":
		return k.Exclusive || namesKey(want.Annotations, p)
	case "spec.readinessGates", "spec.minReadySeconds", "spec.deletion", "spec.taints":
		return true
	}
	return false
}

// namesKey reports whether the path refers to one of the keys.
func namesKey(keys map[string]string, p fieldpath.Path) bool {
	if len(p) != 3 || p[2].FieldName == nil {
		return false
	}
	_, ok := keys[*p[2].FieldName]
	return ok
}
