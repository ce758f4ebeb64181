package subnet

import (
	"fmt"
	"net/netip"
)

const (
	// maxPrefixBits is the maximum prefix length that can be divided: 4096 addresses.
	maxPrefixBits = 20
	// minPrefixBits is the minimum prefix length.
	minPrefixBits = 8
	// nodeBits is the prefix length of the nodes' part.
	nodeBits = 24
	// firstNode and lastNode are the last octets of the first and the last node address.
	firstNode, lastNode = 2, 239
)

// Layout describes the division of a network's range. The container backend creates networks and assigns addresses by
// it, and the LocalCluster controller compares the ranges of the Cluster with it. It must not change, because the
// networks of existing clusters are divided by it.
type Layout struct {
	// Subnet is the whole range.
	Subnet netip.Prefix
	// Nodes is the part that must not overlap Pods or Services: the first 256 addresses.
	Nodes netip.Prefix
	// Others is the part of Nodes that the container engine assigns to containers that are not nodes.
	Others netip.Prefix
	// Gateway is the address of the host.
	Gateway netip.Addr
}

// NewLayout divides a range. It returns an error for anything but an IPv4 prefix without host bits between /8 and /20.
// `slipway create cluster` rejects invalid subnets with it, and the container backend computes the addresses of nodes.
func NewLayout(subnet netip.Prefix) (Layout, error) {
	switch {
	case !subnet.IsValid() || !subnet.Addr().Is4():
		return Layout{}, fmt.Errorf("subnet %s is not an IPv4 range", subnet)
	case subnet.Masked() != subnet:
		return Layout{}, fmt.Errorf("subnet %s has host bits set: use %s", subnet, subnet.Masked())
	case subnet.Bits() < minPrefixBits || subnet.Bits() > maxPrefixBits:
		return Layout{}, fmt.Errorf("subnet %s is not between /%d and /%d: nodes, Pods and Services share it", subnet, minPrefixBits, maxPrefixBits)
	}
	nodes := netip.PrefixFrom(subnet.Addr(), nodeBits)
	return Layout{
		Subnet:  subnet,
		Nodes:   nodes,
		Others:  netip.PrefixFrom(withOctet(nodes, lastNode+1), 28),
		Gateway: withOctet(nodes, 1),
	}, nil
}

// NodeAddress returns the lowest unused node address, and false if all are in use. The container backend calls it when
// it creates a node.
func (l Layout) NodeAddress(used map[netip.Addr]bool) (netip.Addr, bool) {
	for octet := firstNode; octet <= lastNode; octet++ {
		if a := withOctet(l.Nodes, byte(octet)); !used[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Overlapping returns the first of the ranges that overlaps the nodes' part, and false if none does. The LocalCluster
// controller calls it with the Pod and Service ranges of the Cluster.
func (l Layout) Overlapping(ranges []netip.Prefix) (netip.Prefix, bool) {
	return overlap(l.Nodes, ranges)
}

// Outside returns the ranges that are not within the subnet. An internal network drops their packets between nodes,
// unless the network add-on encapsulates them. The LocalCluster controller reports these ranges, and the container
// backend adds routes to them on each node.
func (l Layout) Outside(ranges []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, r := range ranges {
		if !within(r, l.Subnet) {
			out = append(out, r)
		}
	}
	return out
}

func withOctet(p netip.Prefix, octet byte) netip.Addr {
	a := p.Addr().As4()
	a[3] = octet
	return netip.AddrFrom4(a)
}

func overlap(p netip.Prefix, with []netip.Prefix) (netip.Prefix, bool) {
	for _, q := range with {
		if p.Overlaps(q) {
			return q, true
		}
	}
	return netip.Prefix{}, false
}

func within(inner, outer netip.Prefix) bool {
	return inner.Bits() >= outer.Bits() && outer.Contains(inner.Addr())
}
