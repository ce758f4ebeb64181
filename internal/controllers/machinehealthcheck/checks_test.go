package machinehealthcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// cluster is initialized since two hours.
func cluster(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooCluster", Name: "c"}
	c.Status.Initialization.ControlPlaneInitialized, c.Status.Initialization.InfrastructureProvisioned = ptr.To(true), ptr.To(true)
	c.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: "True", Reason: "A", LastTransitionTime: ago(2 * time.Hour)},
		{Type: clusterv1.ClusterInfrastructureReadyCondition, Status: "True", Reason: "A", LastTransitionTime: ago(2 * time.Hour)},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// machine is a worker with a Node of its name, two hours old.
func machine(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: ago(2 * time.Hour),
		Labels: map[string]string{clusterv1.ClusterNameLabel: "c", "pool": "a"},
	}}
	m.Spec.ClusterName = "c"
	m.Status.NodeRef.Name = name
	for _, f := range change {
		f(m)
	}
	return m
}

func noNode(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }
func deleting(m *clusterv1.Machine) {
	m.DeletionTimestamp, m.Finalizers = ptr.To(ago(0)), []string{"x"}
}
func controlPlane(m *clusterv1.Machine) {
	m.Labels[clusterv1.MachineControlPlaneLabel] = ""
}
func ofPool(m *clusterv1.Machine) {
	m.Labels[clusterv1.MachinePoolNameLabel] = "p"
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: "p-uid", Controller: ptr.To(true)}}
}
func annotated(key string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "") }
}
func has(conditionType, status, reason string, since time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, LastTransitionTime: ago(since)})
	}
}

// node is one whose Ready condition has the status for so long.
func node(name, ready string, since time.Duration) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionStatus(ready), LastTransitionTime: ago(since)}}
	return n
}

func healthy(name string) target {
	return target{Machine: machine(name), Node: node(name, "True", time.Hour), NodeRead: true}
}

func sick(name string, change ...func(*clusterv1.Machine)) target {
	return target{Machine: machine(name, change...), Node: node(name, "False", time.Hour), NodeRead: true}
}

func starting(name string) target {
	return target{Machine: machine(name, noNode, func(m *clusterv1.Machine) { m.CreationTimestamp = ago(time.Minute) }), NodeRead: true}
}

