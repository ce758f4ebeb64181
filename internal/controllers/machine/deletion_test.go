package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	preDrainHook     = clusterv1.PreDrainDeleteHookAnnotationPrefix
	preTerminateHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix
)

func external(s *snapshot) { s.ControlPlane.External = true }

func annotated(keys ...string) func(*snapshot) {
	return func(s *snapshot) {
		s.Machine.Annotations = map[string]string{}
		for _, k := range keys {
			s.Machine.Annotations[k] = ""
		}
	}
}

// holding is a cordoned Node with these Pods.
func holding(pods ...corev1.Pod) func(*snapshot) {
	return func(s *snapshot) {
		s.Node.Item.Spec.Unschedulable = true
		plan := drain.Decide(drain.View{Now: now, Node: s.Node.Item, Pods: pods, Removed: s.Infra.Removed})
		s.Drain = &plan
	}
}

func aPod(name string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID(name)}}
}

func began(change func(*clusterv1.MachineDeletionStatus)) func(*snapshot) {
	return func(s *snapshot) {
		if s.Machine.Status.Deletion == nil {
			s.Machine.Status.Deletion = &clusterv1.MachineDeletionStatus{}
		}
		change(s.Machine.Status.Deletion)
	}
}

func drainingSince(d time.Duration) func(*snapshot) {
	return began(func(st *clusterv1.MachineDeletionStatus) { st.NodeDrainStartTime = metav1.NewTime(ago(d)) })
}

func detachingSince(d time.Duration) func(*snapshot) {
	return began(func(st *clusterv1.MachineDeletionStatus) {
		st.WaitForNodeVolumeDetachStartTime = metav1.NewTime(ago(d))
	})
}

func terminating(s *snapshot) {
	began(func(st *clusterv1.MachineDeletionStatus) { st.WaitForPreTerminateHookStartTime = metav1.NewTime(now) })(s)
}

func timeouts(drain, volumes int32) func(*snapshot) {
	return func(s *snapshot) {
		s.Machine.Spec.Deletion.NodeDrainTimeoutSeconds, s.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = &drain, &volumes
	}
}

// attached reports one volume as attached to the Node.
func attached(s *snapshot) {
	s.Node.Item.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}}
	s.Volumes = &drain.Volumes{Node: s.Node.Item}
}

// machineRemoved is an infrastructure machine that is gone for good, of which the Node does not know yet.
func machineRemoved(s *snapshot) {
	s.Infra = infra("spec: {providerID: x://1}\nstatus: {initialization: {provisioned: true}, conditions: [{type: Ready, status: 'False', reason: NotReady}, " +
		"{type: MachineProvisioned, status: 'False', reason: MachineRemoved}]}")
}

func unreachable(s *snapshot) { nodeSays("Ready", "Unknown", "silent")(s) }

// asked returns the plan in a line for each thing to do, ask and wait for, without the rest.
func asked(p reconciler.Plan) []string {
	var out []string
	for _, q := range p.Reads {
		out = append(out, "ask: "+q.String())
	}
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, w.Reason)
	}
	return out
}

