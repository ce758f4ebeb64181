package creation

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/cluster"
	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// manager is the name of the field manager without its prefix.
const manager = "cli"

// Reasons of the faults of this package.
const (
	// ReasonExists says that an object of the manifest exists already; the kind is Invalid.
	ReasonExists = "ClusterExists"
	// ReasonNoNetwork says that no range of addresses is free; the kind is Invalid.
	ReasonNoNetwork = "NoFreeNetwork"
	// ReasonNetworkTaken says that the range that was named is in use; the kind is Invalid.
	ReasonNetworkTaken = "NetworkTaken"
)

// Network returns a range for a new cluster that no LocalCluster of the management cluster and none of the routes
// (those of this host) use. A reader of nil asks no management cluster.
func Network(ctx context.Context, r client.Reader, routes []netip.Prefix) (netip.Prefix, error) {
	clusters, err := networks(ctx, r)
	if err != nil {
		return netip.Prefix{}, err
	}
	free, ok := choose(clusters, routes)
	if !ok {
		return netip.Prefix{}, fault.New(fault.Invalid, ReasonNoNetwork,
			"no network is free for another cluster: delete one that is not needed any more, or name a range with --subnet")
	}
	return free, nil
}

// CheckNetwork tells whether a new cluster can have the range: the error, a fault of kind Invalid, names who uses it and a range
// that is free. What the cluster of that name uses itself does not count: that it exists is another matter.
func CheckNetwork(ctx context.Context, r client.Reader, key client.ObjectKey, want netip.Prefix, routes []netip.Prefix) error {
	clusters, err := networks(ctx, r)
	if err != nil {
		return err
	}
	owner := ""
	for _, c := range clusters {
		if !slices.ContainsFunc(manifest.Taken([]localv1.LocalCluster{c}), want.Overlaps) {
			continue
		}
		if client.ObjectKeyFromObject(&c) == key {
			return nil
		}
		if owner == "" {
			owner = "cluster " + c.Namespace + "/" + nameOf(c)
		}
	}
	if i := slices.IndexFunc(routes, want.Overlaps); owner == "" && i >= 0 {
		owner = "a network of this host, " + routes[i].Masked().String()
	}
	if owner == "" {
		return nil
	}
	hint := "delete a cluster that is not needed any more"
	if free, ok := choose(clusters, routes); ok {
		hint = "free is " + free.String()
	}
	return fault.New(fault.Invalid, ReasonNetworkTaken, "--subnet %s is taken by %s; %s", want, owner, hint)
}

// nameOf is the Cluster that a LocalCluster belongs to.
func nameOf(c localv1.LocalCluster) string {
	if name := c.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	return c.Name
}

func networks(ctx context.Context, r client.Reader) ([]localv1.LocalCluster, error) {
	var list localv1.LocalClusterList
	if r == nil {
		return nil, nil
	}
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the networks of clusters: %w", err)
	}
	return list.Items, nil
}

func choose(clusters []localv1.LocalCluster, routes []netip.Prefix) (netip.Prefix, bool) {
	return subnet.Choose(subnet.Usual(slices.Concat(routes, manifest.Taken(clusters))))
}

// Apply creates the objects by server-side apply. It is refused when one of them exists: a Cluster is changed with
// kubectl, not created twice. What clusters share ([manifest.Shared]) may exist, and is brought up to date. The first
// object is taken for the Cluster.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if manifest.Shared(o) {
			continue
		}
		if err := absent(ctx, c, o, objects[0]); err != nil {
			return err
		}
	}
	for _, through := range []client.Client{client.NewDryRunClient(c), c} {
		w := kube.NewWriter(through, manager)
		for _, o := range objects {
			if err := w.Apply(ctx, nil, o); err != nil {
				return namespaced(o, err)
			}
		}
	}
	return nil
}

func absent(ctx context.Context, r client.Reader, o, first *unstructured.Unstructured) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(o.GroupVersionKind())
	err := r.Get(ctx, client.ObjectKeyFromObject(o), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	case o == first:
		return fault.New(fault.Invalid, ReasonExists, "cluster %q exists already in namespace %q: see `slipway describe cluster %s`, or choose another name",
			o.GetName(), o.GetNamespace(), o.GetName())
	}
	return fault.New(fault.Invalid, ReasonExists, "%s %q exists already in namespace %q: delete it, or choose another name for the cluster",
		o.GetKind(), o.GetName(), o.GetNamespace())
}

// namespaced says what to do when it is the namespace that does not exist.
func namespaced(o *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	if d := status.Status().Details; d != nil && d.Kind == "namespaces" {
		return fault.New(fault.Gone, cluster.ReasonNamespace, "there is no namespace %q; `slipway kubectl create namespace %s` creates it",
			o.GetNamespace(), o.GetNamespace()).From(err)
	}
	return err
}

// Delete asks for the deletion of the Cluster; its controllers do the rest, and what they write meanwhile changes nothing.
// A Cluster that is going already is left alone.
func Delete(ctx context.Context, c client.Client, key client.ObjectKey) error {
	found := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kube.NewWriter(c, manager).DeleteAnyway(ctx, found)
}
