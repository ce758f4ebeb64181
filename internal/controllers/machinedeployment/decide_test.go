package machinedeployment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// names of MachineSets that follow from the fixture; TestNamesFollowFromWhatMakesThem says why they stay the same.
var (
	first  = nameOf(fresh(), 1)
	second = nameOf(fresh(upgrade), 2)
)

type decision struct {
	reason  string
	s       snapshot
	do      []string
	wait    []string
	recheck time.Duration
}

func (d decision) check(t *testing.T) {
	t.Helper()
	p := decide(d.s)
	if diff := cmp.Diff(d.do, sentences(p)); diff != "" {
		t.Errorf("%s: actions (-want +got):\n%s", d.reason, diff)
	}
	if diff := cmp.Diff(d.wait, reasons(p)); diff != "" {
		t.Errorf("%s: waits (-want +got):\n%s", d.reason, diff)
	}
	if p.Recheck != d.recheck {
		t.Errorf("%s: recheck in %s, want %s", d.reason, p.Recheck, d.recheck)
	}
}

func TestDecide(t *testing.T) {
	for name, d := range map[string]decision{
		"settled": {reason: "nothing to do", s: settled()},
		"join": { // DP-01
			reason: "the deployment belongs to its Cluster", s: fresh(func(s *snapshot) { s.Deployment.OwnerReferences = nil }),
			do: []string{"join Cluster c"},
		},
		"no cluster": { // DP-01
			reason: "without a Cluster there is nothing to belong to", s: fresh(func(s *snapshot) { s.Cluster = nil }),
			wait: []string{"ClusterNotFound"},
		},
		"first": { // DP-02
			reason: "all replicas at once", s: fresh(),
			do: []string{"create MachineSet " + first + " with 3 replicas: none has the template of revision 1"},
		},
		"zero": { // DP-02
			reason: "a MachineSet for none, too", s: fresh(func(s *snapshot) { s.Deployment.Spec.Replicas = new(int32(0)) }),
			do: []string{"create MachineSet " + first + " with 0 replicas: none has the template of revision 1"},
		},
		"replicas not set": { // DP-12
			reason: "it is not known how many there shall be", s: settled(upgrade, func(s *snapshot) { s.Deployment.Spec.Replicas = nil }),
			wait: []string{"WaitingForReplicasSet"},
		},
		"replicas not set, paused": { // DP-12
			reason: "that is no reason to scale either", s: settled(func(s *snapshot) { s.Deployment.Spec.Replicas, s.Deployment.Spec.Paused = nil, new(true) }),
			wait: []string{"WaitingForReplicasSet"},
		},
		"of the reference implementation": { // DP-01, MS-09
			reason: "what another field manager says would stay forever", s: settled(func(s *snapshot) {
				set := &s.Sets[0]
				set.ManagedFields = append(set.ManagedFields, metav1.ManagedFieldsEntry{Manager: "capi-machinedeployment", Operation: "Apply",
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"x\"":{}},"f:labels":{"f:old":{}}}}`)})
			}),
			do: []string{"transfer the fields of MachineSet md-1 from capi-machinedeployment: fields that the deployment does not set would never be removed"},
		},
		"taken over": { // DP-01, MS-09
			reason: "finalizers may be of others", s: settled(func(s *snapshot) {
				set := &s.Sets[0]
				set.ManagedFields = append(set.ManagedFields, metav1.ManagedFieldsEntry{Manager: "capi-machinedeployment", Operation: "Apply",
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"x\"":{}}}}`)})
			}),
		},
		"behind": {
			reason: "what was written last comes first", s: fresh(func(s *snapshot) { s.Stale = true }),
			wait: []string{"StaleCache"}, recheck: time.Minute,
		},
		"record": { // DP-04
			reason: "the deployment says which revision is current",
			s:      settled(func(s *snapshot) { delete(s.Deployment.Annotations, clusterv1.RevisionAnnotation) }),
			do:     []string{"record revision 1: its MachineSet is the current one"},
		},
		"upgrade": { // DP-02, DP-06
			reason: "a template that differs gets a MachineSet, with what maxSurge leaves", s: settled(upgrade),
			do: []string{"create MachineSet " + second + " with 1 replicas: none has the template of revision 2"},
		},
		"upgrade without surge": { // DP-06
			reason: "where no Machine may be more, one goes first", s: settled(upgrade, func(s *snapshot) {
				s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
			}),
			do: []string{
				"create MachineSet " + second + " with 0 replicas: none has the template of revision 2",
				"scale MachineSet md-1 from 3 to 2: enough Machines are available without",
			},
		},
		"in place": { // DP-02, DP-05, DP-16
			reason: "what Machines take over is handed down, without a rollout", s: settled(func(s *snapshot) {
				s.Deployment.Annotations["team"] = "b"
				s.Deployment.Spec.Template.Labels = merged(s.Deployment.Spec.Template.Labels, map[string]string{"a": "1"})
				s.Deployment.Spec.Template.Spec.MinReadySeconds = new(int32(5))
				s.Deployment.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
			}),
			do: []string{"sync MachineSet md-1: it differs from the deployment"},
		},
		"back": { // DP-02, DP-04
			reason: "an old MachineSet that matches again is current again, with a revision of its own",
			s: settled(func(s *snapshot) {
				upgrade(s)
				withSet(s, setPlan{name: "md-2", replicas: 1, revision: 2, current: true}, 0)
				s.Deployment.Annotations[clusterv1.RevisionAnnotation] = "2"
				s.Deployment.Spec.Template.Spec.Version = "v1.36.3"
			}),
			do: []string{
				"sync MachineSet md-1: it differs from the deployment",
				"scale MachineSet md-2 from 1 to 0: replicas that are not available go first",
				"record revision 3: its MachineSet is the current one",
			},
		},
		"after": { // DP-10
			reason: "the time has passed since the MachineSet was made", s: settled(func(s *snapshot) { s.Deployment.Spec.Rollout.After = metav1.NewTime(at(29)) }),
			do: []string{"create MachineSet " + nameOf(fresh(), 2) + " with 1 replicas: none has the template of revision 2"},
		},
		"after to come": { // DP-10
			reason: "the time has not come", s: settled(func(s *snapshot) { s.Deployment.Spec.Rollout.After = metav1.NewTime(at(32)) }),
			recheck: 2 * time.Minute,
		},
		"after once": { // DP-10
			reason: "it was rolled out after that time", s: settled(func(s *snapshot) { s.Deployment.Spec.Rollout.After = metav1.NewTime(at(1)) }),
		},
		"on delete": { // DP-09
			reason: "old Machines stay, and are not made again", s: settled(upgrade, onDelete),
			do: []string{
				"create MachineSet " + second + " with 0 replicas: none has the template of revision 2",
				"sync MachineSet md-1: it differs from the deployment",
			},
		},
		"paused": { // DP-11
			reason: "a pause stops the rollout", s: settled(upgrade, func(s *snapshot) { s.Deployment.Spec.Paused = new(true) }),
		},
		"policy": { // what admission refuses the controller does not do either
			reason: "nothing is scaled, created or rolled out", s: settled(upgrade, func(s *snapshot) {
				s.Deployment.Spec.Replicas, s.Policy.Maxima.Replicas = new(int32(5)), 4
			}),
			do: []string{"sync MachineSet md-1: it differs from the deployment"}, wait: []string{"RolloutHeld"},
		},
		"paused and scaled": { // DP-11
			reason: "but not scaling", s: settled(upgrade, func(s *snapshot) {
				s.Deployment.Spec.Paused, s.Deployment.Spec.Replicas = new(true), new(int32(5))
			}),
			do: []string{"scale MachineSet md-1 from 3 to 5: its share of spec.replicas while nothing is rolled out"},
		},
		"no template": { // DP-19
			reason: "nothing is rolled out to what cannot be made", s: settled(upgrade, func(s *snapshot) { s.Templates[1].Object.Unstructured = nil }),
			wait: []string{"TemplateNotFound", "RolloutHeld"},
		},
		"unreadable template": { // DP-19
			reason: "the same where a provider is not installed",
			s:      fresh(func(s *snapshot) { s.Templates[0].Object.Problem = "kind ConfigTemplate is not installed" }),
			wait:   []string{"TemplateNotFound", "RolloutHeld"},
		},
		"own templates": { // DP-19
			reason: "templates belong to the Cluster", s: settled(func(s *snapshot) {
				for _, t := range s.Templates {
					t.Object.SetOwnerReferences(nil)
				}
			}),
			do: []string{"make the Cluster an owner of HostTemplate i: Machines are created from it", "make the Cluster an owner of ConfigTemplate b: Machines are created from it"},
		},
		"complete": { // DP-20
			reason: "an empty old MachineSet goes when the rollout is complete", s: settled(func(s *snapshot) { withOld(s, 0) }),
			do: []string{"delete MachineSet md-0: it is empty and the rollout is complete"},
		},
		"not seen yet": { // DP-20
			reason: "its controller has not said that it is empty", s: settled(func(s *snapshot) {
				withOld(s, 0)
				s.Sets[1].Generation = 2
			}),
		},
		"not complete": { // DP-20
			reason: "while the rollout goes on, an empty one may be needed again", s: settled(func(s *snapshot) {
				withOld(s, 0)
				turn(s, "md-1", 0, is(clusterv1.MachineAvailableCondition, "False", ""))
			}),
		},
		"bad strategy": {
			reason: "a strategy that nobody checked does nothing", s: settled(upgrade, func(s *snapshot) {
				s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromString("many"))
			}),
			wait: []string{"InvalidStrategy"},
		},
		"not judged": { // DP-12
			reason: "a Machine that nobody has judged is new for a while", s: settled(func(s *snapshot) {
				m := &s.Machines["md-1"][0]
				m.CreationTimestamp, m.Status.Conditions = metav1.NewTime(now().Add(-4*time.Second)), m.Status.Conditions[:2]
			}),
			recheck: 6 * time.Second,
		},
	} {
		t.Run(name, d.check)
	}
}

