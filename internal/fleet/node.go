package fleet

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Node is the row of a Node, from the status of its Machine. `slipway get nodes` prints it, also as JSON, so its JSON
// names must not change.
type Node struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Name      string `json:"name"`
	Machine   string `json:"machine"`
	Role      string `json:"role"`
	// Version is the version of the kubelet.
	Version string `json:"version,omitempty"`
	// Ready is the Ready condition of the Node, and Healthy the summary of its conditions.
	Ready   string `json:"ready"`
	Healthy string `json:"healthy"`
	// Address is the internal IP address, or the external one.
	Address string `json:"address,omitempty"`
	Image   string `json:"osImage,omitempty"`
	Kernel  string `json:"kernelVersion,omitempty"`
	Runtime string `json:"containerRuntime,omitempty"`
	Health  Health `json:"health"`
	// Reason is the message of the failed condition, and Since its transition time.
	Reason  string            `json:"reason,omitempty"`
	Since   *metav1.Time      `json:"since,omitempty"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"-"`

	// message is the reason with all lines.
	message string
}

// nodeStartTime is how long a kubelet may report that it is not ready before that is a problem: it starts, as each Node
// does that has just joined.
const nodeStartTime = time.Minute

// NewNode computes the row of the Node of a Machine. It reports false if the Machine has no Node. `slipway get nodes`
// calls it.
func NewNode(m *clusterv1.Machine, now time.Time) (Node, bool) {
	if m.Status.NodeRef.Name == "" {
		return Node{}, false
	}
	have := condition.Set(m.Status.Conditions)
	row := Node{
		Namespace: m.Namespace, Cluster: m.Spec.ClusterName, Name: m.Status.NodeRef.Name, Machine: m.Name, Role: roleOf(m),
		Ready: statusOf(have, clusterv1.MachineNodeReadyCondition), Healthy: statusOf(have, clusterv1.MachineNodeHealthyCondition),
		Address: addressOf(m.Status.Addresses), Created: m.CreationTimestamp.Time, Labels: m.Labels, Health: healthy,
	}
	if info := m.Status.NodeInfo; info != nil {
		row.Version, row.Image, row.Kernel, row.Runtime = info.KubeletVersion, info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion
	}
	for _, t := range []string{clusterv1.MachineNodeReadyCondition, clusterv1.MachineNodeHealthyCondition} {
		if c := have.Get(t); c != nil && c.Status != metav1.ConditionTrue {
			row.Health, row.Since = Problem, zeroTime(c.LastTransitionTime)
			row.Reason, row.message = redact.Clip(cmp.Or(firstLine(c.Message), c.Reason), maxReason), rootcause.OneLine(c.Message)
			if t == clusterv1.MachineNodeReadyCondition && isNodeStarting(m, now) {
				row.Health = changing
			}
			break
		}
	}
	if !m.DeletionTimestamp.IsZero() {
		row.Health, row.Since = changing, zeroTime(*m.DeletionTimestamp)
		row.Reason, row.message = "Machine "+m.Name+" is being deleted", ""
	}
	return row, true
}

// WholeReason returns the reason with all lines of the message, in one line. Wide lists print it.
func (n Node) WholeReason() string { return cmp.Or(n.message, n.Reason) }

// isNodeStarting reports whether the kubelet of a Machine has reported for a short time only that it is not ready. The rows of
// Clusters and Machines depend on it, too (health.go).
func isNodeStarting(m *clusterv1.Machine, now time.Time) bool {
	c := condition.Set(m.Status.Conditions).Get(clusterv1.MachineNodeReadyCondition)
	return c != nil && c.Status == metav1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) < nodeStartTime
}

// NewPoolNodes computes the rows of the Nodes of a MachinePool that are not Nodes of Machines. The status of a MachinePool has
// their names, but not their conditions. `slipway get nodes` calls it.
func NewPoolNodes(p *clusterv1.MachinePool, ofMachines map[string]bool) (out []Node) {
	for _, ref := range p.Status.NodeRefs {
		if ref.Name == "" || ofMachines[ref.Name] {
			continue
		}
		out = append(out, Node{
			Namespace: p.Namespace, Cluster: p.Spec.ClusterName, Name: ref.Name, Role: "worker", Version: p.Spec.Template.Spec.Version,
			Ready: string(metav1.ConditionUnknown), Healthy: string(metav1.ConditionUnknown), Created: p.CreationTimestamp.Time, Labels: p.Labels, Health: healthy,
		})
	}
	return out
}

func addressOf(addresses clusterv1.MachineAddresses) string {
	for _, t := range []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP} {
		if i := slices.IndexFunc(addresses, func(a clusterv1.MachineAddress) bool { return a.Type == t }); i >= 0 {
			return addresses[i].Address
		}
	}
	return ""
}

// StatusText returns the readiness of the Node as kubectl prints it.
func (n Node) StatusText() string {
	switch corev1.ConditionStatus(n.Ready) {
	case corev1.ConditionTrue:
		return "Ready"
	case corev1.ConditionFalse:
		return "NotReady"
	}
	return "Unknown"
}
