package subnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
)

const (
	// Bits is the prefix length of the subnets that [Free] is usually asked for: room for 32 nodes of 256
	// Pod addresses each, and for 4096 Services.
	Bits = 18

	// MaxBits is the longest prefix that can be divided: with it, 8 nodes have Pod addresses.
	MaxBits = 20

	// MinBits is the shortest prefix that can be divided.
	MinBits = 8

	// NodeMaskBits is the prefix length of the Pod range of one node; it is what kube-controller-manager
	// uses when nothing else is asked for.
	NodeMaskBits = 24

	// widestServices bounds the Service range: kube-apiserver keeps a bitmap of it.
	widestServices = 16
)

// Pool is the range that subnets are taken from: the private block that other software uses least, so that
// one of its 64 parts is almost always free.
func Pool() netip.Prefix { return netip.MustParsePrefix("172.16.0.0/12") }

// Layout is a subnet and its parts, which do not overlap.
type Layout struct {
	// Subnet is the whole range.
	Subnet netip.Prefix
	// Nodes is the first quarter. Its first address is the host's.
	Nodes netip.Prefix
	// Services begins at the second quarter and is at most a /16.
	Services netip.Prefix
	// Pods is the upper half.
	Pods netip.Prefix
}

// MaxNodes is how many nodes of the layout can have a Pod range.
func (l Layout) MaxNodes() int { return 1 << (NodeMaskBits - l.Pods.Bits()) }

// Divide returns the layout of a subnet. The error says which prefixes can be divided.
func Divide(subnet netip.Prefix) (Layout, error) {
	if !subnet.IsValid() || !subnet.Addr().Is4() {
		return Layout{}, fmt.Errorf("%s is not an IPv4 network in CIDR notation", subnet)
	}
	if subnet != subnet.Masked() {
		return Layout{}, fmt.Errorf("%s has host bits set; did you mean %s?", subnet, subnet.Masked())
	}
	bits := subnet.Bits()
	if bits < MinBits || bits > MaxBits {
		return Layout{}, fmt.Errorf("%s must be between /%d and /%d: nodes, Pods and Services share it", subnet, MinBits, MaxBits)
	}
	quarter := uint32(1) << (32 - bits - 2)
	return Layout{
		Subnet:   subnet,
		Nodes:    netip.PrefixFrom(subnet.Addr(), bits+2),
		Services: netip.PrefixFrom(plus(subnet.Addr(), quarter), max(bits+2, widestServices)),
		Pods:     netip.PrefixFrom(plus(subnet.Addr(), 2*quarter), bits+1),
	}, nil
}

// Free returns the highest prefix of the given length inside pool that overlaps none of used. It counts down
// because Docker's own networks count up from 172.17.0.0. The error names the pool.
func Free(pool netip.Prefix, bits int, used []netip.Prefix) (netip.Prefix, error) {
	if bits < pool.Bits() || bits > 30 {
		return netip.Prefix{}, fmt.Errorf("no /%d fits into %s", bits, pool)
	}
	step := uint32(1) << (32 - bits)
	for i := 1<<(bits-pool.Bits()) - 1; i >= 0; i-- {
		candidate := netip.PrefixFrom(plus(pool.Masked().Addr(), uint32(i)*step), bits)
		if !slices.ContainsFunc(used, candidate.Overlaps) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no /%d of %s is free: delete a cluster or a network that is not needed any more, or name a subnet yourself", bits, pool)
}

func plus(a netip.Addr, n uint32) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+n)
	return netip.AddrFrom4(b)
}