func onDelete(s *snapshot) {
	s.Deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
}

// withOld adds an old MachineSet that was made from another version.
func withOld(s *snapshot, machines int) {
	version := s.Deployment.Spec.Template.Spec.Version
	s.Deployment.Spec.Template.Spec.Version = "v1.36.0"
	withSet(s, setPlan{name: "md-0", replicas: int32(machines), revision: 0}, machines)
	s.Deployment.Spec.Template.Spec.Version = version
}

func TestDeletion(t *testing.T) { // DP-01, DP-19
	for name, d := range map[string]decision{
		"begins": {
			reason: "MachineSets go first; templates are not asked for",
			s:      settled(func(s *snapshot) { deleted(s.Deployment); s.Templates = nil }),
			do:     []string{"delete MachineSet md-1: the deployment is deleted"}, wait: []string{waitingForDeletion},
		},
		"goes on": {
			reason: "they are waited for", s: settled(func(s *snapshot) { deleted(s.Deployment); deleted(&s.Sets[0]) }),
			wait: []string{waitingForDeletion},
		},
		"not adopted": {
			reason: "what was never adopted would stay for ever", s: settled(restored, func(s *snapshot) { deleted(s.Deployment) }),
			do: []string{"adopt MachineSet md-1: its labels match the selector"}, wait: []string{waitingForDeletion},
		},
		"ends": {reason: "nothing is left", s: fresh(func(s *snapshot) { deleted(s.Deployment) })},
	} {
		t.Run(name, d.check)
	}
}

