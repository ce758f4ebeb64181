package machinedeployment

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// reported is the status of a pass in which everything went well.
func reported(s snapshot) clusterv1.MachineDeploymentStatus {
	p := decide(s)
	return report(s, p, reconciler.Outcome{Done: p.Actions}).Status.(clusterv1.MachineDeploymentStatus)
}

func TestConditions(t *testing.T) { // DP-12
	unready := func(s *snapshot) {
		turn(s, "md-1", 0, is(clusterv1.MachineReadyCondition, "False", "no disk"), is(clusterv1.MachineAvailableCondition, "False", ""))
	}
	outdated := func(s *snapshot) {
		upgrade(s)
		for n := range 2 {
			turn(s, "md-1", n, is(clusterv1.MachineUpToDateCondition, "False", "* Version v1.36.3, v1.36.4 required\n* HostTemplate i, j required"))
		}
	}
	stuck := func(s *snapshot) {
		m, since := &s.Machines["md-1"][0], metav1.NewTime(at(10))
		m.DeletionTimestamp = &since
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: "True", Reason: clusterv1.MachineDeletingDrainingNodeReason,
		})
	}
	const unset = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   map[string]string
	}{
		"settled": {
			reason: "all is well", s: settled(),
			want: map[string]string{
				"Available": "True Available", "MachinesReady": "True Ready", "MachinesUpToDate": "True UpToDate", "RollingOut": "False NotRollingOut",
				"ScalingUp": "False NotScalingUp", "ScalingDown": "False NotScalingDown", "Remediating": "False NotRemediating", "Deleting": "False NotDeleting",
			},
		},
		"no Machines": {
			reason: "there is nothing to judge yet", s: fresh(),
			want: map[string]string{
				"Available":     "False NotAvailable 0 available replicas, at least 3 required (spec.replicas is 3)",
				"MachinesReady": "True NoReplicas", "MachinesUpToDate": "True NoReplicas", "ScalingUp": "True ScalingUp Scaling up from 0 to 3 replicas",
			},
		},
		"replicas not set": {
			reason: "nobody said how many", s: fresh(func(s *snapshot) { s.Deployment.Spec.Replicas = nil }),
			want: map[string]string{
				"Available": "Unknown WaitingForReplicasSet " + unset, "ScalingUp": "Unknown WaitingForReplicasSet " + unset,
				"ScalingDown": "Unknown WaitingForReplicasSet " + unset,
			},
		},
		"one not ready": {
			reason: "one less than there has to be", s: settled(unready),
			want: map[string]string{
				"Available":     "False NotAvailable 2 available replicas, at least 3 required (spec.replicas is 3)",
				"MachinesReady": "False NotReady * Machine md-1-0: no disk",
			},
		},
		"one may be missing": {
			reason: "maxUnavailable allows it", s: settled(unready, func(s *snapshot) {
				s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
			}),
			want: map[string]string{"Available": "True Available"},
		},
		"rolling out": {
			reason: "how many, and why", s: settled(outdated),
			want: map[string]string{
				"RollingOut": "True RollingOut Rolling out 3 not up-to-date replicas\n* HostTemplate i, j required\n* Version v1.36.3, v1.36.4 required",
				"MachinesUpToDate": "False NotUpToDate * Machines md-1-0, md-1-1:\n  * Version v1.36.3, v1.36.4 required\n  * HostTemplate i, j required\n" +
					"* Machine md-1-2:\n  * Version v1.36.3, v1.36.4 required",
			},
		},
		"rollout paused": {
			reason: "and who stopped it", s: settled(outdated, func(s *snapshot) { s.Deployment.Spec.Paused = new(true) }),
			want: map[string]string{
				"RollingOut": "True RollingOut Rolling out 3 not up-to-date replicas\n* HostTemplate i, j required\n* Version v1.36.3, v1.36.4 required\n* The rollout is paused by spec.paused",
			},
		},
		"strategy": {
			reason: "a strategy that cannot be followed", s: settled(func(s *snapshot) {
				s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(-1))
			}),
			want: map[string]string{"RollingOut": `Unknown InvalidStrategy The rollout strategy cannot be followed: maxSurge "-1" is negative`},
		},
		"restored": {
			reason: "what is missing of a restored deployment", s: settled(restored, func(s *snapshot) { s.Sets, s.Machines = nil, nil }),
			want: map[string]string{
				"RollingOut": "Unknown WaitingForOwnership The MachineSet of revision 1 does not exist: restore it, or remove the annotation " +
					clusterv1.RevisionAnnotation + " from the MachineDeployment to start over",
			},
		},
		"template missing": { // DP-19
			reason: "why it does not grow", s: settled(func(s *snapshot) {
				s.Deployment.Spec.Replicas, s.Templates[0].Object.Unstructured = new(int32(5)), nil
			}),
			want: map[string]string{"ScalingUp": "True ScalingUp Scaling up from 3 to 5 replicas is blocked because HostTemplate i does not exist"},
		},
		"Cluster to come": {
			reason: "a manifest may have it behind the deployment", s: fresh(func(s *snapshot) {
				s.Cluster, s.Deployment.CreationTimestamp = nil, metav1.NewTime(s.Now.Add(-time.Second))
			}),
			want: map[string]string{"ScalingUp": "True ScalingUp Scaling up from 0 to 3 replicas is blocked because Cluster c has yet to be created"},
		},
		"Cluster missing": {
			reason: "the name may be wrong", s: fresh(func(s *snapshot) {
				s.Cluster, s.Deployment.CreationTimestamp = nil, metav1.NewTime(s.Now.Add(-time.Minute))
			}),
			want: map[string]string{
				"ScalingUp": "True ScalingUp Scaling up from 0 to 3 replicas is blocked because Cluster c does not exist: create it, or delete MachineDeployment md",
				"Available": "False NotAvailable 0 available replicas, at least 3 required (spec.replicas is 3)\n* Cluster c does not exist: create it, or delete MachineDeployment md",
			},
		},
		"policy": {
			reason: "why it does not grow", s: settled(func(s *snapshot) { s.Deployment.Spec.Replicas, s.Policy.Maxima.Replicas = new(int32(5)), 4 }),
			want: map[string]string{"ScalingUp": "True ScalingUp Scaling up from 3 to 5 replicas is blocked because 5 replicas exceed the limit of 4 for " +
				"one object: set fewer, or ask the operator to raise maxima.replicas in the configuration file (--config of slipway up or slipway manager)"},
		},
		"template would be missing": { // DP-19
			reason: "why it would not grow", s: settled(func(s *snapshot) { s.Templates[1].Object.Problem = "kind ConfigTemplate is not installed" }),
			want: map[string]string{"ScalingUp": "False NotScalingUp Scaling up would be blocked because kind ConfigTemplate is not installed"},
		},
		"scaling down": {
			reason: "one too many", s: settled(func(s *snapshot) { s.Deployment.Spec.Replicas = new(int32(2)) }),
			want: map[string]string{"ScalingDown": "True ScalingDown Scaling down from 3 to 2 replicas"},
		},
		"remediating": {
			reason: "a Machine that is replaced since it is not healthy", s: settled(func(s *snapshot) {
				m := &s.Machines["md-1"][1]
				m.Status.Conditions = append(m.Status.Conditions, is(clusterv1.MachineHealthCheckSucceededCondition, "False", "gone"),
					is(clusterv1.MachineOwnerRemediatedCondition, "False", "it is next"))
			}),
			want: map[string]string{"Remediating": "True Remediating * Machine md-1-1: it is next"},
		},
		"deleting": {
			reason: "what is left", s: settled(func(s *snapshot) { deleted(s.Deployment) }),
			want: map[string]string{
				"Deleting":  "True Deleting * MachineSets md-1 still exist\n* Machines md-1-0, md-1-1, md-1-2 still exist",
				"Available": "False NotAvailable Deletion in progress", "ScalingDown": "True ScalingDown Scaling down from 3 to 0 replicas",
			},
		},
		"scaling down slowly": {
			reason: "who takes long, and where it stands", s: settled(stuck, func(s *snapshot) { s.Deployment.Spec.Replicas = new(int32(2)) }),
			want: map[string]string{
				"ScalingDown": "True ScalingDown Scaling down from 3 to 2 replicas\n* Machine md-1-0 in deletion since more than 15m, stage: DrainingNode",
			},
		},
		"deleting slowly": {
			reason: "who takes long, and where it stands", s: settled(stuck, func(s *snapshot) { deleted(s.Deployment) }),
			want: map[string]string{
				"Deleting": "True Deleting * MachineSets md-1 still exist\n* Machines md-1-0, md-1-1, md-1-2 still exist\n" +
					"* Machine md-1-0 in deletion since more than 15m, stage: DrainingNode",
				"ScalingDown": "True ScalingDown Scaling down from 3 to 0 replicas\n* Machine md-1-0 in deletion since more than 15m, stage: DrainingNode",
			},
		},
		"deleted": {
			reason: "nothing is left", s: fresh(func(s *snapshot) { deleted(s.Deployment) }),
			want: map[string]string{"Deleting": "True DeletionCompleted"},
		},
		"another template": {
			reason: "Machines that were up to date by the one before are not by this one, before their own conditions say so",
			s:      settled(func(s *snapshot) { s.Deployment.Spec.Template.Spec.Version = "v1.36.9" }),
			want: map[string]string{
				"RollingOut":       "True RollingOut Rolling out 3 not up-to-date replicas\n* Version v1.36.3, v1.36.9 required",
				"MachinesUpToDate": "False NotUpToDate * Machines md-1-0, md-1-1, md-1-2:\n  * Version v1.36.3, v1.36.9 required",
			},
		},
		"new Machine": {
			reason: "a Machine that nobody has judged yet is no issue", s: settled(func(s *snapshot) {
				m := &s.Machines["md-1"][0]
				m.CreationTimestamp, m.Status.Conditions = metav1.NewTime(now()), m.Status.Conditions[:2]
			}),
			want: map[string]string{"MachinesUpToDate": "True UpToDate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := reported(tc.s)
			got := map[string]string{}
			for conditionType := range tc.want {
				if c := condition.Set(status.Conditions).Get(conditionType); c != nil {
					got[conditionType] = fmt.Sprintf("%s %s", c.Status, c.Reason)
					if c.Message != "" {
						got[conditionType] += " " + c.Message
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatus(t *testing.T) { // DP-13, DP-14, CO-02
	s := settled(func(s *snapshot) {
		withOld(s, 1)
		turn(s, "md-1", 0, is(clusterv1.MachineReadyCondition, "False", ""), is(clusterv1.MachineAvailableCondition, "False", ""))
		turn(s, "md-0", 0, is(clusterv1.MachineUpToDateCondition, "False", ""))
		s.Machines["md-1"][0].Spec.Version = "v1.36.10"
		s.Machines["md-1"][1].Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.36.2"} // does not count
	})
	got := reported(s)
	legacy := got.Deprecated.V1Beta1
	kinds := map[clusterv1.ConditionType]string{}
	for _, c := range legacy.Conditions {
		kinds[c.Type] = fmt.Sprint(c.Status, " ", c.Severity, " ", c.Reason)
	}
	got.Conditions, got.Deprecated, legacy.Conditions = nil, nil, nil
	want := clusterv1.MachineDeploymentStatus{
		Replicas: new(int32(4)), ReadyReplicas: new(int32(3)), AvailableReplicas: new(int32(3)), UpToDateReplicas: new(int32(3)),
		Versions: []clusterv1.StatusVersion{{Version: "v1.36.0", Replicas: 1}, {Version: "v1.36.3", Replicas: 2}, {Version: "v1.36.10", Replicas: 1}},
		Selector: "cluster.x-k8s.io/cluster-name=c,cluster.x-k8s.io/deployment-name=md", ObservedGeneration: 7, Phase: "ScalingDown",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	wantLegacy := &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UnavailableReplicas: 1}
	if diff := cmp.Diff(wantLegacy, legacy); diff != "" {
		t.Errorf("deprecated status (-want +got):\n%s", diff)
	}
	wantKinds := map[clusterv1.ConditionType]string{"Ready": "True  ", "Available": "True  ", "MachineSetReady": "False Info NotReady"}
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("deprecated conditions (-want +got):\n%s", diff)
	}
}

func TestPhase(t *testing.T) { // DP-13
	for name, tc := range map[string]struct {
		s    snapshot
		want clusterv1.MachineDeploymentPhase
	}{
		"running":      {settled(), clusterv1.MachineDeploymentPhaseRunning},
		"new":          {fresh(), clusterv1.MachineDeploymentPhaseScalingUp},
		"too many":     {settled(func(s *snapshot) { s.Deployment.Spec.Replicas = new(int32(1)) }), clusterv1.MachineDeploymentPhaseScalingDown},
		"not set":      {fresh(func(s *snapshot) { s.Deployment.Spec.Replicas = nil }), clusterv1.MachineDeploymentPhaseUnknown},
		"deleted":      {settled(func(s *snapshot) { deleted(s.Deployment) }), clusterv1.MachineDeploymentPhaseScalingDown},
		"one is broke": {settled(func(s *snapshot) { turn(s, "md-1", 0, is(clusterv1.MachineReadyCondition, "False", "")) }), clusterv1.MachineDeploymentPhaseRunning},
		"one to come":  {settled(func(s *snapshot) { s.Deployment.Spec.Replicas = new(int32(4)) }), clusterv1.MachineDeploymentPhaseScalingUp},
	} {
		if got := phase(tc.s, machinesOf(tc.s).Count().Replicas); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestGenerationIsObservedWhenActedUpon(t *testing.T) { // OR-01, DP-14
	changed := func(s *snapshot) { s.Deployment.Generation = 8 }
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   int64
	}{
		"settled":  {"a pass over it", settled(changed), 8},
		"adopting": {"what is being adopted is not whole yet", settled(restored), 0},
		"missing":  {"what is missing is not whole yet", settled(restored, func(s *snapshot) { s.Sets, s.Machines = nil, nil }), 0},
		"alone":    {"without its Cluster it is not whole", fresh(restored, func(s *snapshot) { s.Cluster = nil }), 0},
	} {
		if got := reported(tc.s).ObservedGeneration; got != tc.want {
			t.Errorf("%s: %s: %d, want %d", name, tc.reason, got, tc.want)
		}
	}
	s := fresh(changed)
	failed := report(s, decide(s), reconciler.Outcome{Err: errors.New("no")}).Status.(clusterv1.MachineDeploymentStatus)
	if failed.ObservedGeneration != 7 {
		t.Errorf("a pass that failed has observed generation %d", failed.ObservedGeneration)
	}
}

func TestEvents(t *testing.T) {
	out := reconciler.Outcome{
		Done: []reconciler.Action{
			createSet{Name: "a", Replicas: 3, Revision: 1}, syncSet{Name: "b", From: 2, Replicas: 1, Why: "because"},
			syncSet{Name: "c", From: 2, Replicas: 2}, adoptSet{Set: "d"}, deleteSet{Name: "e", Why: "it is empty"}, recordRevision{Revision: 1},
		},
		Failed: syncSet{Name: "f"}, Err: errors.New("no space"),
	}
	want := []reconciler.Event{
		reconciler.Normal("SuccessfulCreate", "Created MachineSet a with 3 replicas"), reconciler.Normal("SuccessfulScale", "Scaled MachineSet b from 2 to 1 replicas: because"),
		reconciler.Normal("SuccessfulAdopt", "Adopted MachineSet d"), reconciler.Normal("SuccessfulDelete", "Deleted MachineSet e: it is empty"),
		reconciler.Warning("FailedScale", "MachineSet f could not be changed: no space"),
	}
	if diff := cmp.Diff(want, events(out)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Every reason of an ownership that is not complete is reported, and keeps the counters of the last complete state.
func TestOwnershipWait(t *testing.T) { // PA-02
	for _, reason := range []string{ownership.ReasonClusterMissing, ownership.ReasonAdopting, ownership.ReasonHidden,
		ownership.ReasonConflictingChild, ownership.ReasonChildMissing} {
		var p reconciler.Plan
		p.WaitFor("Other", "another wait").For("MachineDeployment", "d").ForTime()
		p.WaitFor(reason, "a wait for the ownership").For("MachineDeployment", "d").ForTime()
		if got := ownershipWait(p); got != "a wait for the ownership" {
			t.Errorf("%s: got %q", reason, got)
		}
	}
}
