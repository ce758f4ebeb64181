package machinedeployment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
)

const (
	moveTo       = clusterv1.MachineSetMoveMachinesToMachineSetAnnotation
	receiveFrom  = clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation
	acknowledged = clusterv1.AcknowledgedMoveAnnotation
)

// updatable is a deployment whose template changed while Machines can be updated in place; answer is that of the extension, nil: it
// was not asked.
func updatable(answer *inplace.UpdateCheck, changes ...func(*snapshot)) snapshot {
	return settled(append([]func(*snapshot){upgrade, func(s *snapshot) {
		s.Settings.InPlace = true
		if answer != nil {
			s.InPlace = map[string]inplace.UpdateCheck{"md-1": *answer}
		}
	}}, changes...)...)
}

func mayMissOne(s *snapshot) {
	s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(0))
	s.Deployment.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(1))
}

// underWay adds the MachineSet of the new template with Machines that the old one has handed over to it.
func underWay(names ...string) func(*snapshot) {
	return func(s *snapshot) {
		withSet(s, setPlan{name: second, replicas: 0, revision: 2, current: true, moves: moves{from: "md-1"}}, 0)
		s.Deployment.Annotations[clusterv1.RevisionAnnotation] = "2"
		s.Sets[0].Spec.Replicas = new(3 - int32(len(names)))
		s.Sets[0].Annotations[moveTo] = second
		s.Sets[0].Annotations[clusterv1.MaxReplicasAnnotation] = s.Sets[1].Annotations[clusterv1.MaxReplicasAnnotation]
		for _, name := range names {
			for i, m := range s.Machines["md-1"] {
				if m.Name != name {
					continue
				}
				s.Machines["md-1"] = append(s.Machines["md-1"][:i:i], s.Machines["md-1"][i+1:]...)
				m.Annotations = map[string]string{clusterv1.PendingAcknowledgeMoveAnnotation: "", clusterv1.UpdateInProgressAnnotation: ""}
				s.Machines[second] = append(s.Machines[second], m)
				break
			}
		}
	}
}

func TestDecideInPlace(t *testing.T) { // IP-02, IP-07, DP-06, DP-18
	covered := &inplace.UpdateCheck{Handler: "update.ext", Covered: true}
	for name, d := range map[string]decision{
		"covered": {
			reason: "one Machine at a time, none is created", s: updatable(covered, mayMissOne),
			do: []string{
				"create MachineSet " + second + " with 0 replicas: none has the template of revision 2",
				"scale MachineSet md-1 from 3 to 2: its Machines are updated in place",
			},
		},
		"covered, none may be missing": {
			reason: "one Machine is created first", s: updatable(covered),
			do: []string{
				"create MachineSet " + second + " with 1 replicas: none has the template of revision 2",
				"sync MachineSet md-1: it differs from the deployment",
			},
		},
		"not covered": {
			reason: "Machines are replaced", s: updatable(&inplace.UpdateCheck{Handler: "update.ext", Uncovered: "MachineSet spec.version"}, mayMissOne),
			do: []string{
				"create MachineSet " + second + " with 0 replicas: none has the template of revision 2",
				"scale MachineSet md-1 from 3 to 2: enough Machines are available without",
			},
		},
		"no extension": {
			reason: "Machines are replaced", s: updatable(&inplace.UpdateCheck{}, mayMissOne),
			do: []string{
				"create MachineSet " + second + " with 0 replicas: none has the template of revision 2",
				"scale MachineSet md-1 from 3 to 2: enough Machines are available without",
			},
		},
		"not known": {
			reason: "nothing is replaced because an extension is down", recheck: inPlaceRecheck, wait: []string{inPlaceUnknown},
			s:  updatable(&inplace.UpdateCheck{Handler: "update.ext", Problem: fault.New(fault.Unreachable, "Down", "extension ext does not answer")}, mayMissOne),
			do: []string{"sync MachineSet md-1: it differs from the deployment"},
		},
		"busy": {
			reason: "soon again", recheck: time.Second, wait: []string{inPlaceUnknown}, s: updatable(&inplace.UpdateCheck{CallAfter: time.Second}, mayMissOne),
			do: []string{"sync MachineSet md-1: it differs from the deployment"},
		},
		"handed over": {
			reason: "it is counted, and nothing else moves until it is updated", s: updatable(covered, mayMissOne, underWay("md-1-0")),
			do: []string{"scale MachineSet " + second + " from 0 to 1: it counts the Machines that were transferred to it"},
		},
		"handed over, not known": {
			reason: "what is on its way arrives", recheck: inPlaceRecheck, wait: []string{inPlaceUnknown},
			s:  updatable(&inplace.UpdateCheck{Problem: fault.New(fault.Invalid, "Wrong", "wrong")}, mayMissOne, underWay("md-1-0")),
			do: []string{"scale MachineSet " + second + " from 0 to 1: it counts the Machines that were transferred to it"},
		},
		"handed over, gate off": {
			reason: "it is counted whatever the gate says; no other is handed over",
			s:      updatable(nil, mayMissOne, underWay("md-1-0"), func(s *snapshot) { s.Settings.InPlace = false }),
			do: []string{
				"sync MachineSet md-1: it differs from the deployment",
				"scale MachineSet " + second + " from 0 to 1: it counts the Machines that were transferred to it",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d.check(t)
		})
	}
}

