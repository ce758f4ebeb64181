package create

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
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/policy"
)

// manager is the name of the field manager without its prefix.
const manager = "cli"

// Reasons of faults.
const (
	// reasonExists is the reason when an object of the manifest already exists; Invalid.
	reasonExists = "ClusterExists"
	// reasonNoNetwork is the reason when no subnet is available; Invalid.
	reasonNoNetwork = "NoFreeNetwork"
	// reasonNetworkDenied is the reason when the operator's policy does not allow the requested subnet; Invalid.
	reasonNetworkDenied = "NetworkDenied"
	// reasonNetworkTaken is the reason when the requested subnet is in use; Invalid.
	reasonNetworkTaken = "NetworkTaken"
)

// Host has the constraints of the host for the subnet of a cluster.
type Host struct {
	// Routes are the routes of the host.
	Routes []netip.Prefix
	// Networks are the subnets that the operator allows; nil if unknown.
	Networks *policy.Networks
}

// Network returns an unused subnet for a new cluster: it overlaps neither with clusters of the management cluster nor
// with routes of the host, and the operator allows it. If r is nil, no management cluster is checked.
func Network(ctx context.Context, r client.Reader, host Host) (netip.Prefix, error) {
	used, err := networks(ctx, r)
	if err != nil {
		return netip.Prefix{}, err
	}
	free, ok := host.choose(used)
	if !ok {
		return netip.Prefix{}, fault.New(fault.Invalid, reasonNoNetwork,
			"no network is free for another cluster: delete one that is not needed any more, or name a range with --subnet")
	}
	return free, nil
}

// CheckNetwork checks whether a new cluster can use a subnet. The Invalid fault names the owner of the subnet and an
// unused one, or what the operator allows. A subnet used by a cluster with the given name is accepted; whether the
// cluster already exists is checked elsewhere.
func CheckNetwork(ctx context.Context, r client.Reader, key client.ObjectKey, want netip.Prefix, host Host) error {
	if denied := host.denies(want); denied != "" {
		return fault.New(fault.Invalid, reasonNetworkDenied, "--subnet: %s", denied)
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
	return fault.New(fault.Invalid, reasonNetworkTaken, "--subnet %s is taken by %s; %s", want, owner, hint)
}

// octetsPrefixLength is the prefix length of the subnets that [FirstOctets] selects.
const octetsPrefixLength = 16

// FirstOctets returns the first two numbers of a /16 subnet, for a template that uses them as a variable: the subnet of the
// cluster with the given name, or else the highest unused one in 172.16.0.0/12. It returns "" if none is unused and
// allowed.
func FirstOctets(ctx context.Context, r client.Reader, key client.ObjectKey, host Host) (string, error) {
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
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, n}), octetsPrefixLength)
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

// subnetUse has the subnets that a cluster uses or requests.
type subnetUse struct {
	name    string
	objects sets.Set[client.ObjectKey] // the Cluster, or its LocalCluster
	ranges  []netip.Prefix
}

func networks(ctx context.Context, r client.Reader) ([]subnetUse, error) {
	if r == nil {
		return nil, nil
	}
	var existing localv1.LocalClusterList
	var asked clusterv1.ClusterList
	if err := errors.Join(r.List(ctx, &existing), r.List(ctx, &asked)); err != nil {
		return nil, fmt.Errorf("listing the networks of clusters: %w", err)
	}
	var used []subnetUse
	for _, c := range existing.Items {
		name := cmp.Or(c.Labels[clusterv1.ClusterNameLabel], c.Name)
		if ranges := template.UsedSubnets([]localv1.LocalCluster{c}); len(ranges) > 0 {
			used = append(used, subnetUse{c.Namespace + "/" + name, sets.New(client.ObjectKeyFromObject(&c), client.ObjectKey{Namespace: c.Namespace, Name: name}), ranges})
		}
	}
	for _, c := range asked.Items {
		if ranges := template.RequestedSubnets(c); len(ranges) > 0 {
			used = append(used, subnetUse{c.Namespace + "/" + c.Name, sets.New(client.ObjectKeyFromObject(&c)), ranges})
		}
	}
	return used, nil
}

// denies returns the reason why the operator does not allow the subnet; empty if it is allowed or unknown.
func (h Host) denies(want netip.Prefix) string {
	if h.Networks == nil {
		return ""
	}
	return policy.Configuration{Networks: *h.Networks}.DeniedRange(want)
}

func (h Host) choose(used []subnetUse) (netip.Prefix, bool) {
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

// CreateMissing creates the objects that do not exist, in order. Existing objects, such as a user's own class, are left
// unchanged.
func CreateMissing(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	w := kube.NewWriter(c, manager)
	for _, o := range objects {
		switch err := checkAbsent(ctx, c, o, nil); {
		case fault.KindOf(err) == fault.Invalid:
			continue
		case err != nil:
			return err
		}
		if err := apply(ctx, w, o); err != nil {
			return explainMissingNamespace(o, err)
		}
	}
	return nil
}

// Apply creates the objects with server-side apply, starting with the Cluster. It returns an error if an object already
// exists. Shared objects ([template.Shared]) may exist, and are updated.
func Apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if template.IsShared(o) {
			continue
		}
		if err := checkAbsent(ctx, c, o, objects[0]); err != nil {
			return err
		}
	}
	for _, through := range []client.Client{client.NewDryRunClient(c), c} {
		w := kube.NewWriter(through, manager)
		for _, o := range objects {
			if err := apply(ctx, w, o); err != nil {
				return explainMissingNamespace(o, err)
			}
		}
	}
	return nil
}

// apply applies an object with the annotation that `kubectl create --save-config` adds, so that a later `kubectl apply`
// of the same object does not warn.
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

func checkAbsent(ctx context.Context, r client.Reader, o, first *unstructured.Unstructured) error {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(o.GroupVersionKind())
	err := r.Get(ctx, client.ObjectKeyFromObject(o), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for %s %s: %w", o.GetKind(), client.ObjectKeyFromObject(o), err)
	case o == first:
		return fault.New(fault.Invalid, reasonExists, "cluster %q exists already in namespace %q: see `slipway describe cluster %s`, or choose another name",
			o.GetName(), o.GetNamespace(), o.GetName())
	}
	return fault.New(fault.Invalid, reasonExists, "%s %q exists already in namespace %q: delete it, or choose another name for the cluster",
		o.GetKind(), o.GetName(), o.GetNamespace())
}

// explainMissingNamespace replaces the error for a missing namespace by one that explains how to create it.
func explainMissingNamespace(o *unstructured.Unstructured, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return err
	}
	if d := status.Status().Details; d != nil && d.Kind == "namespaces" {
		return fault.New(fault.Gone, describe.ReasonNamespace, "there is no namespace %q; `slipway kubectl create namespace %s` creates it",
			o.GetNamespace(), o.GetNamespace()).From(err)
	}
	return err
}

// Delete deletes the Cluster, regardless of concurrent changes by controllers. It does nothing if the Cluster does not
// exist.
func Delete(ctx context.Context, c client.Client, key client.ObjectKey) error {
	found := &clusterv1.Cluster{}
	if err := c.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kube.NewWriter(c, manager).DeleteAnyway(ctx, found)
}
