package container

import (
	"context"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// containerItem identifies a container for the records of package hosttransfer. Existing records contain the values of
// the functions below, so they must not change.
func containerItem(id, name string, labels map[string]string) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Container, ID: id, Name: name, Creator: labels[backend.LabelInstance], Object: labels[backend.LabelObject]}
}

func itemOf(c container.Summary) hosttransfer.Item {
	return containerItem(c.ID, summaryName(c), c.Labels)
}

func networkItem(n network.Summary) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Network, ID: n.ID, Name: n.Name, Creator: n.Labels[backend.LabelInstance], Object: n.Labels[backend.LabelObject]}
}

// volumeItem identifies a volume by its name and creation time, because a later volume can have the same name.
func volumeItem(v volume.Volume) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Volume, ID: v.Name + "@" + v.CreatedAt, Name: v.Name, Creator: v.Labels[backend.LabelInstance], Object: v.Labels[backend.LabelObject]}
}

// ListOwned returns the host resources of the Cluster with this namespace and name that belong to this instance, for
// `slipway move`.
func (e *Engine) ListOwned(ctx context.Context, cluster string) ([]hosttransfer.Item, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	own, err := e.listOwnResources(ctx, client.Filters{}.Add("label", backend.LabelCluster+"="+cluster))
	if err != nil {
		return nil, err
	}
	return own.items(), nil
}

// prune deletes the records of resources that no longer exist, after a sweep.
func (e *Engine) prune(ctx context.Context) error {
	there, err := e.listResources(ctx, anyInstanceFilter())
	if err != nil {
		return err
	}
	type key struct {
		kind hosttransfer.Kind
		id   string
	}
	exists := map[key]bool{}
	for _, i := range there.items() {
		exists[key{i.Kind, i.ID}] = true
	}
	return e.ownership.Prune(func(i hosttransfer.Item) bool { return exists[key{i.Kind, i.ID}] })
}