func TestAsksBeforeRollingOut(t *testing.T) { // IP-02, IP-09
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		asks   bool
	}{
		"template": {"an extension may update the Machines", updatable(nil), true},
		"answered": {"it did answer", updatable(&inplace.UpdateCheck{}), false},
		"gate off": {"none is called", updatable(nil, func(s *snapshot) { s.Settings.InPlace = false }), false},
		"settled":  {"there is nothing to update", settled(func(s *snapshot) { s.Settings.InPlace = true }), false},
		"first":    {"there is no Machine yet", fresh(func(s *snapshot) { s.Settings.InPlace = true }), false},
		"paused":   {"nothing is rolled out", updatable(nil, func(s *snapshot) { s.Deployment.Spec.Paused = new(true) }), false},
		"on delete": {"never in place", updatable(nil, func(s *snapshot) {
			s.Deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
		}), false},
		"empty": {"no Machine is left to update", updatable(nil, func(s *snapshot) {
			s.Machines["md-1"] = nil
		}), false},
	} {
		p := decide(tc.s)
		if asks := len(p.Reads) > 0; asks != tc.asks {
			t.Errorf("%s: %s: asks %t (%v)", name, tc.reason, asks, p.Reads)
		}
	}
}

// annotationsOf are those of the MachineSets that a plan writes, by their names.
func annotationsOf(s snapshot, p reconciler.Plan) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, a := range p.Actions {
		var set *clusterv1.MachineSet
		switch a := a.(type) {
		case createSet:
			set = a.Desired(s)
		case syncSet:
			set = a.Desired(s)
		default:
			continue
		}
		out[set.Name] = map[string]string{}
		for _, key := range []string{moveTo, receiveFrom, acknowledged} {
			if value, has := set.Annotations[key]; has {
				out[set.Name][key] = value
			}
		}
	}
	return out
}

