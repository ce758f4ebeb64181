package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// health is the input for the MachineHealthCheck of a control plane or MachineDeployment; it has the name of that
// object.
type health struct {
	key         Key
	name        string
	checks      clusterv1.MachineHealthCheckChecks
	remediation clusterv1.MachineHealthCheckRemediation
	selector    map[string]string
}

// controlPlaneHealth adds the MachineHealthCheck of the control plane to the desired state ([Draft.DesiredState]). It
// has the checks of spec.topology if there are any, or else of the class; they are not merged. If the topology does not
// specify whether a MachineHealthCheck is created, one is created if there is anything to check. Cluster API documents
// both rules for the field healthCheck.
func (b *builder) controlPlaneHealth(name string) error {
	class, topology := b.Class.Spec.ControlPlane.HealthCheck, b.Cluster.Spec.Topology.ControlPlane.HealthCheck
	if !ptr.Deref(topology.Enabled, topology.IsDefined() || class.IsDefined()) {
		return nil
	}
	h := health{key: Key{Role: ControlPlaneHealthCheck}, name: name, selector: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}
	h.checks = clusterv1.MachineHealthCheckChecks(class.Checks)
	h.remediation.TriggerIf = clusterv1.MachineHealthCheckRemediationTriggerIf(class.Remediation.TriggerIf)
	h.remediation.TemplateRef = class.Remediation.TemplateRef
	if topology.IsDefined() {
		h.checks = clusterv1.MachineHealthCheckChecks(topology.Checks)
		h.remediation.TriggerIf = clusterv1.MachineHealthCheckRemediationTriggerIf(topology.Remediation.TriggerIf)
		h.remediation.TemplateRef = topology.Remediation.TemplateRef
	}
	return b.healthCheck(h)
}

// deploymentHealth is like controlPlaneHealth, for a MachineDeployment. MachinePools have no health check.
// [Draft.DesiredState] calls it for each MachineDeployment.
func (b *builder) deploymentHealth(w worker, name string) error {
	class, topology := w.class.HealthCheck, w.HealthCheck
	if !ptr.Deref(topology.Enabled, topology.IsDefined() || class.IsDefined()) {
		return nil
	}
	h := health{
		key: Key{deploymentHealthCheck, w.Key.Worker}, name: name,
		selector: map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterTopologyMachineDeploymentNameLabel: w.Key.Worker},
		checks:   clusterv1.MachineHealthCheckChecks(class.Checks),
	}
	h.remediation.TriggerIf = clusterv1.MachineHealthCheckRemediationTriggerIf(class.Remediation.TriggerIf)
	h.remediation.TemplateRef = class.Remediation.TemplateRef
	if topology.IsDefined() {
		h.checks = clusterv1.MachineHealthCheckChecks(topology.Checks)
		h.remediation.TriggerIf = clusterv1.MachineHealthCheckRemediationTriggerIf(topology.Remediation.TriggerIf)
		h.remediation.TemplateRef = topology.Remediation.TemplateRef
	}
	return b.healthCheck(h)
}

func (b *builder) healthCheck(h health) error {
	check := &clusterv1.MachineHealthCheck{}
	check.Namespace, check.Name = b.Cluster.Namespace, h.name
	check.Labels, check.OwnerReferences = b.labels(h.key), []metav1.OwnerReference{ownership.ByCluster(b.Cluster)}
	check.Spec.ClusterName, check.Spec.Selector.MatchLabels = b.Cluster.Name, h.selector
	check.Spec.Checks, check.Spec.Remediation = h.checks, h.remediation
	want, err := encode("MachineHealthCheck", check)
	if err != nil {
		return err
	}
	var live client.Object
	if o := b.Live.HealthChecks[h.name]; o != nil {
		live = o
	}
	b.add(keyed{h.key, want}, live)
	return nil
}
