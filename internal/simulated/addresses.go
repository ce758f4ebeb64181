package simulated

import (
	"encoding/binary"
	"hash/fnv"
	"net"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/allocator"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
)

// family is the IP family of Service addresses.
const family = core.IPv4Protocol

// counter allocates numbers below size in a cycle. All clusters share it, and nothing listens on the allocated
// addresses and ports, so numbers may be reused and any requested number is granted.
type counter struct {
	next atomic.Uint32
	size uint32
}

func (c *counter) take() uint32 { return c.next.Add(1) % c.size }

// addresses allocates the addresses of Services in all simulated clusters, for the storage of Services ([parts]). It
// implements ipallocator.Interface.
type addresses struct{ counter *counter }

// serviceRange returns the CIDR of Service addresses, kubeadm's default.
func serviceRange() net.IPNet {
	return net.IPNet{IP: net.IPv4(10, 96, 0, 0).To4(), Mask: net.CIDRMask(12, 32)}
}

func newAddresses() map[core.IPFamily]ipallocator.Interface {
	return map[core.IPFamily]ipallocator.Interface{family: addresses{&counter{size: 1<<20 - 2}}}
}

func (addresses) Allocate(net.IP) error { return nil }

func (a addresses) AllocateNext() (net.IP, error) {
	base := serviceRange()
	return binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(base.IP)+1+a.counter.take()), nil
}

func (addresses) Release(net.IP) error { return nil }

func (addresses) ForEach(func(net.IP)) {}

func (addresses) CIDR() net.IPNet { return serviceRange() }

func (addresses) IPFamily() core.IPFamily { return family }

func (addresses) Has(net.IP) bool { return true }

func (addresses) Destroy() {}

func (addresses) EnableMetrics() {}

func (a addresses) DryRun() ipallocator.Interface { return a }

// ports allocates the node ports of Services. It implements allocator.Interface.
type ports struct{ counter *counter }

func newPorts() (*portallocator.PortAllocator, error) {
	nodePorts := utilnet.PortRange{Base: 30000, Size: 2768}
	return portallocator.New(nodePorts, func(size int, _ string, _ int) (allocator.Interface, error) {
		return ports{&counter{size: uint32(size)}}, nil
	})
}

func (ports) Allocate(int) (bool, error) { return true, nil }

func (p ports) AllocateNext() (int, bool, error) { return int(p.counter.take()), true, nil }

func (ports) Release(int) error { return nil }

func (ports) ForEach(func(int)) {}

func (ports) Has(int) bool { return true }

func (p ports) Free() int { return int(p.counter.size) }

func (ports) Destroy() {}

// podAddress returns a deterministic address for a Pod, for its status. Nothing listens there. The simulator sets it
// when it starts the Pod.
func podAddress(uid string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(uid)) // never fails
	n := sum.Sum32()
	return net.IPv4(10, 128|byte(n>>16)&0x7f, byte(n>>8), byte(n)).String()
}