func TestAnnotationsOfMoves(t *testing.T) { // IP-03
	covered := &inplace.UpdateCheck{Handler: "update.ext", Covered: true}
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   map[string]map[string]string
	}{
		"begin": {"both sides say so", updatable(covered, mayMissOne), map[string]map[string]string{
			second: {receiveFrom: "md-1"}, "md-1": {moveTo: second},
		}},
		"count": {"what is counted is named in the write that counts it", updatable(covered, mayMissOne, underWay("md-1-0", "md-1-2")), map[string]map[string]string{
			second: {receiveFrom: "md-1", acknowledged: "md-1-0,md-1-2"},
		}},
		"counted": {"a Machine that begins is not named any more; one that does not yet, stays", updatable(covered, mayMissOne, underWay("md-1-0", "md-1-2"), func(s *snapshot) {
			s.Sets[1].Spec.Replicas = new(int32(2))
			s.Sets[1].Annotations[acknowledged] = "md-1-0,md-1-2"
			delete(s.Machines[second][1].Annotations, clusterv1.PendingAcknowledgeMoveAnnotation)
		}), map[string]map[string]string{second: {receiveFrom: "md-1", acknowledged: "md-1-0"}}},
		"deleted": {"a Machine that is deleted before it was counted never is", updatable(covered, mayMissOne, underWay("md-1-0"), func(s *snapshot) {
			deleted(&s.Machines[second][0])
		}), map[string]map[string]string{}},
		"deleted, counted": {"one that was counted stays until it is gone, so that no other is created beside it", updatable(covered, mayMissOne, underWay("md-1-0"), func(s *snapshot) {
			s.Sets[1].Spec.Replicas = new(int32(1))
			s.Sets[1].Annotations[acknowledged] = "md-1-0"
			deleted(&s.Machines[second][0])
		}), map[string]map[string]string{}},
		"written by a user": {"what a user wrote is overwritten, and never propagated from the deployment", settled(func(s *snapshot) {
			for _, key := range []string{moveTo, receiveFrom, acknowledged} {
				s.Sets[0].Annotations[key] = strings.Repeat("other-set,", 1000)
				s.Deployment.Annotations[key] = "other-set"
			}
		}), map[string]map[string]string{"md-1": {moveTo: "", receiveFrom: "", acknowledged: ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, annotationsOf(tc.s, decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCountsNoMoreThanItNames(t *testing.T) {
	s := updatable(nil, underWay())
	for n := range 3 * inplace.MaxListedNames {
		m := machine(&s.Sets[1], "m"+strings.Repeat("x", n))
		m.Annotations = map[string]string{clusterv1.PendingAcknowledgeMoveAnnotation: "", clusterv1.UpdateInProgressAnnotation: ""}
		s.Machines[second] = append(s.Machines[second], m)
	}
	if v := setView(s, &s.Sets[1]); v.Moved != inplace.MaxListedNames || v.Actual != 3*inplace.MaxListedNames {
		t.Errorf("%+v", v)
	}
	s.Sets[1].Annotations[acknowledged] = inplace.List(newlyCounted(s, &s.Sets[1]))
	if v := setView(s, &s.Sets[1]); v.Moved != 0 {
		t.Errorf("with a full list: %+v", v)
	}
}

func TestConditionSaysWhatIsUpdatedInPlace(t *testing.T) { // DP-12
	outdated := func(s *snapshot) {
		turn(s, "md-1", 0, is(clusterv1.MachineUpToDateCondition, "False", "* Version v1.36.3, v1.36.4 required"))
	}
	for name, tc := range map[string]struct {
		answer inplace.UpdateCheck
		want   string
	}{
		"covered":     {inplace.UpdateCheck{Handler: "update.ext", Covered: true}, "* Machines of MachineSet md-1 are updated in place by update.ext"},
		"not covered": {inplace.UpdateCheck{Handler: "update.ext", Uncovered: "MachineSet spec.template.spec.version"}, "* Machines of MachineSet md-1 are replaced, since update.ext does not change MachineSet spec.template.spec.version in place"},
		"not asked":   {inplace.UpdateCheck{Uncovered: "their infrastructure is of another kind"}, "* Machines of MachineSet md-1 are replaced, since their infrastructure is of another kind"},
		"not known": {inplace.UpdateCheck{Problem: fault.New(fault.Unreachable, "Down", "extension ext does not answer")},
			"* Whether the Machines of MachineSet md-1 can be updated in place is not known, and nothing is rolled out until it is: extension ext does not answer"},
	} {
		s := updatable(&tc.answer, outdated)
		status := report(s, decide(s), reconciler.Outcome{}).Status.(clusterv1.MachineDeploymentStatus)
		for _, c := range status.Conditions {
			if c.Type == clusterv1.MachineDeploymentRollingOutCondition && !strings.Contains(c.Message+"\n", tc.want+"\n") {
				t.Errorf("%s: %q", name, c.Message)
			}
		}
	}
	s := updatable(&inplace.UpdateCheck{Handler: "update.ext", Covered: true}, mayMissOne)
	var events []string
	for _, e := range report(s, reconciler.Plan{}, reconciler.Outcome{Done: decide(s).Actions}).Events {
		events = append(events, e.Reason)
	}
	if diff := cmp.Diff([]string{"SuccessfulCreate", "UpdatingInPlace", "SuccessfulScale"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestFormsForAnExtension(t *testing.T) {
	s := updatable(nil, func(s *snapshot) {
		s.Deployment.Spec.Template.Spec.InfrastructureRef.Name = "i2"
		s.Deployment.Spec.Template.Spec.MinReadySeconds = new(int32(7))
		s.Sets[0].Annotations["changes"] = "often"
	})
	current, desired := currentForm(s, &s.Sets[0]), desiredForm(s)
	if current.Name != "md-1" || desired.Name != nameOf(s, 2) {
		t.Errorf("%s, %s", current.Name, desired.Name)
	}
	want := *desired.Spec.Template.DeepCopy()
	want.Spec.Version = "v1.36.3"
	if diff := cmp.Diff(want, current.Spec.Template); diff != "" {
		t.Errorf("only what needs a change of Machines differs (-want +got):\n%s", diff)
	}
	if len(current.Annotations)+len(desired.Annotations) > 0 || current.Spec.Replicas != nil {
		t.Errorf("what changes during a rollout would need another answer each time: %v", current)
	}
	if diff := cmp.Diff(desiredForm(updatable(nil)), desiredForm(updatable(nil, underWay()))); diff != "" {
		t.Errorf("it is the same before and after the creation (-before +after):\n%s", diff)
	}
}

func TestNewMachinesAreNotUpdatedOnes(t *testing.T) { // DP-10
	s := updatable(nil, func(s *snapshot) { s.Deployment.Spec.Rollout.After = metav1.NewTime(at(10)) })
	answer, err := (&controller{}).canUpdate(t.Context(), s, &s.Sets[0])
	if err != nil || answer.Covered || answer.Uncovered != "spec.rollout.after requests new Machines" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestNeverInPlace(t *testing.T) {
	old, kinds, config := settled().Deployment.Spec.Template, settled().Deployment.Spec.Template, settled().Deployment.Spec.Template
	kinds.Spec.InfrastructureRef.Kind = "OtherTemplate"
	config.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("data")}
	upgraded := old
	upgraded.Spec.Version = "v1.36.4"
	for name, tc := range map[string]struct {
		to   clusterv1.MachineTemplateSpec
		want string
	}{
		"same": {old, "their template is the current one, which another MachineSet has"}, "kind": {kinds, "their infrastructure is of another kind"},
		"config": {config, "their bootstrap config is of another kind"}, "version": {upgraded, ""},
	} {
		if got := neverInPlace(old, tc.to); got != tc.want {
			t.Errorf("%s: %q (%v)", name, got, rollout.Differences(old, tc.to))
		}
	}
}