func TestRestore(t *testing.T) { // OR-01
	adopted := func(s *snapshot) {
		for i := range s.Sets {
			adopt(&s.Sets[i], s.Deployment)
		}
	}
	for name, d := range map[string]decision{
		"orphan": {
			reason: "adopt, and nothing else in that pass", s: settled(upgrade, restored),
			do: []string{"adopt MachineSet md-1: its labels match the selector"}, wait: []string{"AdoptingChildren"},
		},
		"nothing but the deployment": {
			reason: "it had a MachineSet, which is not there yet", s: settled(restored, func(s *snapshot) { s.Sets, s.Machines = nil, nil }),
			wait: []string{"WaitingForChildren"},
		},
		"only Machines": {
			reason: "Machines name their MachineSet", s: settled(restored, func(s *snapshot) { s.OrphanedMachines, s.Sets = s.Machines["md-1"], nil }),
			wait: []string{"WaitingForChildren"},
		},
		"one of two": {
			reason: "a rollout never leaves so few replicas", s: settled(restored, adopted, func(s *snapshot) { s.Sets[0].Spec.Replicas, s.Machines = new(int32(1)), nil }),
			wait: []string{"WaitingForChildren"},
		},
		"scaled meanwhile": {
			reason: "the deployment is larger than the MachineSets were scaled for: that is no loss",
			s: settled(restored, adopted, func(s *snapshot) {
				s.Deployment.Spec.Replicas = new(int32(4))
			}),
			wait: []string{"RolloutHeld"}, recheck: nodesRecheck,
			do: []string{"scale MachineSet md-1 from 3 to 4: its share of spec.replicas while nothing is rolled out"},
		},
		"nobody has looked": {
			reason: "everything is owned, but no Node was seen: an upgrade waits", s: settled(restored, adopted, upgrade),
			wait: []string{"RolloutHeld"}, recheck: nodesRecheck,
		},
		"ambiguous Node": {
			reason: "it may have had one of them: a person has to tell which", s: settled(restored, adopted, upgrade, lookedUp("ProviderIDNotUnique")),
			wait: []string{"RolloutHeld"}, recheck: nodesRecheck,
		},
		"no Node": {
			reason: "the workload cluster was asked, and there is none", s: settled(restored, adopted, lookedUp("NodeDoesNotExist")),
		},
		"ambiguous Node, observed": { // DP-06
			reason: "it never had one, and the rollout is a way to get rid of it", s: settled(upgrade, lookedUp("ProviderIDNotUnique")),
			do: []string{
				"create MachineSet " + second + " with 1 replicas: none has the template of revision 2",
			},
		},
		"not reachable, observed": {
			reason: "the Machine may have been restored after the deployment", s: settled(upgrade, lookedUp("ConnectionDown")),
			wait: []string{"RolloutHeld"}, recheck: nodesRecheck,
		},
		"all there": {reason: "everything is owned and seen", s: settled(func(s *snapshot) { s.Deployment.Status.ObservedGeneration = 0 })},
		"user deleted the set": {
			reason: "a deployment that was observed makes what a user has deleted", s: settled(func(s *snapshot) { s.Sets, s.Machines = nil, nil }),
			do: []string{"create MachineSet " + nameOf(fresh(), 2) + " with 3 replicas: none has the template of revision 2"},
		},
	} {
		t.Run(name, d.check)
	}
}

