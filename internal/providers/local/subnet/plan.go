package subnet

import (
	"fmt"
	"net/netip"
)

const (
	// smallest is the length of the longest prefix that can be divided: 4096 addresses.
	smallest = 20
	// largest is the length of the shortest prefix.
	largest = 8
	// nodeBits is the length of the prefix that nodes live in.
	nodeBits = 24
	// firstNode and lastNode are the last octets of the first and last address that a node can have.
	firstNode, lastNode = 2, 239
)

// Layout is how a network's range is divided.
type Layout struct {
	// Subnet is the whole range.
	Subnet netip.Prefix
	// Nodes is the part that must not hold Pods or Services: the first 256 addresses.
	Nodes netip.Prefix
	// Others is the part of Nodes that the container engine gives to containers that are not nodes.
	Others netip.Prefix
	// Gateway is the address of the host.
	Gateway netip.Addr
}

// Plan divides a range. It fails for anything but an IPv4 prefix without host bits between /8 and /20.
func Plan(subnet netip.Prefix) (Layout, error) {
	switch {
	case !subnet.IsValid() || !subnet.Addr().Is4():
		return Layout{}, fmt.Errorf("subnet %s is not an IPv4 range", subnet)
	case subnet.Masked() != subnet:
		return Layout{}, fmt.Errorf("subnet %s has host bits set: use %s", subnet, subnet.Masked())
	case subnet.Bits() < largest || subnet.Bits() > smallest:
		return Layout{}, fmt.Errorf("subnet %s is not between /%d and /%d: nodes, Pods and Services share it", subnet, largest, smallest)
	}
	nodes := netip.PrefixFrom(subnet.Addr(), nodeBits)
	return Layout{
		Subnet:  subnet,
		Nodes:   nodes,
		Others:  netip.PrefixFrom(withOctet(nodes, lastNode+1), 28),
		Gateway: withOctet(nodes, 1),
	}, nil
}

// NodeAddress returns the lowest address for a node that is not in use, and false when all are.
func (l Layout) NodeAddress(used map[netip.Addr]bool) (netip.Addr, bool) {
	for octet := firstNode; octet <= lastNode; octet++ {
		if a := withOctet(l.Nodes, byte(octet)); !used[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Overlapping returns the first of the ranges that shares an address with the nodes' part, and false if none does.
func (l Layout) Overlapping(ranges []netip.Prefix) (netip.Prefix, bool) {
	return overlap(l.Nodes, ranges)
}

// Outside returns the ranges that are not within the subnet. An internal network carries no packets of theirs
// between nodes, unless the network add-on wraps them.
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
