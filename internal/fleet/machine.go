package fleet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Machine is the row of a Machine. `slipway get machines` prints it, also as JSON, so its JSON names must not change.
type Machine struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Name      string `json:"name"`
	// Role is "control-plane" or "worker".
	Role string `json:"role"`
	Node string `json:"node,omitempty"`
	// Version is the desired version, and Running the version of the kubelet.
	Version string `json:"version,omitempty"`
	Running string `json:"running,omitempty"`
	// Ready, Available and UpToDate are the statuses of the conditions.
	Ready     string `json:"ready"`
	Available string `json:"available"`
	UpToDate  string `json:"upToDate"`
	Phase     string `json:"phase"`
	Health    Health `json:"health"`
	Cause
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"-"`
}

// NewMachine computes the row of a Machine. `slipway get machines` calls it.
func NewMachine(g rootcause.Graph, m *clusterv1.Machine, now time.Time) Machine {
	have := condition.Set(m.Status.Conditions)
	row := Machine{
		Namespace: m.Namespace, Cluster: m.Spec.ClusterName, Name: m.Name, Role: roleOf(m), Node: m.Status.NodeRef.Name, Version: m.Spec.Version,
		Ready: statusOf(have, clusterv1.MachineReadyCondition), Available: statusOf(have, clusterv1.MachineAvailableCondition), UpToDate: statusOf(have, clusterv1.MachineUpToDateCondition),
		Phase: m.Status.Phase, Created: m.CreationTimestamp.Time, Labels: m.Labels,
	}
	if info := m.Status.NodeInfo; info != nil {
		row.Running = info.KubeletVersion
	}
	var facts healthFacts
	row.Cause, facts = explain(g, machineRef(m.Namespace, m.Name), now)
	facts.deleting = !m.DeletionTimestamp.IsZero()
	facts.progressing = facts.progressing || isStarting(m) || have.IsFalse(clusterv1.MachineUpToDateCondition) || have.IsTrue(clusterv1.MachineUpdatingCondition)
	facts.paused = isPaused(nil, m.Annotations) || have.IsTrue(clusterv1.PausedCondition)
	row.Health = healthOf(facts)
	if row.Reason == "" && row.Health == changing {
		row.Reason = machineProgressText(m)
	}
	return row
}

// IsTimed reports whether the row may change without a change of an object.
func (m Machine) IsTimed() bool { return isTimed(m.Health, m.Cause) }

func machineProgressText(m *clusterv1.Machine) string {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return "Deleting"
	case isStarting(m):
		return "Provisioning"
	}
	return "Not up to date"
}

// isStarting reports whether the Machine has not had a Node yet.
func isStarting(m *clusterv1.Machine) bool {
	switch clusterv1.MachinePhase(m.Status.Phase) {
	case "", clusterv1.MachinePhasePending, clusterv1.MachinePhaseProvisioning, clusterv1.MachinePhaseProvisioned:
		return true
	}
	return false
}

func machineRef(namespace, name string) rootcause.Ref {
	return rootcause.Ref{Group: clusterv1.GroupVersion.Group, Kind: "Machine", Namespace: namespace, Name: name}
}

func roleOf(m *clusterv1.Machine) string {
	if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return "control-plane"
	}
	return "worker"
}

func statusOf(have condition.Set, conditionType string) string {
	if c := have.Get(conditionType); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}
