package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestClassRules: what of a class becomes of Machines and health checks is checked as those are.
func TestClassRules(t *testing.T) { // CC-08, CL-32
	bad := []clusterv1.MachineTaint{{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}}
	class := &clusterv1.ClusterClass{}
	class.Spec.ControlPlane.TemplateRef.Kind, class.Spec.Infrastructure.TemplateRef.Kind = "ATemplate", "BTemplate"
	class.Spec.ControlPlane.Taints = bad
	class.Spec.Workers.MachineDeployments = []clusterv1.MachineDeploymentClass{{Class: "a", Taints: bad}}
	class.Spec.Workers.MachineDeployments[0].HealthCheck.Remediation.TriggerIf.UnhealthyInRange = "[5-1]"
	class.Spec.Workers.MachinePools = []clusterv1.MachinePoolClass{{Class: "a", Taints: bad}}
	topology := clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "c"}, Version: "v1.36.3"}
	topology.ControlPlane.Taints = bad
	topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "a", Taints: bad}}
	topology.Workers.MachinePools = []clusterv1.MachinePoolTopology{{Name: "a", Taints: bad}}
	cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Topology: topology}}
	cluster.Name = "c"

	const reserved = `Invalid value: "node.kubernetes.io/not-ready": is reserved for Kubernetes`
	gates := Gates{ClusterTopology: true, MachineTaintPropagation: true}
	for name, c := range map[string]struct {
		request Request
		want    []string
	}{
		"class": {Request{New: class, Gates: gates}, []string{
			`spec.workers.machineDeployments[0].healthCheck.remediation.triggerIf.unhealthyInRange: Invalid value: "[5-1]": must be a range such as [1-5], with the smaller number first`,
			"spec.controlPlane.taints[0].key: " + reserved, "spec.workers.machineDeployments[0].taints[0].key: " + reserved,
			"spec.workers.machinePools[0].taints[0].key: " + reserved,
		}},
		"topology": {Request{New: cluster, Gates: gates}, []string{
			"spec.topology.controlPlane.taints[0].key: " + reserved, "spec.topology.workers.machineDeployments[0].taints[0].key: " + reserved,
			"spec.topology.workers.machinePools[0].taints[0].key: " + reserved,
		}},
	} {
		var got []string
		for _, err := range Validate(c.request).Errors {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
