package creation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/cluster"
	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
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
	// ReasonNetworkDenied says that the operator does not allow the range that was named; the kind is Invalid.
	ReasonNetworkDenied = "NetworkDenied"
	// ReasonNetworkTaken says that the range that was named is in use; the kind is Invalid.
	ReasonNetworkTaken = "NetworkTaken"
)

// Host is what is known of the host that a cluster's network is to be on.
type Host struct {
	// Routes lead to what it reaches.
	Routes []netip.Prefix
	// Networks that its operator allows; nil: not known.
	Networks *policy.Networks
}

// Network returns a range for a new cluster that no cluster of the management cluster and none of the host's routes use, and that the
// operator allows. A reader of nil asks no management cluster.
func Network(ctx context.Context, r client.Reader, host Host) (netip.Prefix, error) {
	used, err := networks(ctx, r)
	if err != nil {
		return netip.Prefix{}, err
	}
	free, ok := host.choose(used)
	if !ok {
		return netip.Prefix{}, fault.New(fault.Invalid, ReasonNoNetwork,
			"no network is free for another cluster: delete one that is not needed any more, or name a range with --subnet")
	}
	return free, nil
}

// CheckNetwork tells whether a new cluster can have the range: the error, a fault of kind Invalid, names who uses it and a range
// that is free, or what the operator allows. What the cluster of that name uses itself does not count: that it exists is another matter.
func CheckNetwork(ctx context.Context, r client.Reader, key client.ObjectKey, want netip.Prefix, host Host) error {
	if denied := host.denies(want); denied != "" {
		return fault.New(fault.Invalid, ReasonNetworkDenied, "--subnet: %s", denied)
	}
	used, err := networks(ctx, r)
	if err != nil {
		return err
	}
	owner := ""
	for _, u := range used {
		switch {
		case !slices.ContainsFunc(u.ranges, want.Overlaps):
		case u.objects.Has(key):
			return nil
		case owner == "":
			owner = "cluster " + u.name
		}
	}
	if i := slices.IndexFunc(host.Routes, want.Overlaps); owner == "" && i >= 0 {
		owner = "a network of this host, " + host.Routes[i].Masked().String()
	}
	if owner == "" {
		return nil
	}
	hint := "delete a cluster that is not needed any more"
	if free, ok := host.choose(used); ok {
		hint = "free is " + free.String()
	}
	return fault.New(fault.Invalid, ReasonNetworkTaken, "--subnet %s is taken by %s; %s", want, owner, hint)
}

// halves is the size of the networks that [Half] chooses.
const halves = 16

// Half returns the first two numbers of a range of 16 bits, for a template that leaves them open: those that the cluster of that name has,
// else those of a range that is free, the highest of 172.16.0.0/12. Empty: none is free or allowed.
func Half(ctx context.Context, r client.Reader, key client.ObjectKey, host Host) (string, error) {
	used, err := networks(ctx, r)
	if err != nil {
		return "", err
	}
	taken := slices.Clone(host.Routes)
	for _, u := range used {
		if u.objects.Has(key) && u.ranges[0].Addr().Is4() {
			return half(u.ranges[0]), nil
		}
		taken = append(taken, u.ranges...)
	}
	for n := byte(31); n >= 16; n-- {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, n}), halves)
		if !slices.ContainsFunc(taken, p.Overlaps) && host.denies(p) == "" {
			return half(p), nil
		}
	}
	return "", nil
}

func half(p netip.Prefix) string {
	numbers := p.Addr().As4()
	return fmt.Sprintf("%d.%d", numbers[0], numbers[1])
}

// use is which ranges a cluster has, or asks for.
type use struct {
	name    string
	objects sets.Set[client.ObjectKey] // the Cluster, or its LocalCluster
	ranges  []netip.Prefix
}

func networks(ctx context.Context, r client.Reader) ([]use, error) {
	if r == nil {
		return nil, nil
	}
	var existing localv1.LocalClusterList
	var asked clusterv1.ClusterList
	if err := errors.Join(r.List(ctx, &existing), r.List(ctx, &asked)); err != nil {
		return nil, fmt.Errorf("listing the networks of clusters: %w", err)
	}
	var used []use
	for _, c := range existing.Items {
		name := cmp.Or(c.Labels[clusterv1.ClusterNameLabel], c.Name)
		if ranges := manifest.Taken([]localv1.LocalCluster{c}); len(ranges) > 0 {
			used = append(used, use{c.Namespace + "/" + name, sets.New(client.ObjectKeyFromObject(&c), client.ObjectKey{Namespace: c.Namespace, Name: name}), ranges})
		}
	}
	for _, c := range asked.Items {
		if ranges := manifest.Asked(c); len(ranges) > 0 {
			used = append(used, use{c.Namespace + "/" + c.Name, sets.New(client.ObjectKeyFromObject(&c)), ranges})
		}
	}
	return used, nil
}

// denies says why the operator does not allow the range; empty: it is allowed, or not known.
func (h Host) denies(want netip.Prefix) string {
	if h.Networks == nil {
		return ""
	}
	return policy.Configuration{Networks: *h.Networks}.DeniedRange(want)
}

func (h Host) choose(used []use) (netip.Prefix, bool) {
	taken := slices.Clone(h.Routes)
	for _, u := range used {
		taken = append(taken, u.ranges...)
	}
	allowed := policy.Default().Networks
	if h.Networks != nil {
		allowed = *h.Networks
	}
	return subnet.Choose(subnet.Request{Taken: taken, Allowed: allowed.Ranges, Widest: allowed.WidestPrefix})
}

// Install creates those of the objects that do not exist, in their order: a class that people have is theirs.
func Install(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	w := kube.NewWriter(c, manager)
	for _, o := range objects {
		switch err := absent(ctx, c, o, nil); {
		case fault.KindOf(err) == fault.Invalid:
			continue
		case err != nil:
			return err
		}
		if err := apply(ctx, w, o); err != nil {
			return namespaced(o, err)
		}
	}
	return nil
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
			if err := apply(ctx, w, o); err != nil {
				return namespaced(o, err)
			}
		}
	}
	return nil
}

// apply applies an object with a copy of it, as `kubectl create --save-config` makes it: `kubectl apply` of a manifest that has the same
// object finds what was applied last, and does not warn.
func apply(ctx context.Context, w *kube.Writer, o *unstructured.Unstructured) error {
	plain, saved := o.DeepCopy(), o.DeepCopy()
	if plain.GetAnnotations() == nil {
		plain.SetAnnotations(map[string]string{})
	}
	text, err := plain.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	kube.Annotate(saved, corev1.LastAppliedConfigAnnotation, new(string(text)))
	return w.Apply(ctx, nil, saved)
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