func TestStages(t *testing.T) {
	infraNext := []string{"do: delete FooMachine i: the Machine is deleted", "WaitingForInfrastructureDeletion"}
	cordon := []string{"do: cordon Node n: its Machine is deleted", "DrainingNode"}
	down := func(s *snapshot) { s.Node = observedNode{Unreachable: true} }
	unseen := func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }
	unnoted := func(s *snapshot) { s.Machine.Spec.ProviderID, s.Machine.Status.NodeRef.Name = "", "" }
	removed := func(s *snapshot) { s.Infra, s.Bootstrap = contract.InfraMachineView{}, contract.BootstrapConfigView{} }
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"pre-drain hook":              {"MD-02: before anything else", settled(deleted, external, annotated(preDrainHook+"/b", preDrainHook)), []string{"WaitingForPreDrainHook"}},
		"pre-drain hook, no Node":     {"MD-02: any annotation blocks", settled(deleted, annotated(preDrainHook), noNode), []string{"WaitingForPreDrainHook"}},
		"cordon":                      {"MD-04: first, so that nothing comes any more", settled(deleted, external), cordon},
		"pool Machine":                {"MP-08: drained as every other, by its Node", settled(deleted, external, ofPool), cordon},
		"pool Machine, Pods":          {"MP-08", settled(deleted, external, ofPool, holding(aPod("a"))), []string{"do: evict 1 Pods from Node n: its Machine is deleted", "DrainingNode"}},
		"pool Machine, drained":       {"MP-08: its InfraMachine is deleted, and no bootstrap config", settled(deleted, external, ofPool, drained), infraNext},
		"look":                        {"MD-04: what is on the Node is asked when no more can come", settled(deleted, external, drained, func(s *snapshot) { s.Drain = nil }), []string{"ask: the Pods of Node n"}},
		"evict":                       {"MD-04", settled(deleted, external, holding(aPod("a"), aPod("b"))), []string{"do: evict 2 Pods from Node n: its Machine is deleted", "DrainingNode"}},
		"wait for Pods":               {"MD-04: not asked twice", settled(deleted, external, holding(going("a"))), []string{"DrainingNode"}},
		"drained":                     {"MD-04", settled(deleted, external, drained), infraNext},
		"bad rule":                    {"MD-07: a person has to help", settled(deleted, external, drained, func(s *snapshot) { s.Drain, s.PodsProblem = nil, "fix rule x" }), []string{"DrainingNode"}},
		"down":                        {"MD-03: the Node may still run Pods", settled(deleted, external, down), []string{"DrainingNode"}},
		"excluded":                    {"MD-03", settled(deleted, external, annotated(clusterv1.ExcludeNodeDrainingAnnotation)), infraNext},
		"drain timeout":               {"MD-03: over", settled(deleted, external, timeouts(60, 0), drainingSince(time.Minute)), infraNext},
		"within drain timeout":        {"MD-03", settled(deleted, external, timeouts(60, 0), drainingSince(59*time.Second)), cordon},
		"no drain timeout":            {"MD-03: 0 is none", settled(deleted, external, timeouts(0, 0), drainingSince(99*time.Hour)), cordon},
		"pre-terminate began":         {"MD-03, MD-13: never drained again", settled(deleted, external, terminating, attached), infraNext},
		"infrastructure goes":         {"MD-03", settled(deleted, external, func(s *snapshot) { s.Infra.SetDeletionTimestamp(ptr.To(metav1.NewTime(now))) }), []string{"WaitingForInfrastructureDeletion"}},
		"infrastructure gone":         {"MD-03", settled(deleted, external, func(s *snapshot) { s.Infra = contract.InfraMachineView{} }), []string{"do: delete FooConfig b: the Machine is deleted", "WaitingForBootstrapDeletion"}},
		"machine removed":             {"MD-04: its Pods are evicted, so that others take their place", settled(deleted, external, machineRemoved, holding(aPod("a"))), []string{"do: evict 1 Pods from Node n: its Machine is deleted", "DrainingNode"}},
		"machine removed, Pods going": {"MD-04: no kubelet will confirm it", settled(deleted, external, machineRemoved, holding(going("a"))), infraNext},
		"machine removed, Pods held":  {"MD-03: a budget holds up nothing that has ended already", settled(deleted, external, machineRemoved, holding(aPod("a")), drainingSince(10*time.Second)), infraNext},
		"machine removed, volumes":    {"MD-12: what is attached to it is not used any more", settled(deleted, external, drained, attached, machineRemoved), infraNext},
		"machine removed, down":       {"MD-03", settled(deleted, external, down, machineRemoved), []string{"DrainingNode"}},
		"machine removed, long down":  {"MD-03", settled(deleted, external, down, machineRemoved, drainingSince(10*time.Second)), infraNext},
		"cluster goes":                {"MD-01", settled(deleted, external, attached, func(s *snapshot) { s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }), infraNext},
		"control plane goes":          {"MD-01", settled(deleted, external, attached, func(s *snapshot) { s.ControlPlane.Deleting = true }), infraNext},
		"no control plane left":       {"MD-01", settled(deleted, attached), infraNext},
		"another control plane":       {"MD-01", settled(deleted, func(s *snapshot) { s.ControlPlane.Others = 1 }), cordon},
		"never had a Node":            {"MD-01", settled(deleted, external, noNode, func(s *snapshot) { s.Machine.Status.NodeRef.Name = "" }), infraNext},
		"Node came late":              {"MD-15: the provider ID leads to it when the infrastructure is gone", settled(deleted, external, noNode, unnoted), []string{"do: record the provider ID x://1, with which its Node is found after the infrastructure is deleted"}},
		"Node came late, goes too":    {"MD-01: its cluster is deleted", settled(deleted, external, noNode, unnoted, func(s *snapshot) { s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }), infraNext},
		"Node may come":               {"MD-15: not finished, and going on", settled(deleted, external, noNode, unnoted, func(s *snapshot) { s.Infra.SetDeletionTimestamp(ptr.To(metav1.NewTime(now))) }), []string{"do: record the provider ID x://1, with which its Node is found after the infrastructure is deleted"}},
		"may have a Node, down":       {"MD-15: it is not known whether there is one", settled(deleted, external, down, unseen, removed), []string{"DeletingNode"}},
		"never got that far, down":    {"MD-01: without a provider ID there is none", settled(deleted, external, down, unseen, removed, func(s *snapshot) { s.Machine.Spec.ProviderID = "" }), nil},
		"Node gone":                   {"MD-01: nothing to drain", settled(deleted, external, noNode), infraNext},
		"ask for volumes":             {"MD-12: VolumeAttachments are read", settled(deleted, external, drained, func(s *snapshot) { s.Settings.VolumeAttachments = true }), []string{"ask: the volumes attached to Node n"}},
		"ask for reported volumes":    {"MD-12: the Node says so", settled(deleted, external, drained, attached, func(s *snapshot) { s.Volumes = nil }), []string{"ask: the volumes attached to Node n"}},
		"volumes":                     {"MD-12", settled(deleted, external, drained, attached), []string{"WaitingForVolumeDetach"}},
		"volumes, drain excluded":     {"MD-12: which of them may stay depends on the Pods", settled(deleted, external, attached, annotated(clusterv1.ExcludeNodeDrainingAnnotation)), []string{"ask: the Pods of Node n"}},
		"volumes detached":            {"MD-12", settled(deleted, external, drained, func(s *snapshot) { s.Volumes = &drain.Volumes{Node: s.Node.Item} }), infraNext},
		"volumes excluded":            {"MD-12", settled(deleted, external, drained, attached, annotated(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)), infraNext},
		"volume timeout":              {"MD-12", settled(deleted, external, drained, attached, timeouts(0, 30), detachingSince(30*time.Second)), infraNext},
		"within volume timeout":       {"MD-12", settled(deleted, external, drained, attached, timeouts(0, 30), detachingSince(29*time.Second)), []string{"WaitingForVolumeDetach"}},
		"volumes of a silent Node":    {"MD-12: nobody will detach them", settled(deleted, external, drained, attached, unreachable), infraNext},
		"volumes, down":               {"MD-12", settled(deleted, external, down, annotated(clusterv1.ExcludeNodeDrainingAnnotation)), []string{"WaitingForVolumeDetach"}},
		"pre-terminate hook":          {"MD-13: after the drain", settled(deleted, external, drained, annotated(preTerminateHook+"/x")), []string{"WaitingForPreTerminateHook"}},
		"pre-terminate hook, no Node": {"MD-13", settled(deleted, annotated(preTerminateHook+"/x"), noNode), []string{"WaitingForPreTerminateHook"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, asked(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func going(name string) corev1.Pod {
	p := aPod(name)
	p.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return p
}

func TestRecheck(t *testing.T) { // MD-03, MD-04, MD-12
	cases := map[string]struct {
		reason string
		s      snapshot
		want   time.Duration
	}{
		"begins":         {"most Pods leave soon", settled(deleted, external, holding(going("a"))), time.Second},
		"lasts":          {"an eighth of the time", settled(deletedSince(40*time.Second), external, holding(going("a")), drainingSince(40*time.Second)), 5 * time.Second},
		"lasts long":     {"at most 20 s", settled(deletedSince(time.Hour), external, holding(going("a")), drainingSince(time.Hour)), 20 * time.Second},
		"timeout near":   {"given up in time", settled(deletedSince(58*time.Second), external, timeouts(60, 0), holding(going("a")), drainingSince(58*time.Second)), 2 * time.Second},
		"volumes":        {"as drains", settled(deletedSince(80*time.Second), external, drained, attached, detachingSince(80*time.Second)), 10 * time.Second},
		"volume timeout": {"given up in time", settled(deletedSince(29*time.Second), external, timeouts(0, 30), drained, attached, detachingSince(29*time.Second)), time.Second},
		"busy": {"MD-15: no event tells that the workload cluster has time again", settled(deleted, external, func(s *snapshot) {
			s.Node, s.Infra, s.Bootstrap = observedNode{Unreachable: true}, contract.InfraMachineView{}, contract.BootstrapConfigView{}
			s.Machine.Spec.Deletion = clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](1), NodeVolumeDetachTimeoutSeconds: ptr.To[int32](1), NodeDeletionTimeoutSeconds: ptr.To[int32](0)}
			drainingSince(time.Minute)(s)
			detachingSince(time.Minute)(s)
		}), fillingRecheck},
	}
	for name, tc := range cases {
		if got := decide(tc.s).Recheck; got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// done is the outcome of a plan whose evictions had these results.
func done(p reconciler.Plan, r drain.Results) reconciler.Outcome {
	out := reconciler.Outcome{Done: p.Actions}
	for _, a := range p.Actions {
		if a, ok := a.(evict); ok {
			*a.results = r
		}
	}
	return out
}

// refusedEviction returns the results of the eviction of a Pod that the API server of the workload cluster refuses.
func refusedEviction(t *testing.T, pod types.NamespacedName, err error) drain.Results {
	t.Helper()
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			return err
		},
	}).Build()
	return drain.Evict(t.Context(), c, []drain.Target{{Pod: pod}})
}

