package progress_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/test/testkit"
)

const infraGroup, bootstrapGroup, addonsGroup = "infra.example.com", "bootstrap.example.com", "addons.cluster.x-k8s.io"

// unready is a cluster with one of everything, none of which is ready.
func unready() describe.Snapshot {
	s := created(nil)
	s.Objects = map[describe.Ref]*unstructured.Unstructured{}
	put := func(group, kind, name string) clusterv1.ContractVersionedObjectReference {
		s.Objects[describe.Ref{Group: group, Kind: kind, Name: name}] = &unstructured.Unstructured{Object: map[string]any{
			"kind": kind, "metadata": map[string]any{"name": name}, "status": map[string]any{}}}
		return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
	}
	put(infraRef.APIGroup, infraRef.Kind, infraRef.Name)
	put(planeRef.APIGroup, planeRef.Kind, planeRef.Name)
	put(addonsGroup, "ClusterResourceSet", "network")
	s.ResourceSets = []string{"network"}
	s.Pools[0].Spec.Template.Spec.InfrastructureRef = put(infraGroup, "ExamplePool", "pool")
	s.Pools[0].Spec.Template.Spec.Bootstrap.ConfigRef = put(bootstrapGroup, "ExampleConfig", "pool")
	s.Deployments = []clusterv1.MachineDeployment{{ObjectMeta: metav1.ObjectMeta{Name: "md"}, Spec: clusterv1.MachineDeploymentSpec{Replicas: n(1)}}}
	s.Sets = []clusterv1.MachineSet{
		{ObjectMeta: metav1.ObjectMeta{Name: "md-1", Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "alone"}},
	}
	labels := []map[string]string{
		{clusterv1.MachineSetNameLabel: "md-1"}, {clusterv1.MachinePoolNameLabel: "pool"}, {clusterv1.MachineSetNameLabel: "alone"},
		{clusterv1.MachineControlPlaneLabel: ""}, nil,
	}
	for i, name := range []string{"of-deployment", "of-pool", "of-set", "of-control-plane", "alone"} {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels[i]}}
		m.Spec.InfrastructureRef = put(infraGroup, "ExampleMachine", name)
		m.Spec.Bootstrap.ConfigRef = put(bootstrapGroup, "ExampleConfig", name)
		s.Machines = append(s.Machines, m)
	}
	return s
}

// write sets a condition of an object of the cluster.
func write(s *describe.Snapshot, kind, name string, c metav1.Condition) {
	for ref, o := range s.Objects {
		if ref.Kind == kind && ref.Name == name {
			o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
				"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message}}}
			return
		}
	}
	list := []metav1.Condition{c}
	switch kind {
	case "Cluster":
		s.Cluster.Status.Conditions = list
	case "MachineDeployment":
		s.Deployments[0].Status.Conditions = list
	case "MachinePool":
		s.Pools[0].Status.Conditions = list
	case "MachineSet":
		s.Sets[slices.IndexFunc(s.Sets, func(o clusterv1.MachineSet) bool { return o.Name == name })].Status.Conditions = list
	case "Machine":
		s.Machines[slices.IndexFunc(s.Machines, func(o clusterv1.Machine) bool { return o.Name == name })].Status.Conditions = list
	}
}

func objects() [][2]string {
	all := [][2]string{{"Cluster", "demo"}, {"ExampleCluster", "demo"}, {"ExamplePlane", "demo"}, {"MachineDeployment", "md"}, {"MachineSet", "md-1"},
		{"MachineSet", "alone"}, {"MachinePool", "pool"}, {"ExamplePool", "pool"}, {"ExampleConfig", "pool"}, {"ClusterResourceSet", "network"}}
	for _, name := range []string{"of-deployment", "of-pool", "of-set", "of-control-plane", "alone"} {
		all = append(all, [2]string{"Machine", name}, [2]string{"ExampleMachine", name}, [2]string{"ExampleConfig", name})
	}
	return all
}

// Whatever an object says that is not as it should be is in what wait prints while the cluster is not ready.
func TestEveryConditionIsPrinted(t *testing.T) {
	const word = "the one thing that nobody else says"
	all := testkit.AllConditions(t)
	for _, o := range objects() {
		for _, c := range all {
			bad := metav1.ConditionFalse
			if c.Negative {
				bad = metav1.ConditionTrue
			}
			for _, status := range []metav1.ConditionStatus{bad, metav1.ConditionUnknown} {
				if o[0] == "Cluster" && slices.Contains(summaries(), c.Type) {
					continue
				}
				s := unready()
				write(&s, o[0], o[1], cond(c.Type, string(status), word))
				if out := printed(t, s); !strings.Contains(out, word) {
					t.Errorf("%s %s: %s=%s is not printed:\n%s", o[0], o[1], c.Type, status, out)
				}
			}
		}
	}
}

func printed(t *testing.T, s describe.Snapshot) string {
	t.Helper()
	steps, err := progress.Creation(s)
	if err != nil {
		return err.Error()
	}
	var lines []string
	for _, step := range steps {
		lines = append(lines, step.String())
	}
	return strings.Join(lines, "\n")
}

// summaries are what a Cluster says of its parts, which have steps of their own. They are printed when all of these are done.
func summaries() []string {
	return []string{"Available", "WorkersAvailable", "WorkerMachinesReady", "WorkerMachinesUpToDate", "ControlPlaneMachinesReady",
		"ControlPlaneMachinesUpToDate", "RollingOut", "ScalingUp", "ScalingDown", "Remediating"}
}

func TestSummariesArePrintedInTheEnd(t *testing.T) {
	for _, conditionType := range summaries() {
		status := "False"
		if slices.Contains([]string{"RollingOut", "ScalingUp", "ScalingDown", "Remediating"}, conditionType) {
			status = "True"
		}
		s := created(joined(2))
		provider(&s, infraRef, "Ready", "True", "")
		provider(&s, planeRef, "Available", "True", "")
		s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, cond(conditionType, status, "a summary"))
		if out := printed(t, s); !strings.Contains(out, "a summary") {
			t.Errorf("%s is not printed:\n%s", conditionType, out)
		}
	}
}