// lookedUp is what was found when the Nodes of the Machines were looked for.
func lookedUp(reason string) func(*snapshot) {
	return func(s *snapshot) {
		for i := range s.Machines["md-1"] {
			m := &s.Machines["md-1"][i]
			m.Status.NodeRef = clusterv1.MachineNodeReference{}
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeHealthyCondition, Status: "Unknown", Reason: reason},
				is(clusterv1.MachineUpToDateCondition, "True", "")}
		}
	}
}

// TestObserved: a restored deployment counts as observed once the Nodes of its Machines were looked at.
func TestObserved(t *testing.T) { // OR-01
	adopted := func(s *snapshot) { adopt(&s.Sets[0], s.Deployment) }
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   int64
	}{
		"new":                      {"it has no Machines", fresh(func(s *snapshot) { s.Deployment.Status.ObservedGeneration = 0 }), 7},
		"restored":                 {"no Node was seen", settled(restored, adopted), 0},
		"restored, ambiguous Node": {"a person has to tell", settled(restored, adopted, lookedUp("ProviderIDNotUnique")), 0},
		"restored, no Node":        {"all were looked for", settled(restored, adopted, lookedUp("NodeDoesNotExist")), 7},
		"replicas not set":         {"nothing was done for this generation", settled(func(s *snapshot) { s.Deployment.Status.ObservedGeneration, s.Deployment.Spec.Replicas = 6, nil }), 6},
		"observed, not reachable":  {"what is held now was observed before", settled(func(s *snapshot) { s.Deployment.Status.ObservedGeneration = 6 }, lookedUp("ConnectionDown")), 7},
	} {
		tc.s.Deployment.Finalizers = []string{clusterv1.MachineDeploymentFinalizer}
		got := report(tc.s, decide(tc.s), reconciler.Outcome{}).Status.(clusterv1.MachineDeploymentStatus).ObservedGeneration
		if got != tc.want {
			t.Errorf("%s: observed generation %d, want %d: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestNamesFollowFromWhatMakesThem(t *testing.T) { // DP-03
	other := fresh(func(s *snapshot) { s.Deployment.UID = "another" })
	for what, same := range map[string]bool{
		"the same again":     nameOf(fresh(), 1) == first,
		"another revision":   nameOf(fresh(), 2) != first,
		"another template":   nameOf(fresh(upgrade), 1) != first,
		"another deployment": nameOf(other, 1) != first,
	} {
		if !same {
			t.Error(what)
		}
	}
	long := fresh(func(s *snapshot) {
		s.Deployment.Name = "a23456789012345678901234567890123456789012345678901234567890123"
	})
	if name := nameOf(long, 1); len(name) != 63 {
		t.Errorf("%s has %d characters", name, len(name))
	}
}

func TestView(t *testing.T) { // DP-06
	s := settled(func(s *snapshot) {
		turn(s, "md-1", 0, is(clusterv1.MachineAvailableCondition, "False", ""), is(clusterv1.MachineNodeHealthyCondition, "False", ""))
		deleted(&s.Machines["md-1"][1])
	})
	got := setView(s, &s.Sets[0])
	if got.Actual != 3 || got.Deleting != 1 || got.Available != 1 || got.Free != 1 || got.Desired != 3 || got.Recorded != 3 || got.Revision != 1 {
		t.Errorf("%+v", got)
	}
	s.Machines["md-1"][2].Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""} // MS-10
	if got := setView(s, &s.Sets[0]); got.Free != 0 {
		t.Errorf("an available Machine that goes first makes none free: %+v", got)
	}
	s.Machines["md-1"][2].Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	if got := setView(s, &s.Sets[0]); got.Updating != 0 || got.Available != 0 || got.Free != 2 || got.NotBegun != 1 {
		t.Errorf("a Machine whose update has not begun can be handed over once more: %+v", got)
	}
	s.Machines["md-1"][2].Annotations[runtimev1.PendingHooksAnnotation] = "UpdateMachine"
	if got := setView(s, &s.Sets[0]); got.Updating != 1 || got.Available != 0 || got.Free != 1 {
		t.Errorf("a Machine that is being updated is not available, whatever its condition says: %+v", got)
	}
	s.Machines["md-1"][2].Status.Conditions = append(s.Machines["md-1"][2].Status.Conditions,
		metav1.Condition{Type: clusterv1.MachineUpdatingCondition, Status: "False", Reason: clusterv1.MachineInPlaceUpdateFailedReason})
	if got := setView(s, &s.Sets[0]); got.Updating != 0 || got.Free != 2 {
		t.Errorf("a Machine whose update failed is replaced: %+v", got)
	}
}

// A template that stands behind its deployment in a manifest is no alarm; one that is missing for longer is, once.
func TestTemplatesFollow(t *testing.T) { // DP-19
	created := func(ago time.Duration, problem string) snapshot {
		return fresh(func(s *snapshot) {
			s.Deployment.CreationTimestamp = metav1.NewTime(now().Add(-ago))
			s.Templates[0].Object = contract.Object{Problem: problem}
		})
	}
	for name, tc := range map[string]struct {
		s       snapshot
		until   reconciler.Until
		message string
		recheck time.Duration
	}{
		"just created": {created(2*time.Second, ""), reconciler.UntilTime, "Waiting for HostTemplate i to be created", 8 * time.Second},
		"late":         {created(templatesFollow, ""), reconciler.UntilUser, "HostTemplate i does not exist", 0},
		"unreadable":   {created(time.Second, "kind ConfigTemplate is not installed"), reconciler.UntilUser, "kind ConfigTemplate is not installed", 0},
	} {
		p := decide(tc.s)
		held := p.Waits[slices.IndexFunc(p.Waits, func(w reconciler.Wait) bool { return w.Reason == "RolloutHeld" })]
		if held.Until != tc.until || held.Message != tc.message || p.Recheck != tc.recheck {
			t.Errorf("%s: %+v, again in %s", name, held, p.Recheck)
		}
		if before := "Waiting for HostTemplate i to be created"; tc.until == reconciler.UntilUser && strings.Contains(before, held.Message) {
			t.Errorf("%s: the message was there before, so that there is no event", name)
		}
	}
}
