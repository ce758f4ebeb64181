package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Host has the constraints of the host for the subnet of a new cluster with a LocalCluster. `slipway create cluster`
// fills it in, for [SelectSubnet] and [CheckSubnet].
type Host struct {
	// Routes are the routes of the host.
	Routes []netip.Prefix
	// Networks are the subnets that the operator allows; nil if unknown.
	Networks *policy.Networks
}

// SelectSubnet returns an unused subnet for a new cluster: it overlaps neither with clusters of the management cluster
// nor with routes of the host, and the operator allows it. If r is nil, no management cluster is checked. `slipway
// create cluster` calls it if no subnet is requested.
func SelectSubnet(ctx context.Context, r client.Reader, host Host) (netip.Prefix, error) {
	used, err := networks(ctx, r)
	if err != nil {
		return netip.Prefix{}, err
	}
	free, ok := host.choose(used)
	if !ok {
		return netip.Prefix{}, fault.New(fault.Invalid, reasonNoNetwork,
			"no network is available for another cluster: delete a cluster that is no longer needed, or select a range with --subnet")
	}
	return free, nil
}

// CheckSubnet checks whether a new cluster can use a subnet. The Invalid fault names the owner of the subnet and an
// unused one, or what the operator allows. A subnet used by a cluster with the given name is accepted; whether the
// cluster already exists is checked elsewhere. `slipway create cluster` calls it for --subnet.
func CheckSubnet(ctx context.Context, r client.Reader, key client.ObjectKey, want netip.Prefix, host Host) error {
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
	hint := "delete a cluster that is no longer needed"
	if free, ok := host.choose(used); ok {
		hint = "free is " + free.String()
	}
	return fault.New(fault.Invalid, reasonNetworkTaken, "--subnet %s is taken by %s; %s", want, owner, hint)
}

// octetsPrefixLength is the prefix length of the subnets that [FirstOctets] selects.
const octetsPrefixLength = 16

// FirstOctets returns the first two numbers of a /16 subnet, for `slipway generate cluster` and templates that use them
// as a variable: the subnet of the cluster with the given name, or else the highest unused one in 172.16.0.0/12. It
// returns "" if none is unused and allowed.
func FirstOctets(ctx context.Context, r client.Reader, key client.ObjectKey, host Host) (string, error) {
	used, err := networks(ctx, r)
	if err != nil {
		return "", err
	}
	taken := slices.Clone(host.Routes)
	for _, u := range used {
		if u.objects.Has(key) && u.ranges[0].Addr().Is4() {
			return firstTwoOctets(u.ranges[0]), nil
		}
		taken = append(taken, u.ranges...)
	}
	for n := byte(31); n >= 16; n-- {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{172, n}), octetsPrefixLength)
		if !slices.ContainsFunc(taken, p.Overlaps) && host.denies(p) == "" {
			return firstTwoOctets(p), nil
		}
	}
	return "", nil
}

func firstTwoOctets(p netip.Prefix) string {
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
	return subnet.Choose(subnet.RangeRequest{Taken: taken, Allowed: allowed.Ranges, Widest: allowed.WidestPrefix})
}
