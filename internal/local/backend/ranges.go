package backend

import (
	"fmt"
	"net/netip"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/policy"
)

// ChooseRange returns a range for the network of the spec, or the reason why none is available. The container backend
// calls it when it creates a network. It returns the requested range, else a free range. refused lists ranges that the
// engine rejected although nothing seems to use them.
func ChooseRange(spec NetworkSpec, taken []UsedRange, refused []netip.Prefix) (chosen netip.Prefix, why string) {
	if chosen = spec.Subnet; chosen.IsValid() {
		if why := RangeConflict(chosen, taken); why != "" {
			return netip.Prefix{}, why
		}
	} else {
		want := subnet.RangeRequest{Wanted: spec.Ranges, Allowed: spec.Policy.Networks.Ranges, Widest: spec.Policy.Networks.WidestPrefix, Taken: refused}
		for _, t := range taken {
			want.Taken = append(want.Taken, t.Range)
		}
		var ok bool
		if chosen, ok = subnet.Choose(want); !ok {
			return netip.Prefix{}, "No address range for a network is free on this host: remove unused networks (docker network prune), or ask the operator to extend networks.ranges"
		}
	}
	return chosen, AddressQuotaMessage(spec.Policy.Maxima, spec.Owner.Object.Namespace, chosen, taken)
}

// AddressQuotaMessage returns a message if one more range exceeds the number of addresses allowed for networks of the
// namespace. The LocalCluster controller calls it before it plans a network with a requested range, and [ChooseRange]
// for the chosen one.
func AddressQuotaMessage(m policy.Maxima, namespace string, p netip.Prefix, taken []UsedRange) string {
	own, all := sumNetworks(taken, namespace, policy.Addresses)
	return m.ExceededRange(namespace, p, own, all)
}

// RangeConflict returns a message that names the user of an overlapping range, and an empty string if there is none.
// [ChooseRange] and the LocalCluster controller call it for a requested range.
func RangeConflict(p netip.Prefix, taken []UsedRange) string {
	for _, t := range taken {
		if t.Range.Overlaps(p) {
			return fmt.Sprintf("Range %s is not free on this host: %s uses %s of it. Create the cluster with another range", p, t.By, intersection(p, t.Range))
		}
	}
	return ""
}

// intersection returns the intersection of two overlapping ranges, which is the narrower one.
func intersection(p, q netip.Prefix) netip.Prefix {
	if p.Bits() > q.Bits() {
		return p
	}
	return q
}

// CountNetworks counts the networks of this instance, in the namespace and in total. The LocalCluster controller
// compares it with the operator's limit, and the container backend does before it creates a network.
func CountNetworks(taken []UsedRange, namespace string) (own, all int) {
	ownCount, allCount := sumNetworks(taken, namespace, func(netip.Prefix) int64 { return 1 })
	return int(ownCount), int(allCount)
}

// sumNetworks adds up a size of the networks of this instance, in the namespace and in total.
func sumNetworks(taken []UsedRange, namespace string, size func(netip.Prefix) int64) (own, all int64) {
	for _, t := range taken {
		if t.Owner.Object.Name == "" {
			continue
		}
		all += size(t.Range)
		if t.Owner.Object.Namespace == namespace {
			own += size(t.Range)
		}
	}
	return own, all
}

// ClusterRanges returns the Pod and Service ranges of a Cluster, which may be nil. It omits invalid ranges, because the
// Cluster webhook rejects them. The controllers of LocalClusters and LocalMachines pass them to the backend.
func ClusterRanges(c *clusterv1.Cluster) []netip.Prefix {
	if c == nil {
		return nil
	}
	var out []netip.Prefix
	for _, text := range slices.Concat(c.Spec.ClusterNetwork.Pods.CIDRBlocks, c.Spec.ClusterNetwork.Services.CIDRBlocks) {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
