package offer

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// The kubelet keeps these back from Pods: it evicts some where less memory, or less of the disk, is free. What an autoscaler takes for the
// capacity of a node that does not exist yet has to be what Pods get there.
const (
	evictionMemory     = 100 << 20
	evictionDiskTenths = 1
)

// podsPerNode is what the kubelet allows unless its configuration sets another number.
const podsPerNode = 110

// Offer is what a node offers.
type Offer struct {
	Capacity corev1.ResourceList
	NodeInfo infrav1.NodeInfo
	// Scripted nodes boot without their bootstrap data, and run it then.
	Scripted bool
}

// Host is a host that nodes run on.
type Host struct {
	Processors int
	// Memory and Disk, that of nodes, in bytes. A Disk of 0 is not known.
	Memory, Disk int64
	// Architecture as Go and Kubernetes name it.
	Architecture string
}

// ThisHost returns the host of this process. It fails if the host does not tell how much memory it has.
func ThisHost() (Host, error) {
	meminfo, err := os.Open("/proc/meminfo")
	if err != nil {
		return Host{}, fmt.Errorf("reading the memory of the host: %w", err)
	}
	defer meminfo.Close()
	memory, err := totalMemory(meminfo)
	return Host{Processors: runtime.NumCPU(), Memory: memory, Disk: diskSize("/var/lib/docker", "/var/lib", "/"), Architecture: runtime.GOARCH}, err
}

// diskSize returns the size of the disk of the first folder that there is: nodes have their data in volumes of Docker.
func diskSize(folders ...string) int64 {
	for _, folder := range folders {
		var disk unix.Statfs_t
		if unix.Statfs(folder, &disk) == nil {
			return int64(disk.Blocks) * disk.Bsize
		}
	}
	return 0
}

// Nodes are those of a host.
type Nodes struct {
	Host     Host
	Backends backend.Set
	// Policy is what the operator allows.
	Policy policy.Configuration
}

// Offered returns what a node with this spec offers. It fails, with a fault, if this process does not offer the spec's
// backend.
func (n Nodes) Offered(spec infrav1.LocalMachineSpec) (Offer, error) {
	b, err := n.Backends.Choose(spec.Backend.Name(), nil)
	if err != nil {
		return Offer{}, err
	}
	terms := b.Machines.Terms(backend.Request{Object: &infrav1.LocalMachine{Spec: spec}, Policy: n.Policy})
	out := Offer{
		Capacity: terms.Capacity,
		Scripted: terms.Scripted,
		NodeInfo: infrav1.NodeInfo{Architecture: infrav1.Architecture(n.Host.Architecture), OperatingSystem: "linux"},
	}
	if out.Capacity == nil {
		out.Capacity = n.Host.capacity()
		limit(out.Capacity, corev1.ResourceCPU, int64(terms.Resources.CPUs))
		limit(out.Capacity, corev1.ResourceMemory, terms.Resources.MemoryMiB<<20)
		keepBack(out.Capacity)
	}
	return out, nil
}

// capacity of a node that may use all of the host.
func (h Host) capacity() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(h.Processors), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(h.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
	}
	if h.Disk > 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(h.Disk, resource.BinarySI)
	}
	return list
}

// keepBack leaves what Pods can be given of a node's resources, which Kubernetes calls allocatable.
func keepBack(list corev1.ResourceList) {
	if memory := list[corev1.ResourceMemory]; memory.Value() > evictionMemory {
		list[corev1.ResourceMemory] = *resource.NewQuantity(memory.Value()-evictionMemory, memory.Format)
	}
	if disk, known := list[corev1.ResourceEphemeralStorage]; known {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(disk.Value()-disk.Value()/10*evictionDiskTenths, disk.Format)
	}
}

// limit lowers a resource to the most that a node may use; 0: no limit.
func limit(list corev1.ResourceList, name corev1.ResourceName, most int64) {
	if have := list[name]; most > 0 && have.CmpInt64(most) > 0 {
		list[name] = *resource.NewQuantity(most, have.Format)
	}
}

// totalMemory reads the host's memory in bytes from the format of /proc/meminfo.
func totalMemory(r io.Reader) (int64, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of the host: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of the host: no total")
}
