package subnet

import "net/netip"

const (
	// podBits is the length of the prefix of one node's Pods: what kube-controller-manager gives a node when
	// nothing else is asked for.
	podBits = 24
	// widestServices bounds the Service range: kube-apiserver keeps a bitmap of it.
	widestServices = 16
)

// Ranges are the parts of a network that a new cluster gives to Services and Pods. They begin with the second
// quarter and the second half, so that the nodes' part stays free; in a /18:
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

// Ranges returns what a new cluster in the network uses. A cluster whose Cluster object says otherwise is not
// bound by it.
func (l Layout) Ranges() Ranges {
	half := next(netip.PrefixFrom(l.Subnet.Addr(), l.Subnet.Bits()+1))
	quarter := next(netip.PrefixFrom(l.Subnet.Addr(), l.Subnet.Bits()+2))
	return Ranges{
		Services: netip.PrefixFrom(quarter.Addr(), max(quarter.Bits(), widestServices)),
		Pods:     half,
	}
}

// MaxNodes is how many nodes can have Pods.
func (r Ranges) MaxNodes() int { return 1 << (podBits - r.Pods.Bits()) }
