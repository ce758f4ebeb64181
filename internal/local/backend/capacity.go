package backend

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
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/policy"
)

// NodeCapacity is the capacity of a node that does not exist yet. [CapacityCalculator] returns it for the status of
// LocalMachinePools and LocalMachineTemplates.
type NodeCapacity struct {
	Capacity corev1.ResourceList
	NodeInfo infrav1.NodeInfo
	// Scripted is set if nodes boot without bootstrap data and run it later.
	Scripted bool
}

// HostResources are the resources of the host that nodes run on.
type HostResources struct {
	Processors int
	// Memory, and the size of the Disk with the nodes' data, in bytes. A Disk of 0 is unknown.
	Memory, Disk int64
	// Architecture as Go and Kubernetes name it.
	Architecture string
}

// ThisHost returns the host of this process. It returns an error if the amount of memory cannot be read. Package local
// calls it when it adds the provider to the manager.
func ThisHost() (HostResources, error) {
	meminfo, err := os.Open("/proc/meminfo")
	if err != nil {
		return HostResources{}, fmt.Errorf("reading the memory of the host: %w", err)
	}
	defer meminfo.Close()
	memory, err := totalMemory(meminfo)
	return HostResources{Processors: runtime.NumCPU(), Memory: memory, Disk: diskSize("/var/lib/docker", "/var/lib", "/"), Architecture: runtime.GOARCH}, err
}

// diskSize returns the size of the disk with the first existing directory. Nodes store their data in Docker volumes.
func diskSize(folders ...string) int64 {
	for _, folder := range folders {
		var disk unix.Statfs_t
		if unix.Statfs(folder, &disk) == nil {
			return int64(disk.Blocks) * disk.Bsize
		}
	}
	return 0
}

// CapacityCalculator computes the capacity of nodes on a host before they exist, from the backend, the requested
// resources, the operator's limits and the resources of the host. The cluster autoscaler reads the result in the status of
// a LocalMachineTemplate or a LocalMachinePool to scale a group up from zero.
type CapacityCalculator struct {
	Host     HostResources
	Backends Set
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// CapacityOf returns the capacity of a node with this spec. The error is a fault if the backend of the spec is not
// available in this process. The controllers of LocalMachinePools and LocalMachineTemplates call it.
func (n CapacityCalculator) CapacityOf(spec infrav1.LocalMachineSpec) (NodeCapacity, error) {
	b, err := n.Backends.Choose(spec.Backend.Name(), nil)
	if err != nil {
		return NodeCapacity{}, err
	}
	terms := b.Machines.Capabilities(MachineRequest{Object: &infrav1.LocalMachine{Spec: spec}, Policy: n.Policy})
	out := NodeCapacity{
		Capacity: terms.Capacity,
		Scripted: terms.Scripted,
		NodeInfo: infrav1.NodeInfo{Architecture: infrav1.Architecture(n.Host.Architecture), OperatingSystem: "linux"},
	}
	if out.Capacity == nil {
		out.Capacity = n.Host.capacity()
		limitResource(out.Capacity, corev1.ResourceCPU, int64(terms.Resources.CPUs))
		limitResource(out.Capacity, corev1.ResourceMemory, terms.Resources.MemoryMiB<<20)
		infrastructure.SubtractReserved(out.Capacity)
	}
	return out, nil
}

// capacity returns the capacity of a node that may use all of the host.
func (h HostResources) capacity() corev1.ResourceList {
	return infrastructure.NodeCapacity(int64(h.Processors), h.Memory, h.Disk)
}

// limitResource lowers a resource to a node's maximum. 0: no limit.
func limitResource(list corev1.ResourceList, name corev1.ResourceName, most int64) {
	if have := list[name]; most > 0 && have.CmpInt64(most) > 0 {
		list[name] = *resource.NewQuantity(most, have.Format)
	}
}

// totalMemory parses the host's memory in bytes from the format of /proc/meminfo.
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
