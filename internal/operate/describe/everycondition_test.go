package describe_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/test/testkit"
)

// set writes a condition into an object of one kind of the world.
type set func(*describe.Snapshot, metav1.Condition)

// kinds are all that the tree shows, without any flag.
func kinds() map[string]set {
	object := func(group, kind, name string) set {
		return func(s *describe.Snapshot, c metav1.Condition) {
			u := s.Objects[describe.Ref{Group: group, Kind: kind, Name: name}]
			list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			list = slices.DeleteFunc(list, func(v any) bool { return v.(map[string]any)["type"] == c.Type })
			list = append(list, raw(c.Type, string(c.Status), c.Reason, c.Message))
			if u.Object["status"] == nil {
				u.Object["status"] = map[string]any{}
			}
			u.Object["status"].(map[string]any)["conditions"] = list
			delete(u.Object["status"].(map[string]any), "v1beta2")
		}
	}
	core := func(list func(*describe.Snapshot) *[]metav1.Condition) set {
		return func(s *describe.Snapshot, c metav1.Condition) {
			l := list(s)
			*l = append(slices.DeleteFunc(slices.Clone(*l), func(x metav1.Condition) bool { return x.Type == c.Type }), c)
		}
	}
	return map[string]set{
		"Cluster":                      core(func(s *describe.Snapshot) *[]metav1.Condition { return &s.Cluster.Status.Conditions }),
		"ClusterInfrastructure":        object(infraGroup, "ExampleCluster", "demo"),
		"ControlPlane":                 object(planeGroup, "ExampleControlPlane", "demo"),
		"MachineDeployment":            core(func(s *describe.Snapshot) *[]metav1.Condition { return &s.Deployments[0].Status.Conditions }),
		"MachineSet":                   core(func(s *describe.Snapshot) *[]metav1.Condition { return &s.Sets[0].Status.Conditions }),
		"MachinePool":                  core(func(s *describe.Snapshot) *[]metav1.Condition { return &s.Pools[0].Status.Conditions }),
		"MachinePoolInfrastructure":    object(infraGroup, "ExamplePool", "pool"),
		"BootstrapConfig of a pool":    object(bootstrapGroup, "ExampleConfig", "pool"),
		"Machine":                      core(func(s *describe.Snapshot) *[]metav1.Condition { return &s.Machines[1].Status.Conditions }),
		"MachineInfrastructure":        object(infraGroup, "ExampleMachine", "md-1-a"),
		"BootstrapConfig of a Machine": object(bootstrapGroup, "ExampleConfig", "md-1-a"),
		"ClusterResourceSet":           object("addons.cluster.x-k8s.io", "ClusterResourceSet", "storage"),
	}
}

// Whatever an object of the tree says that is not as it should be is in what describe shows, without flags; what is as it
// should be is not.
func TestEveryConditionIsShown(t *testing.T) {
	const word = "the one thing that nobody else says"
	all := testkit.AllConditions(t)
	for kind, write := range kinds() {
		for _, c := range all {
			good, bad := metav1.ConditionTrue, metav1.ConditionFalse
			if c.Negative {
				good, bad = bad, good
			}
			for _, status := range []metav1.ConditionStatus{good, bad, metav1.ConditionUnknown} {
				s := world()
				s.Cluster.Spec.Paused = nil
				put(&s, describe.Ref{Group: infraGroup, Kind: "ExamplePool", Name: "pool"}, nil, map[string]any{})
				write(&s, cond(c.Type, string(status), "Reason", word, 0))
				out := describe.Render(describe.Build(s, describe.Options{Grouping: true}), describe.Style{Now: now()})
				if status != good && !strings.Contains(out, word) {
					t.Errorf("%s: %s=%s is not shown:\n%s", kind, c.Type, status, out)
				}
				headline := c.Type == "Available" || c.Type == "Ready"
				if status == good && !headline && strings.Contains(out, word) {
					t.Errorf("%s: %s=%s is shown, and nothing is wrong with it:\n%s", kind, c.Type, status, out)
				}
			}
		}
	}
}