func TestExamine(t *testing.T) { // HC-01, HC-02, HC-03, HC-06
	nodes := []clusterv1.UnhealthyNodeCondition{
		{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To(int32(300))},
		{Type: corev1.NodeReady, Status: "Unknown", TimeoutSeconds: ptr.To(int32(60))},
		{Type: "Full", Status: "True", TimeoutSeconds: ptr.To(int32(0))},
	}
	machines := []clusterv1.UnhealthyMachineCondition{{Type: "EtcdHealthy", Status: "False", TimeoutSeconds: ptr.To(int32(120))}}
	all := clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: nodes, UnhealthyMachineConditions: machines}
	none := func(seconds int32) clusterv1.MachineHealthCheckChecks {
		return clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: &seconds}
	}
	young := func(age time.Duration) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.CreationTimestamp = ago(age) }
	}
	type want struct {
		Reason   string
		Problems []string
		Next     time.Duration
	}
	for name, tc := range map[string]struct {
		reason  string
		cluster func(*clusterv1.Cluster)
		checks  clusterv1.MachineHealthCheckChecks
		target  target
		want    want
	}{
		"healthy":        {"nothing fails", nil, all, healthy("m"), want{}},
		"annotation":     {"a person knows better than every check", nil, all, target{Machine: machine("m", annotated(clusterv1.RemediateMachineAnnotation)), Node: node("m", "True", time.Hour), NodeRead: true}, want{"HasRemediateAnnotation", []string{"the annotation cluster.x-k8s.io/remediate-machine requests remediation"}, 0}},
		"node condition": {"the Node has been NotReady longer than allowed", nil, all, sick("m"), want{"UnhealthyNode", []string{"condition Ready of the Node has been False for more than 5m0s"}, 0}},
		"in time":        {"what may fail is looked at when it may", nil, all, target{Machine: machine("m"), Node: node("m", "False", 100*time.Second), NodeRead: true}, want{"", nil, 200 * time.Second}},
		"to the second":  {"the timeout is over when it is over", nil, all, target{Machine: machine("m"), Node: node("m", "Unknown", 60*time.Second), NodeRead: true}, want{"UnhealthyNode", []string{"condition Ready of the Node has been Unknown for more than 1m0s"}, 0}},
		"without timeout": {"zero seconds: at once", nil, all, target{Machine: machine("m"), NodeRead: true, Node: func() *corev1.Node {
			n := node("m", "True", time.Hour)
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Full", Status: "True", LastTransitionTime: ago(0)})
			return n
		}()}, want{"UnhealthyNode", []string{"condition Full of the Node has been True for more than 0s"}, 0}},
		"machine condition": {"what others say of the Machine counts too", nil, all, target{Machine: machine("m", has("EtcdHealthy", "False", "A", time.Hour)), Node: node("m", "True", time.Hour), NodeRead: true}, want{"UnhealthyMachine", []string{"condition EtcdHealthy of the Machine has been False for more than 2m0s"}, 0}},
		"all merged": {"one message says all that is wrong, the reason is the first in rank", nil, all,
			sick("m", has("EtcdHealthy", "False", "A", time.Hour), annotated(clusterv1.RemediateMachineAnnotation)), want{"HasRemediateAnnotation", []string{
				"the annotation cluster.x-k8s.io/remediate-machine requests remediation", "condition EtcdHealthy of the Machine has been False for more than 2m0s",
				"condition Ready of the Node has been False for more than 5m0s"}, 0}},
		"machine before node": {"what the Machine says ranks before what its Node says", nil, all, sick("m", has("EtcdHealthy", "False", "A", time.Hour)), want{"UnhealthyMachine",
			[]string{"condition EtcdHealthy of the Machine has been False for more than 2m0s", "condition Ready of the Node has been False for more than 5m0s"}, 0}},
		"node deleted":   {"it was there once", nil, all, target{Machine: machine("m"), NodeRead: true}, want{"NodeDeleted", []string{"Node m has been deleted"}, 0}},
		"node not asked": {"who has not looked does not know", nil, all, target{Machine: machine("m")}, want{}},
		"no node":        {"600 s by default", nil, all, target{Machine: machine("m", noNode), NodeRead: true}, want{"NodeStartupTimeout", []string{"no Node appeared within 10m0s: its infrastructure is not ready"}, 0}},
		"node to come":   {"counted from the creation", nil, all, target{Machine: machine("m", noNode, young(4*time.Minute)), NodeRead: true}, want{"", nil, 6 * time.Minute}},
		"other timeout":  {"as the spec says", nil, none(60), target{Machine: machine("m", noNode, young(2*time.Minute)), NodeRead: true}, want{"NodeStartupTimeout", []string{"no Node appeared within 1m0s: its infrastructure is not ready"}, 0}},
		"no timeout":     {"0 turns the check off", nil, none(0), target{Machine: machine("m", noNode), NodeRead: true}, want{}},
		"base: control plane": {"a Machine cannot join before there is something to join", func(c *clusterv1.Cluster) { c.Status.Conditions[0].LastTransitionTime = ago(time.Minute) }, all,
			target{Machine: machine("m", noNode), NodeRead: true}, want{"", nil, 9 * time.Minute}},
		"base: cluster infrastructure": {"nor start before the network is there", func(c *clusterv1.Cluster) { c.Status.Conditions[1].LastTransitionTime = ago(2 * time.Minute) }, all,
			target{Machine: machine("m", noNode), NodeRead: true}, want{"", nil, 8 * time.Minute}},
		"base: its infrastructure": {"nor before its own host is", nil, all, target{Machine: machine("m", noNode, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", 3*time.Minute)), NodeRead: true},
			want{"", nil, 7 * time.Minute}},
		"base: infrastructure not ready": {"when it is not, the creation counts", nil, all, target{Machine: machine("m", noNode, has(clusterv1.MachineInfrastructureReadyCondition, "False", "A", 3*time.Minute)), NodeRead: true},
			want{"NodeStartupTimeout", []string{"no Node appeared within 10m0s: its infrastructure is not ready"}, 0}},
		"late after its infrastructure": {"the Node does not come", nil, all, target{Machine: machine("m", noNode, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", time.Hour)), Setbacks: 2, NodeRead: true},
			want{"NodeStartupTimeout", []string{"no Node appeared within 10m0s"}, 0}},
		"after setbacks": {"a provider without capacity gets twice the time after each", nil, all, target{Machine: machine("m", noNode, young(30*time.Minute)), Setbacks: 2, NodeRead: true},
			want{"", nil, 10 * time.Minute}},
		"late after setbacks": {"it is replaced all the same", nil, all, target{Machine: machine("m", noNode, young(40*time.Minute)), Setbacks: 2, NodeRead: true},
			want{"NodeStartupTimeout", []string{"no Node appeared within 40m0s: its infrastructure is not ready"}, 0}},
		"guard: no control plane": {"workers wait for it, and are not blamed", func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }, all,
			target{Machine: machine("m", noNode, has("EtcdHealthy", "False", "A", time.Hour))}, want{}},
		"guard: no infrastructure": {"nor for the cluster's infrastructure", func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil }, all, sick("m"), want{}},
		"guard: control plane machine": {"the first of them may be the reason why nothing is initialized", func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }, all,
			target{Machine: machine("m", noNode, controlPlane)}, want{"NodeStartupTimeout", []string{"no Node appeared within 10m0s: its infrastructure is not ready"}, 0}},
		"guard: annotation": {"who asks for it gets it", func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }, all,
			target{Machine: machine("m", annotated(clusterv1.RemediateMachineAnnotation))}, want{"HasRemediateAnnotation", []string{"the annotation cluster.x-k8s.io/remediate-machine requests remediation"}, 0}},
		"nothing can start": {"not even a control plane Machine starts without infrastructure", func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil }, all,
			target{Machine: machine("m", noNode, controlPlane)}, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			f := examine(snapshot{Now: now, Cluster: c}, tc.checks, tc.target)
			if diff := cmp.Diff(tc.want, want{f.reason, f.problems, f.next}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMerge(t *testing.T) { // HC-06
	a := checkResult{reason: "UnhealthyNode", problems: []string{"x", "y"}, next: 3}
	b := checkResult{reason: "UnhealthyMachine", problems: []string{"y", "z"}, next: 2}
	got := merge(a, b)
	if got.reason != "UnhealthyMachine" || got.next != 2 || got.message() != "Health check failed: x; y; z" {
		t.Errorf("got %+v, %s", got, got.message())
	}
	if got := merge(checkResult{}, checkResult{next: 5}); got.unhealthy() || got.next != 5 {
		t.Errorf("nothing is wrong: %+v", got)
	}
}

func TestSelects(t *testing.T) { // HC-07, HC-12, MP-16
	for name, tc := range map[string]struct {
		reason string
		m      *clusterv1.Machine
		want   bool
	}{
		"worker":        {"the labels match", machine("m"), true},
		"control plane": {"Machines of every owner are looked at", machine("m", controlPlane), true},
		"of a pool":     {"of pools too", machine("m", ofPool), true},
		"other labels":  {"not selected", machine("m", func(m *clusterv1.Machine) { m.Labels["pool"] = "b" }), false},
		"other cluster": {"of another cluster", machine("m", func(m *clusterv1.Machine) { m.Spec.ClusterName = "d" }), false},
		"skip":          {"marked to be left alone", machine("m", annotated(clusterv1.MachineSkipRemediationAnnotation)), false},
		"paused":        {"paused", machine("m", annotated(clusterv1.PausedAnnotation)), false},
	} {
		if got := selects(check(), tc.m); got != tc.want {
			t.Errorf("%s: %s: got %t", name, tc.reason, got)
		}
	}
	empty := check(func(c *clusterv1.MachineHealthCheck) { c.Spec.Selector = metav1.LabelSelector{} })
	broken := check(func(c *clusterv1.MachineHealthCheck) {
		c.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "What"}}
	})
	if selects(empty, machine("m")) || selects(broken, machine("m")) {
		t.Error("a selector that selects everything, or cannot be read, selects nothing")
	}
}

