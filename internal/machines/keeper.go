package machines

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Keeper creates, changes and deletes the Machines of owners.
type Keeper struct {
	// Live reads past the cache, which does not have every field manager.
	Live   client.Reader
	Writer *kube.Writer
	// Manager is the field manager of the owner, which the Machines are created with, too. MetadataManager applies the metadata of
	// clones.
	Manager, MetadataManager string
	// Former are field managers that applied before what Manager applies now: their share of what follows the template is handed
	// over.
	Former []string
	// Exclusive: the former managers are those of this owner alone, so that labels and annotations which the owner does not want any
	// more are handed over as well, and removed.
	Exclusive bool
	// Pending remembers what was created and deleted; nil: the owner does not count.
	Pending *Pending
}

// Sync applies the desired Machine, as [InPlace] returns it.
func (k Keeper) Sync(ctx context.Context, live, want *clusterv1.Machine) error {
	if err := k.takeOver(ctx, live, want); err != nil {
		return err
	}
	u, err := Applied(want)
	if err != nil {
		return err
	}
	return k.Writer.Named(k.Manager).Apply(ctx, nil, u)
}

// takeOver hands the fields that older programs applied to a Machine over to the manager that applies them now, once: it could
// not change or remove them otherwise.
func (k Keeper) takeOver(ctx context.Context, m, want *clusterv1.Machine) error {
	if owned := kube.OwnedMetadata(m, k.Manager); len(owned.Labels)+len(owned.Annotations) > 0 {
		return nil
	}
	live := &clusterv1.Machine{}
	if err := k.Live.Get(ctx, client.ObjectKeyFromObject(m), live); err != nil {
		return fmt.Errorf("reading Machine %s: %w", m.Name, err)
	}
	return k.Writer.Named(k.Manager).HandOver(ctx, live, kube.HandOver{
		From: k.Former, To: k.Manager, Takes: func(p fieldpath.Path) bool { return k.claims(want, p) },
	})
}

// claims reports whether a field of a Machine is one that its owner applies.
func (k Keeper) claims(want *clusterv1.Machine, p fieldpath.Path) bool {
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

// namesKey reports whether the path is that of one of the keys.
func namesKey(keys map[string]string, p fieldpath.Path) bool {
	if len(p) != 3 || p[2].FieldName == nil {
		return false
	}
	_, ok := keys[*p[2].FieldName]
	return ok
}
