package machineset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

const (
	moveKey    = clusterv1.MachineSetMoveMachinesToMachineSetAnnotation
	receiveKey = clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation
	countedKey = clusterv1.AcknowledgedMoveAnnotation
	awaitKey   = clusterv1.PendingAcknowledgeMoveAnnotation
	markKey    = clusterv1.UpdateInProgressAnnotation
	hooksKey   = runtimev1.PendingHooksAnnotation

	newInfraTemplate     = "{apiVersion: i/v1, kind: FooMachineTemplate, metadata: {namespace: ns, name: it2, uid: it2}, spec: {template: {metadata: {labels: {size: huge}}, spec: {cpus: 4}}}}"
	newBootstrapTemplate = "{apiVersion: b/v1, kind: FooConfigTemplate, metadata: {namespace: ns, name: bt2, uid: bt2}, spec: {template: {spec: {format: z}}}}"
)

// sibling is a MachineSet of the MachineDeployment md with its own template; it receives Machines from ms.
func sibling(set *clusterv1.MachineSet, name string) *clusterv1.MachineSet {
	out := set.DeepCopy()
	out.Name, out.UID, out.ResourceVersion = name, types.UID(name), ""
	out.Spec.Replicas = new(int32(0))
	out.Spec.Selector.MatchLabels = map[string]string{"set": "x", "hash": name}
	out.Spec.Template.Labels = map[string]string{"set": "x", "hash": name}
	out.Spec.Template.Spec.Version = "v1.36.4"
	out.Spec.Template.Spec.InfrastructureRef.Name, out.Spec.Template.Spec.Bootstrap.ConfigRef.Name = "it2", "bt2"
	out.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2", receiveKey: "ms"}
	return out
}

// moving makes the set one that hands over its surplus to another of its MachineDeployment.
func moving(changes ...func(*snapshot)) func(*snapshot) {
	return func(s *snapshot) {
		ofDeployment()(s)
		s.Settings.InPlace = true
		s.Set.Annotations[moveKey] = "new"
		s.Target = sibling(s.Set, "new")
		for _, change := range changes {
			change(s)
		}
	}
}

func annotated(keys ...string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		for _, key := range keys {
			m.Annotations[key] = ""
		}
	}
}

func failedUpdate(m *clusterv1.Machine) {
	annotated(markKey)(m)
	m.Annotations[hooksKey] = "UpdateMachine"
	says(is("Updating", "False", "InPlaceUpdateFailed", "no"))(m)
}

func updating(m *clusterv1.Machine) {
	annotated(markKey)(m)
	m.Annotations[hooksKey] = "UpdateMachine"
}

func without(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }

// cloned gives a snapshot the clones of its Machines.
func cloned(s *snapshot) {
	s.Clones = &clone.Clones{Items: map[clone.Key]contract.Object{}, Stale: map[clone.Key]bool{}}
	for _, m := range s.Machines {
		for _, ref := range clone.Refs(m.Machine) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetAPIVersion(ref.APIGroup + "/v1")
			u.SetKind(ref.Kind)
			u.SetName(ref.Name)
			u.SetLabels(s.State().Definition.Labels)
			u.SetAnnotations(s.State().Definition.Annotations)
			s.Clones.Items[clone.Key{Kind: ref.Kind, Name: ref.Name}] = contract.Object{Unstructured: u}
		}
	}
}

