package container

import (
	"context"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// isOwned reports whether an item, whichever instance created it, belongs to this instance.
func (e *Engine) isOwned(i hosttransfer.Item) (bool, error) {
	holdings, err := e.ownership.Ownership()
	return holdings.Owns(i), err
}

func containerItem(id, name string, labels map[string]string) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Container, ID: id, Name: name, Creator: labels[backend.LabelInstance], Object: labels[backend.LabelObject]}
}

func itemOf(c container.Summary) hosttransfer.Item {
	return containerItem(c.ID, strings.TrimPrefix(c.Names[0], "/"), c.Labels)
}

func networkItem(n network.Summary) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Network, ID: n.ID, Name: n.Name, Creator: n.Labels[backend.LabelInstance], Object: n.Labels[backend.LabelObject]}
}

// volumeItem identifies a volume by its name and creation time, because a later volume can have the same name.
func volumeItem(v volume.Volume) hosttransfer.Item {
	return hosttransfer.Item{Kind: hosttransfer.Volume, ID: v.Name + "@" + v.CreatedAt, Name: v.Name, Creator: v.Labels[backend.LabelInstance], Object: v.Labels[backend.LabelObject]}
}

// ListOwned returns the host resources of the Cluster with this namespace and name that belong to this instance.
func (e *Engine) ListOwned(ctx context.Context, cluster string) ([]hosttransfer.Item, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	of, err := e.listItems(ctx, client.Filters{}.Add("label", backend.LabelCluster+"="+cluster))
	if err != nil {
		return nil, err
	}
	holdings, err := e.ownership.Ownership()
	if err != nil {
		return nil, err
	}
	var out []hosttransfer.Item
	for _, i := range of {
		if holdings.Owns(i) {
			out = append(out, i)
		}
	}
	return out, nil
}

// listItems lists the containers, networks and volumes that match the filters.
func (e *Engine) listItems(ctx context.Context, filters client.Filters) ([]hosttransfer.Item, error) {
	containers, err := e.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, e.fault("listing containers", err)
	}
	networks, err := e.api.NetworkList(ctx, client.NetworkListOptions{Filters: filters})
	if err != nil {
		return nil, e.fault("listing networks", err)
	}
	volumes, err := e.api.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return nil, e.fault("listing volumes", err)
	}
	var out []hosttransfer.Item
	for _, c := range containers.Items {
		out = append(out, itemOf(c))
	}
	for _, n := range networks.Items {
		out = append(out, networkItem(n))
	}
	for _, v := range volumes.Items {
		out = append(out, volumeItem(v))
	}
	return out, nil
}

// prune deletes the records of resources that no longer exist.
func (e *Engine) prune(ctx context.Context) error {
	there, err := e.listItems(ctx, anyInstanceFilter())
	if err != nil {
		return err
	}
	exists := map[hosttransfer.Kind]map[string]bool{hosttransfer.Container: {}, hosttransfer.Network: {}, hosttransfer.Volume: {}}
	for _, i := range there {
		exists[i.Kind][i.ID] = true
	}
	return e.ownership.Prune(func(i hosttransfer.Item) bool { return exists[i.Kind][i.ID] })
}