// overBudget is the error of an eviction that a PodDisruptionBudget does not allow.
func overBudget(message string) error {
	err := apierrors.NewTooManyRequests("the disruption budget does not allow it", 0)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: message})
	return err
}

func TestDeletingMessages(t *testing.T) {
	refused := refusedEviction(t, types.NamespacedName{Namespace: "app", Name: "b"}, overBudget("a budget"))
	refused.Accepted = []types.NamespacedName{{Namespace: "app", Name: "a"}}
	cases := map[string]struct {
		reason  string
		s       snapshot
		results drain.Results
		want    condition.Result
	}{
		"hooks": {"MD-02: sorted", settled(deleted, annotated(preDrainHook+"/b", preDrainHook+"/a")), drain.Results{}, condition.TrueBecause("WaitingForPreDrainHook",
			"Waiting for the owners of the annotations "+preDrainHook+"/a, "+preDrainHook+"/b to remove them")},
		"terminate hooks": {"MD-13", settled(deleted, annotated(preTerminateHook+"/a")), drain.Results{}, condition.TrueBecause("WaitingForPreTerminateHook",
			"Waiting for the owners of the annotations "+preTerminateHook+"/a to remove them")},
		"provider ID": {"MD-14: what was never deleted is not completed", settled(deleted, external, drained, func(s *snapshot) { s.Machine.Spec.ProviderID = "" }), drain.Results{},
			condition.TrueBecause("WaitingForInfrastructureDeletion", "")},
		"cordoned": {"MD-11: since when", settled(deleted, external), drain.Results{}, condition.TrueBecause("DrainingNode", "Draining Node n since 2026-01-02T03:04:05Z")},
		"evictions": {"MD-10, MD-11: what became of them", settled(deleted, external, holding(aPod("a"), aPod("b")), drainingSince(time.Minute)), refused, condition.TrueBecause("DrainingNode",
			"Draining Node n since 2026-01-02T03:03:05Z\n* Terminating Pods: app/a\n* Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: a budget: app/b")},
		"volumes": {"MD-12", settled(deleted, external, drained, attached), drain.Results{}, condition.TrueBecause("WaitingForVolumeDetach",
			"Waiting for volumes to be detached from Node n since 2026-01-02T03:04:05Z: v; check their CSI driver, or limit the wait with spec.deletion.nodeVolumeDetachTimeoutSeconds of the Machine")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			got := condition.Set(report(tc.s, p, done(p, tc.results)).Status.(clusterv1.MachineStatus).Conditions).Get("Deleting")
			if diff := cmp.Diff(tc.want, condition.Result{Status: got.Status, Reason: got.Reason, Message: got.Message}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrainSummary(t *testing.T) { // MA-22
	s := settled(deletedSince(10*time.Minute), external, holding(going("a")), drainingSince(6*time.Minute))
	want := condition.False("NotReady", "* Deleting: Machine deletion in progress, stage: DrainingNode, delayed by Pods that do not terminate")
	if diff := cmp.Diff(want, verdictOf(t, s, reconciler.Outcome{}, "Ready")); diff != "" {
		t.Errorf("after 5 minutes (-want +got):\n%s", diff)
	}
	drainingSince(4 * time.Minute)(&s)
	want.Message = "* Deleting: Machine deletion in progress, stage: DrainingNode"
	if diff := cmp.Diff(want, verdictOf(t, s, reconciler.Outcome{}, "Ready")); diff != "" {
		t.Errorf("not before (-want +got):\n%s", diff)
	}
}

func TestDeletionStatus(t *testing.T) {
	at := metav1.NewTime(now)
	earlier := metav1.NewTime(ago(time.Minute))
	cases := map[string]struct {
		reason string
		s      snapshot
		want   *clusterv1.MachineDeletionStatus
	}{
		"not deleted":    {"nothing to say", settled(), nil},
		"cluster goes":   {"MD-01: nothing was begun", settled(deleted, func(s *snapshot) { s.Cluster.DeletionTimestamp = &at }), nil},
		"pre-drain hook": {"MD-02", settled(deleted, external, annotated(preDrainHook)), &clusterv1.MachineDeletionStatus{WaitForPreDrainHookStartTime: at}},
		"hook goes on": {"MD-02: set once", settled(deleted, external, annotated(preDrainHook), began(func(d *clusterv1.MachineDeletionStatus) { d.WaitForPreDrainHookStartTime = earlier })),
			&clusterv1.MachineDeletionStatus{WaitForPreDrainHookStartTime: earlier}},
		"drain":         {"MD-11", settled(deleted, external), &clusterv1.MachineDeletionStatus{NodeDrainStartTime: at}},
		"drain at once": {"MD-11: a Node without Pods was drained, too", settled(deleted, external, drained), &clusterv1.MachineDeletionStatus{NodeDrainStartTime: at}},
		"drain goes on": {"MD-11: set once", settled(deleted, external, drainingSince(time.Minute)), &clusterv1.MachineDeletionStatus{NodeDrainStartTime: earlier}},
		"volumes": {"MD-12", settled(deleted, external, drained, attached, drainingSince(time.Minute)),
			&clusterv1.MachineDeletionStatus{NodeDrainStartTime: earlier, WaitForNodeVolumeDetachStartTime: at}},
		"pre-terminate hook": {"MD-13", settled(deleted, annotated(preTerminateHook)), &clusterv1.MachineDeletionStatus{WaitForPreTerminateHookStartTime: at}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, status(tc.s, reconciler.Outcome{}).Deletion); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestDeprecatedStages(t *testing.T) { // CO-02, MD-02, MD-11, MD-12, MD-13
	type brief struct{ Type, Status, Severity, Reason string }
	failed := refusedEviction(t, types.NamespacedName{Namespace: "app", Name: "a"}, errors.New("x"))
	wasDrained := func(s *snapshot) {
		s.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{
			Conditions: clusterv1.Conditions{{Type: clusterv1.DrainingSucceededV1Beta1Condition, Status: "True"}}}}
	}
	cases := map[string]struct {
		reason  string
		s       snapshot
		results drain.Results
		want    []brief
	}{
		"pre-drain hook": {"MD-02", settled(deleted, external, annotated(preDrainHook)), drain.Results{}, []brief{{"PreDrainDeleteHookSucceeded", "False", "Info", "WaitingExternalHook"}}},
		"hook done": {"MD-02: over", settled(deleted, external, began(func(d *clusterv1.MachineDeletionStatus) { d.WaitForPreDrainHookStartTime = metav1.NewTime(now) })), drain.Results{},
			[]brief{{"PreDrainDeleteHookSucceeded", "True", "", ""}, {"DrainingSucceeded", "False", "Info", "Draining"}}},
		"draining":        {"MD-11", settled(deleted, external, holding(aPod("a"))), drain.Results{}, []brief{{"DrainingSucceeded", "False", "Info", "Draining"}}},
		"drain fails":     {"MD-11", settled(deleted, external, holding(aPod("a"))), failed, []brief{{"DrainingSucceeded", "False", "Warning", "DrainingFailed"}}},
		"drained":         {"MD-11", settled(deleted, external, drained), drain.Results{}, []brief{{"DrainingSucceeded", "True", "", ""}}},
		"given up":        {"MD-03, MD-11", settled(deleted, external, timeouts(60, 0), drainingSince(time.Minute)), drain.Results{}, []brief{{"DrainingSucceeded", "False", "Warning", "DrainingFailed"}}},
		"machine removed": {"MD-11: its Pods were held", settled(deleted, external, machineRemoved, holding(aPod("a")), drainingSince(time.Minute)), drain.Results{}, []brief{{"DrainingSucceeded", "False", "Warning", "DrainingFailed"}}},
		"given up before": {"MD-11: what came of the drain stays, also when the infrastructure machine is gone that says why", settled(deleted, external, drainingSince(time.Minute), noProviders, func(s *snapshot) {
			wasDrained(s)
			s.Machine.Status.Deprecated.V1Beta1.Conditions[0].Status, s.Machine.Status.Deprecated.V1Beta1.Conditions[0].Reason = "False", "DrainingFailed"
		}, was(is("Deleting", "True", "WaitingForInfrastructureDeletion", ""))), drain.Results{}, []brief{{"DrainingSucceeded", "False", "Warning", "DrainingFailed"}}},
		"drained at last": {"MD-11: an eviction that failed for a while", settled(deleted, external, drained, func(s *snapshot) {
			wasDrained(s)
			s.Machine.Status.Deprecated.V1Beta1.Conditions[0].Status, s.Machine.Status.Deprecated.V1Beta1.Conditions[0].Reason = "False", "DrainingFailed"
		}, was(is("Deleting", "True", "DrainingNode", ""))), drain.Results{}, []brief{{"DrainingSucceeded", "True", "", ""}}},
		"done before": {"MD-11: a timeout that ends later is no news", settled(deleted, external, timeouts(60, 0), drainingSince(time.Minute), wasDrained), drain.Results{}, []brief{{"DrainingSucceeded", "True", "", ""}}},
		"volumes": {"MD-12", settled(deleted, external, drained, attached), drain.Results{},
			[]brief{{"DrainingSucceeded", "True", "", ""}, {"VolumeDetachSucceeded", "False", "Info", "WaitingForVolumeDetach"}}},
		"volumes done": {"MD-12", settled(deleted, external, drained, detachingSince(0)), drain.Results{},
			[]brief{{"DrainingSucceeded", "True", "", ""}, {"VolumeDetachSucceeded", "True", "", ""}}},
		"pre-terminate hook": {"MD-13", settled(deleted, annotated(preTerminateHook)), drain.Results{}, []brief{{"PreTerminateDeleteHookSucceeded", "False", "Info", "WaitingExternalHook"}}},
		"terminating":        {"MD-13: over", settled(deleted, terminating), drain.Results{}, []brief{{"PreTerminateDeleteHookSucceeded", "True", "", ""}}},
		"health check": {"CO-02: of others, projected by the one writer", settled(was(is("HealthCheckSucceeded", "False", "UnhealthyNode", "x"), is("OwnerRemediated", "False", "WaitingForRemediation", "y"))), drain.Results{},
			[]brief{{"HealthCheckSucceeded", "False", "Warning", "UnhealthyNode"}, {"OwnerRemediated", "False", "Warning", "WaitingForRemediation"}}},
		"marked": {"CO-02: reasons have other names there", settled(was(is("HealthCheckSucceeded", "False", "HasRemediateAnnotation", "x"))), drain.Results{}, []brief{{"HealthCheckSucceeded", "False", "Warning", "HasRemediateMachineAnnotation"}}},
		"fine":   {"CO-02", settled(was(is("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ""))), drain.Results{}, []brief{{"HealthCheckSucceeded", "True", "", ""}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			var got []brief
			for _, c := range report(tc.s, p, done(p, tc.results)).Status.(clusterv1.MachineStatus).Deprecated.V1Beta1.Conditions[4:] {
				got = append(got, brief{string(c.Type), string(c.Status), string(c.Severity), c.Reason})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDrainEvents(t *testing.T) { // MD-11
	before := func(status, reason, message string) func(*snapshot) {
		return func(s *snapshot) {
			s.Machine.Status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &clusterv1.MachineV1Beta1DeprecatedStatus{
				Conditions: clusterv1.Conditions{{Type: clusterv1.DrainingSucceededV1Beta1Condition, Status: corev1.ConditionStatus(status), Reason: reason, Message: message}}}}
		}
	}
	held := refusedEviction(t, types.NamespacedName{Namespace: "default", Name: "a"}, overBudget("b"))
	heldBefore := func(s *snapshot) {
		s.Machine.Status.Conditions = append(s.Machine.Status.Conditions, metav1.Condition{Type: "Deleting", Status: "True", Message: "x\n* Pods that cannot be evicted, " + drain.HeldByBudget + ": b: default/a"})
	}
	failed := refusedEviction(t, types.NamespacedName{Namespace: "app", Name: "a"}, errors.New("x"))
	cases := map[string]struct {
		reason  string
		s       snapshot
		results drain.Results
		want    string
	}{
		"drained":        {"said once", settled(deleted, external, drained), drain.Results{}, "SuccessfulDrainNode: Node n is drained"},
		"drained before": {"said once", settled(deleted, external, drained, before("True", "", "")), drain.Results{}, ""},
		"draining":       {"no news", settled(deleted, external, holding(aPod("a"))), drain.Results{}, ""},
		"fails":          {"said once", settled(deleted, external, holding(aPod("a"))), failed, "FailedDrainNode: Node n cannot be drained now; retrying"},
		"failed before":  {"said once", settled(deleted, external, holding(aPod("a")), before("False", "DrainingFailed", "Node n cannot be drained now; retrying")), failed, ""},
		"given up": {"that is another failure", settled(deleted, external, timeouts(60, 0), drainingSince(time.Minute), before("False", "DrainingFailed", "Node n cannot be drained now; retrying")), drain.Results{},
			"FailedDrainNode: Node n was not drained within spec.deletion.nodeDrainTimeoutSeconds"},
		"held":        {"only the owners of Pods can end it", settled(deleted, external, holding(aPod("a"))), held, "DrainHeld: The drain of Node n waits: Pods that cannot be evicted, a PodDisruptionBudget does not allow it now: b: default/a"},
		"held before": {"said once", settled(deleted, external, holding(aPod("a")), heldBefore), held, ""},
		"not deleted": {"no drain", settled(), drain.Results{}, ""},
	}
	for name, tc := range cases {
		p := decide(tc.s)
		got := ""
		for _, e := range report(tc.s, p, done(p, tc.results)).Events {
			got += e.Reason + ": " + e.Message
		}
		if got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
	s := settled(deleted, external)
	p := decide(s)
	if e := report(s, p, reconciler.Outcome{Failed: p.Actions[0], Err: errors.New("x")}).Events; len(e) == 0 || e[0].Reason != "FailedDrainNode" {
		t.Errorf("a Node that cannot be cordoned: %v", e)
	}
}
