package simulated

import (
	"hash/fnv"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// maximumSetting is the name of the limit for simulated machines.
const maximumSetting = "maxima.simulatedNodes"

// Capabilities implements a method of backend.Machines. The LocalMachine controller calls it in each reconciliation,
// and backend.CapacityCalculator calls it for a machine that has only a spec, without name and UID.
func (m *simulatedMachines) Capabilities(r backend.MachineRequest) backend.Capabilities {
	return backend.Capabilities{
		Volatile: true, Immediate: true, ReachesEtcd: true, Startup: startup(r.Object), Capacity: capacity(), Denied: r.Policy.DeniedSimulated(),
		Maximum: r.Policy.Maxima.SimulatedNodes, MaximumSetting: maximumSetting,
		Running: running(backend.Machine{Name: r.Name, Owner: backend.Owner{
			UID: r.Object.UID, Object: client.ObjectKeyFromObject(r.Object),
		}}),
	}
}

// running returns the machine in its running state.
func running(m backend.Machine) backend.Machine {
	m.State, m.Hostname, m.Address = backend.Running, backend.Hostname(m.Owner.Object.Name), address(m.Name)
	return m
}

// startup returns the duration of the machine's start: the delay plus its share of the jitter. It is the same each
// time, because every reconciliation computes it again.
func startup(o *infrav1.LocalMachine) time.Duration {
	spec := o.Spec.Backend.Simulated
	if spec == nil {
		return 0
	}
	delay, jitter := spec.StartupDelay.Value(), spec.Jitter.Value()
	if jitter <= 0 {
		return delay
	}
	const parts = 1000
	return delay + jitter*time.Duration(hashOf(string(o.UID))%(parts+1))/parts
}

func hashOf(text string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // never fails
	return sum.Sum32()
}

// capacity is the capacity of every simulated node: 8 CPUs, 16 GiB of memory, 100 GiB of disk, 110 Pods.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
}

// address returns the address of a Node. It is in 100.64.0.0/10, which is not routed. It is deterministic, because the
// address of an existing Node must not change, but not unique.
func address(machineName string) netip.Addr {
	n := hashOf(machineName)
	return netip.AddrFrom4([4]byte{100, 64 | byte(n>>16)&0x3f, byte(n >> 8), byte(n)})
}
