package machines

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Keeper applies what an owner says of its Machines.
type Keeper struct {
	// Live reads past the cache, which does not have every field manager.
	Live   client.Reader
	Writer *kube.Writer
	// Manager is the field manager of the owner, which the Machines are created with, too.
	Manager string
	// Former are field managers that said before what Manager says now: their share of what follows the template is handed
	// over.
	Former []string
	// Exclusive: the former managers are nobody else's, so that labels and annotations which the owner does not want any more
	// are handed over as well, and removed.
	Exclusive bool
}

// Sync makes a Machine what want says, as [InPlace] returns it.
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

// takeOver gives what older programs said of a Machine to the manager that says it now, once: it could not change or remove
// it otherwise.
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

// claims tells the fields of a Machine that its owner says.
func (k Keeper) claims(want *clusterv1.Machine, p fieldpath.Path) bool {
	if len(p) < 2 || p[0].FieldName == nil || p[1].FieldName == nil {
		return false
	}
	switch *p[0].FieldName + "." + *p[1].FieldName {
	case "metadata.labels":
		return k.Exclusive || names(want.Labels, p)
	case "metadata.annotations":
		return k.Exclusive || names(want.Annotations, p)
	case "spec.readinessGates", "spec.minReadySeconds", "spec.deletion", "spec.taints":
		return true
	}
	return false
}

// names reports whether the path is that of one of the keys.
func names(keys map[string]string, p fieldpath.Path) bool {
	if len(p) != 3 || p[2].FieldName == nil {
		return false
	}
	_, ok := keys[*p[2].FieldName]
	return ok
}