func TestDecideMoves(t *testing.T) { // IP-03, IP-04, MS-10, MS-12
	const deferred = "wait: Machines cannot be transferred for an update in place: "
	const decides = "; waiting for the MachineDeployment to decide"
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"surplus":    {"handed over, not deleted", settled(replicas(1), moving()), []string{"do: transfer Machine m1 to MachineSet new: it is updated in place"}},
		"all":        {"in one action", settled(replicas(0), moving()), []string{"do: transfer Machines m1, m2 to MachineSet new: it is updated in place"}},
		"no surplus": {"all are needed", settled(replicas(2), moving()), nil},
		"gate off":   {"deleted, as ever", settled(replicas(1), moving(func(s *snapshot) { s.Settings.InPlace = false })), []string{"do: delete Machine m1: scale down to 1, in random order"}},
		"standalone": {"no MachineDeployment has said so", settled(replicas(1), func(s *snapshot) {
			s.Settings.InPlace = true
			s.Set.Annotations = map[string]string{moveKey: "new"}
		}), []string{"do: delete Machine m1: scale down to 1, in random order"}},
		"priority": {"who is to be replaced is deleted, who is deleted already counts", settled(with(going(0), annotated(clusterv1.DeleteMachineAnnotation), without, failedUpdate, asIs, asIs), replicas(1), moving()),
			[]string{"do: delete Machines m2, m3, m4: it is replaced, not updated in place", "do: transfer Machine m5 to MachineSet new: it is updated in place"}},
		"updating": {"what is being updated is waited for, and goes last", settled(with(updating, asIs), replicas(0), moving()),
			[]string{"do: transfer Machine m2 to MachineSet new: it is updated in place", "wait: Waiting for the in-place updates of Machine m1 to end"}},
		"not begun": {"what is not written yet is handed over first", settled(with(asIs, annotated(awaitKey, markKey), annotated(markKey)), replicas(1), moving(), counting("m2")),
			[]string{"do: transfer Machines m2, m3 to MachineSet new: it is updated in place"}},
		"not begun, no surplus": {"it is updated here first", settled(with(asIs, annotated(markKey)), replicas(2), moving(), cloned),
			[]string{"do: begin the in-place update of Machine m2: it differs from the template"}},
		"counted, too many": {"what is deleted is not updated before", settled(with(asIs, annotated(awaitKey, markKey)), replicas(1), ofDeployment(), counting("m2"), cloned),
			[]string{"do: delete Machine m2: scale down to 1, in random order"}},
		"counted, one is being deleted": {"it does not wait until that is gone", settled(with(going(0), annotated(awaitKey, markKey)), replicas(1), ofDeployment(), counting("m2"), cloned),
			[]string{"do: begin the in-place update of Machine m2: it differs from the template"}},
		"no target":      {"the annotation may be garbage", settled(replicas(1), moving(func(s *snapshot) { s.Target = nil })), []string{deferred + "MachineSet new does not exist" + decides}},
		"foreign target": {"a user names another's", settled(replicas(1), moving(func(s *snapshot) { s.Target.OwnerReferences[0].UID = "other" })), []string{deferred + "MachineSet new is not of the same MachineDeployment" + decides}},
		"one side":       {"only one says so", settled(replicas(1), moving(func(s *snapshot) { s.Target.Annotations[receiveKey] = "others" })), []string{deferred + "MachineSet new does not receive Machines from it" + decides}},
		"preflight": {"no Machine of a version that the control plane does not support", settled(replicas(1), moving(func(s *snapshot) { s.Target.Spec.Template.Spec.Version = "v1.37.0" })),
			[]string{"wait: Version v1.37.0 of MachineSet new is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)", "recheck: 15s"}},
		"not counted":      {"what was handed over to it is neither too many nor of its own", settled(with(annotated(awaitKey, markKey), asIs), replicas(1), ofDeployment()), nil},
		"marked by a user": {"a set of its own counts all of its Machines", settled(with(annotated(awaitKey, markKey), asIs), replicas(2)), nil},
		"not counted, scaled down": {"it deletes one of its own", settled(with(annotated(awaitKey, markKey), asIs), replicas(0), ofDeployment()),
			[]string{"do: delete Machine m2: scale down to 0, in random order"}},
		"not counted, scaled up": {"it creates one", settled(with(annotated(awaitKey, markKey)), replicas(1), ofDeployment()), []string{"do: create Machine ms-aaaaa: scale up from 0 to 1"}},
		"counted": {"its update begins, and no Machine is created", settled(with(annotated(awaitKey, markKey)), replicas(1), ofDeployment(), counting("m1"), cloned),
			[]string{"do: begin the in-place update of Machine m1: it differs from the template"}},
		"counted, no clones": {"they are read first", settled(with(annotated(awaitKey, markKey)), replicas(1), ofDeployment(), counting("m1")),
			[]string{"ask: bootstrap configs and infrastructure machines of the Machines"}},
		"counted, gate off": {"the update cannot be made", settled(with(annotated(awaitKey, markKey)), replicas(1), ofDeployment(), counting("m1"), cloned, func(s *snapshot) { s.Settings.InPlace = false }),
			[]string{"do: delete Machine m1: it cannot be updated in place, since the feature gate InPlaceUpdates is disabled"}},
		"interrupted": {"begun by another implementation, and not written", settled(with(annotated(markKey), asIs), ofDeployment(), counting(), cloned),
			[]string{"do: begin the in-place update of Machine m1: it differs from the template"}},
		"begun":   {"the Machine controller goes on", settled(with(updating, asIs), ofDeployment(), counting()), nil},
		"deleted": {"a Machine that is being deleted is not updated", settled(with(func(m *clusterv1.Machine) { annotated(awaitKey, markKey)(m); going(0)(m) }, asIs), ofDeployment(), counting("m1"), cloned), nil},
		"no clone": {"its infrastructure machine is gone", settled(with(annotated(awaitKey, markKey), asIs), ofDeployment(), counting("m1"), cloned, func(s *snapshot) { delete(s.Clones.Items, clone.Key{Kind: "FooMachine", Name: "m1"}) }),
			[]string{"wait: In-place update of Machine m1 cannot begin: FooMachine m1 does not exist; delete the Machine to replace it", "recheck: 30s"}},
		"no template": {"what it shall be is not known", settled(with(annotated(awaitKey, markKey), asIs), ofDeployment(), counting("m1"), cloned, func(s *snapshot) { s.Infra.Object = contract.Object{} }),
			[]string{"wait: In-place update of Machine m1 cannot begin: FooMachineTemplate it does not exist", "recheck: 30s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// counting makes the MachineDeployment have counted Machines.
func counting(names ...string) func(*snapshot) {
	return func(s *snapshot) {
		s.Settings.InPlace = true
		s.Set.Annotations[countedKey] = inplace.List(names)
	}
}

func TestStatusDuringMoves(t *testing.T) {
	s := settled(replicas(1), moving(func(s *snapshot) { s.Target = nil }))
	status := report(s, decide(s), reconciler.Outcome{}).Status.(clusterv1.MachineSetStatus)
	for _, c := range status.Conditions {
		if c.Type == clusterv1.MachineSetScalingDownCondition && !strings.Contains(c.Message, "\n* Machines cannot be transferred for an update in place: MachineSet new does not exist") {
			t.Errorf("why it does not scale down: %q", c.Message)
		}
	}
	s = settled(with(annotated(awaitKey, markKey)), replicas(0), ofDeployment())
	status = report(s, decide(s), reconciler.Outcome{}).Status.(clusterv1.MachineSetStatus)
	for _, c := range status.Conditions {
		if (c.Type == clusterv1.MachineSetScalingDownCondition || c.Type == clusterv1.MachineSetScalingUpCondition) && c.Status == metav1.ConditionTrue {
			t.Errorf("a Machine that was handed over is neither too many nor too few: %s: %s", c.Type, c.Message)
		}
	}
}

func TestTemplatesMarkNoMachine(t *testing.T) {
	s := settled(func(s *snapshot) {
		s.Set.Spec.Template.Annotations = map[string]string{"note": "1", awaitKey: "", markKey: "", hooksKey: "UpdateMachine"}
	})
	if diff := cmp.Diff(map[string]string{"note": "1"}, s.State().Definition.Machine("m").Annotations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSenders(t *testing.T) {
	set := newSet()
	set.Annotations = map[string]string{receiveKey: "a,b"}
	if got := fmt.Sprint(senders(t.Context(), set)); got != "[ns/a ns/b]" {
		t.Error(got)
	}
	set.Annotations[receiveKey] = strings.Repeat("x", 30000)
	for i := range 1000 {
		set.Annotations[receiveKey] += fmt.Sprintf(",s%d", i)
	}
	if n := len(senders(t.Context(), set)); n > inplace.MaxListedNames {
		t.Errorf("%d reconciliations for a list that a user wrote", n)
	}
}

// settleAll reconciles several sets until nothing changes any more.
func (w *world) settleAll(names ...string) {
	w.t.Helper()
	before := ""
	for range 60 {
		clean := true
		for _, name := range names {
			_, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
			clean = clean && err == nil
		}
		if after := w.versions(); clean && after == before {
			return
		}
		before = w.versions()
	}
	w.t.Fatal("does not settle")
}

// TestMove hands a Machine over and begins its update, while each write fails once, and with a restart of the controller after each step.
func TestMove(t *testing.T) { // IP-03, IP-04, DP-18
	d := settled(ofDeployment()).Deployment
	old := settled(ofDeployment()).Set
	old.Spec.Selector.MatchLabels = map[string]string{"set": "x", "hash": "ms"}
	old.Spec.Template.Labels = map[string]string{"set": "x", "hash": "ms"}
	next := sibling(old, "new")
	build := func() *fake.ClientBuilder {
		return managementCluster(d.DeepCopy(), old.DeepCopy(), next.DeepCopy(), object(newInfraTemplate), object(newBootstrapTemplate))
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		inPlace := func() { w.restart(); w.ctl.settings.InPlace = true }
		inPlace()
		w.settleAll("ms", "new")
		var names []string
		for _, m := range w.machines() {
			names = append(names, m.Name)
			w.change(&m, func() {
				m.Status.NodeRef.Name = "node-" + m.Name
				m.Spec.ProviderID = "foo://" + m.Name
			})
			infra := object("{apiVersion: i/v1, kind: FooMachine, metadata: {namespace: ns, name: " + m.Name + "}}")
			w.change(infra, func() {
				infra.Object["spec"].(map[string]any)["providerID"] = "foo://" + m.Name
				infra.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&m, clusterv1.GroupVersion.WithKind("Machine"))})
			})
		}
		set := w.set()
		w.change(set, func() { set.Spec.Replicas = new(int32(1)); set.Generation++; set.Annotations[moveKey] = "new" })
		w.settleAll("ms", "new")
		inPlace()
		w.settleAll("ms", "new")

		moved := w.owned("new")
		if len(moved) != 1 || len(w.owned("ms")) != 1 || len(w.machines()) != 2 {
			t.Fatalf("handed over: %d, left: %d, in all: %d", len(moved), len(w.owned("ms")), len(w.machines()))
		}
		m := moved[0]
		if state := inplace.StateOf(&m); state != inplace.Moving || len(m.OwnerReferences) != 1 || m.Spec.Version != "v1.36.3" ||
			m.Labels["hash"] != "new" || m.Labels[clusterv1.MachineSetNameLabel] != "new" || !slices.Contains(names, m.Name) {
			t.Errorf("handed over: %s, %v, %v", state, m.OwnerReferences, m.Labels)
		}

		received := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "new"}}
		w.change(received, func() {
			received.Spec.Replicas = new(int32(1))
			received.Generation++
			received.Annotations[countedKey] = m.Name
		})
		w.settleAll("new", "ms")
		inPlace()
		w.settleAll("new", "ms")

		m = w.owned("new")[0]
		if state := inplace.StateOf(&m); state != inplace.Updating || m.Spec.Version != "v1.36.4" || len(w.machines()) != 2 {
			t.Errorf("%s is %s with version %s, %d Machines in all", m.Name, state, m.Spec.Version, len(w.machines()))
		}
		w.isUpdated("i", "FooMachine", m.Name, map[string]any{"cpus": int64(4), "providerID": "foo://" + m.Name}, "it2")
		w.isUpdated("b", "FooConfig", m.Name, map[string]any{"format": "z"}, "bt2")
	})
}