func TestLimit(t *testing.T) { // HC-05, HC-09
	for name, tc := range map[string]struct {
		reason              string
		trigger             clusterv1.MachineHealthCheckRemediationTriggerIf
		machines, unhealthy int
		allowed             bool
		left                int
	}{
		"none":             {"without a limit remediation is always allowed", clusterv1.MachineHealthCheckRemediationTriggerIf{}, 5, 5, true, 0},
		"none, some left":  {"as many as there are healthy ones may follow", clusterv1.MachineHealthCheckRemediationTriggerIf{}, 5, 2, true, 3},
		"number":           {"up to the number", lessOrEqual(intOrString("2")), 5, 2, true, 0},
		"number, too many": {"not more", lessOrEqual(intOrString("2")), 5, 3, false, 0},
		"percent":          {"rounded down: 40 % of 4 is 1", lessOrEqual(intOrString("40%")), 4, 1, true, 0},
		"percent, over":    {"2 of 4 are more", lessOrEqual(intOrString("40%")), 4, 2, false, 0},
		"range":            {"inside", inRange("[2-4]"), 9, 3, true, 1},
		"range, below":     {"too few are not worth it", inRange("[2-4]"), 9, 1, false, 0},
		"range, above":     {"too many are something else than broken Machines", inRange("[2-4]"), 9, 5, false, 0},
		"both":             {"the range wins", clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyInRange: "[3-5]", UnhealthyLessThanOrEqualTo: intOrString("1")}, 9, 4, true, 1},
	} {
		l, err := limitOf(tc.trigger, tc.machines)
		if err != nil {
			t.Fatal(name, err)
		}
		if l.allows(tc.unhealthy) != tc.allowed || l.left(tc.unhealthy, tc.machines) != tc.left {
			t.Errorf("%s: %s: allowed %t, left %d", name, tc.reason, l.allows(tc.unhealthy), l.left(tc.unhealthy, tc.machines))
		}
	}
	for _, bad := range []clusterv1.MachineHealthCheckRemediationTriggerIf{inRange("[5-2]"), inRange("[a-b]"), inRange("[1-99999999999999999999]"), lessOrEqual(intOrString("many"))} {
		if _, err := limitOf(bad, 3); err == nil {
			t.Errorf("%+v is no limit", bad)
		}
	}
}
