package controlplane

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// The hook is reached when the Machine controller says so, and is the last one from v1.31 on.
func TestHook(t *testing.T) { // KC-11, KC-35
	const own = controlplanev1.PreTerminateHookCleanupAnnotation
	type answer struct {
		Has, Reached, Last bool
		Others             []string
	}
	waiting := metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason}
	draining := metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingDrainingNodeReason}
	other := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/backup"
	first := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/a"
	drain := clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup"
	for name, tc := range map[string]struct {
		version     string
		annotations map[string]string
		conditions  []metav1.Condition
		want        answer
	}{
		"none":                    {"v1.36.3", nil, []metav1.Condition{waiting}, answer{Last: true}},
		"not deleted":             {"v1.36.3", map[string]string{own: ""}, nil, answer{Has: true, Last: true}},
		"draining":                {"v1.36.3", map[string]string{own: ""}, []metav1.Condition{draining}, answer{Has: true, Last: true}},
		"reached":                 {"v1.36.3", map[string]string{own: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Last: true}},
		"others, in order":        {"v1.31.0", map[string]string{own: "", other: "", first: "", drain: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Last: true, Others: []string{first, other}}},
		"kubelet without the own": {"v1.30.9", map[string]string{own: "", other: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Others: []string{other}}},
		"version that is none":    {"latest", map[string]string{own: ""}, nil, answer{Has: true, Last: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			m.Spec.Version, m.Status.Conditions = tc.version, tc.conditions
			got := answer{hasHook(m), isHookReached(m), isHookLast(m), otherHooks(m)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

var hookNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// machine is one that has joined; its Node has its name.
func hookMachine(name string, changes ...func(*machines.OwnedMachine)) machines.OwnedMachine {
	m := machines.OwnedMachine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(hookNow.Add(-time.Hour)), Annotations: map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""}}}}
	m.Spec.Bootstrap.DataSecretName, m.Status.NodeRef.Name = &name, name
	for _, change := range changes {
		change(&m)
	}
	return m
}

func leaving(m *machines.OwnedMachine) {
	m.Deleted, m.DeletionTimestamp = true, &metav1.Time{Time: hookNow}
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: "True", Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason}}
}

func unreferenced(m *machines.OwnedMachine)    { m.Status.NodeRef.Name = "" }
func notBootstrapped(m *machines.OwnedMachine) { m.Spec.Bootstrap.DataSecretName = nil }

// newHookInput is a control plane whose etcd members have these names, all of them healthy.
func newHookInput(names []string, all ...machines.OwnedMachine) snapshot {
	e := workload.Etcd{Statuses: map[string]workload.EtcdStatus{}}
	for i, name := range names {
		e.Members = append(e.Members, etcd.Member{ID: uint64(i + 1), Name: name})
	}
	for i, name := range names {
		e.Statuses[name] = workload.EtcdStatus{Status: etcd.Status{ID: uint64(i + 1), ClusterID: 1, Leader: 1, Members: e.Members}}
	}
	s := snapshot{Now: hookNow, ControlPlane: &controlplanev1.KubeadmControlPlane{}, Machines: all,
		Workload: workload.State{At: hookNow, Initialized: true, Etcd: e}}
	s.Etcd = s.matchMembers()
	return s
}

func withHookInput(in snapshot, change func(*snapshot)) snapshot {
	change(&in)
	return in
}

// The hook of a Machine stays until its member is removed, or cannot be there.
func TestLeave(t *testing.T) { // KC-11, KC-12
	down := func(s *snapshot) { s.Workload.Problem = "the API does not respond" }
	for name, tc := range map[string]struct {
		in   snapshot
		want []string
	}{
		"none leaves": {newHookInput([]string{"a", "b"}, hookMachine("a"), hookMachine("b")), nil},
		"leader": {newHookInput([]string{"a", "b", "c"}, hookMachine("a", leaving), hookMachine("b"), hookMachine("c")), []string{
			"move the etcd leader from Node a to Node b: its Machine is being deleted", "remove the etcd member a: Machine a is being deleted", "remove the hook of Machine a: its etcd member is removed"}},
		"without nodeRef": {newHookInput([]string{"x", "y"}, hookMachine("x"), hookMachine("b", leaving, unreferenced)), []string{
			"remove the etcd member y: Machine b is being deleted", "remove the hook of Machine b: its etcd member is removed"}},
		"without nodeRef, the API is down": {withHookInput(newHookInput([]string{"x", "y"}, hookMachine("x"), hookMachine("b", leaving, unreferenced)), down), []string{"wait: The etcd member of Machine b cannot be removed before the other members respond: the API does not respond"}},
		"without bootstrap data":           {withHookInput(newHookInput([]string{"x"}, hookMachine("x"), hookMachine("b", leaving, unreferenced, notBootstrapped)), down), []string{"remove the hook of Machine b: it never had bootstrap data, and so no etcd member"}},
		"without a member":                 {newHookInput([]string{"x"}, hookMachine("x"), hookMachine("b", leaving, unreferenced)), []string{"remove the hook of Machine b: it has no etcd member"}},
		"the last":                         {newHookInput([]string{"a"}, hookMachine("a", leaving)), []string{"remove the hook of Machine a: no other Machine is left that could remove its etcd member"}},
		"external etcd": {withHookInput(newHookInput([]string{"a"}, hookMachine("a", leaving), hookMachine("b")), func(s *snapshot) {
			s.ControlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://e"}
		}), []string{"remove the hook of Machine a: it has no etcd member"}},
		"the quorum would be lost":              {newHookInput([]string{"a"}, hookMachine("a", leaving), hookMachine("b", unreferenced)), []string{"wait: The etcd member of Machine a cannot be removed: etcd would have 0 of 0 members healthy, 1 needed"}},
		"it is not known which member it has":   {newHookInput([]string{"x", "y", "z"}, hookMachine("x"), hookMachine("b", leaving, unreferenced), hookMachine("c", unreferenced)), []string{"wait: The etcd member of Machine b cannot be removed: any of the etcd members without a Machine may run on it (y; z): correct spec.providerID of its Node, or its addresses, or remove the member from etcd if it is not needed"}},
		"it is not known, and another one goes": {newHookInput([]string{"x", "y", "z"}, hookMachine("b", leaving, unreferenced), hookMachine("x", leaving), hookMachine("c", unreferenced)), []string{"wait: The etcd member of Machine b cannot be removed", "remove the etcd member x: Machine x is being deleted", "remove the hook of Machine x: its etcd member is removed"}},
	} {
		var p reconciler.Plan
		releaseDeleted(tc.in, &p)
		var got []string
		for _, w := range p.Waits {
			got = append(got, "wait: "+w.Message)
		}
		for _, a := range p.Actions {
			got = append(got, fmt.Sprint(a))
		}
		if name == "it is not known, and another one goes" && len(got) > 0 {
			got[0] = got[0][:len(tc.want[0])]
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