// owned are the Machines that a set controls.
func (w *world) owned(set string) []clusterv1.Machine {
	return slices.DeleteFunc(w.machines(), func(m clusterv1.Machine) bool { return metav1.GetControllerOf(&m).Name != set })
}

func (w *world) isUpdated(group, kind, name string, spec map[string]any, template string) {
	w.t.Helper()
	found := 0
	for _, o := range w.clones(group, kind) {
		if o.GetName() != name {
			continue
		}
		found++
		if diff := cmp.Diff(spec, o.Object["spec"]); diff != "" {
			w.t.Errorf("%s %s (-want +got):\n%s", kind, name, diff)
		}
		_, marked := o.GetAnnotations()[markKey]
		if !marked || o.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] != template || o.GetLabels()[clusterv1.MachineSetNameLabel] != "new" {
			w.t.Errorf("%s %s: annotations %v, labels %v", kind, name, o.GetAnnotations(), o.GetLabels())
		}
	}
	if found != 1 {
		w.t.Errorf("%d %s %s", found, kind, name)
	}
}

func TestSurplusOrder(t *testing.T) { // MS-10
	s := settled(with(asIs, updating, failedUpdate, without, annotated(clusterv1.DeleteMachineAnnotation), going(0)))
	got := s.Machines.Surplus(6, machines.ByMovePriority(clusterv1.OldestMachineSetDeletionOrder))
	want := machines.Surplus{Replaced: []string{"m3", "m4", "m5"}, Moved: []string{"m1"}, Updating: []string{"m2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := s.Machines.Surplus(5, machines.ByMovePriority("")); len(got.Updating) != 0 || len(got.Moved) != 1 {
		t.Errorf("what is being updated goes last: %+v", got)
	}
}
