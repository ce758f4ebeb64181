package subnet

import "net/netip"

const (
	// podBits is the prefix length of one node's Pod CIDR, the default of kube-controller-manager.
	podBits = 24
	// widestServices limits the size of the Service range, because kube-apiserver holds a bitmap of it.
	widestServices = 16
)

// Ranges are the parts of a network for the Services and Pods of a new cluster, which `slipway create cluster` writes
// into the Cluster. They begin with the second quarter and the second half, so that the nodes' part remains free; in a
// /18:
//
//	0         256                4096        8192                16384
//	| nodes   |                  | Services  | Pods              |
//	| /24     |                  | /20       | /19: 32 × /24     |
type Ranges struct {
	// Services is a quarter of the network, at most a /16.
	Services netip.Prefix
	// Pods is the upper half.
	Pods netip.Prefix
}

// Ranges returns the default ranges of a new cluster in the network. A Cluster object can specify others. The
// LocalCluster controller suggests these ranges if the Cluster's own ranges do not fit. They may change, because a
// Cluster stores its ranges.
func (l Layout) Ranges() Ranges {
	half := next(netip.PrefixFrom(l.Subnet.Addr(), l.Subnet.Bits()+1))
	quarter := next(netip.PrefixFrom(l.Subnet.Addr(), l.Subnet.Bits()+2))
	return Ranges{
		Services: netip.PrefixFrom(quarter.Addr(), max(quarter.Bits(), widestServices)),
		Pods:     half,
	}
}

// MaxNodes returns the number of nodes that can have a Pod CIDR. `slipway create cluster` refuses more nodes.
func (r Ranges) MaxNodes() int { return 1 << (podBits - r.Pods.Bits()) }
