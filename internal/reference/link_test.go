package reference_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reference"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// A fourth kind with a reference: this is all that it writes.
var infrastructure = reference.Role{
	Owner: clusterv1.GroupVersion.WithKind("Fleet"), Name: "infrastructure",
	Condition: "InfrastructureReady", Source: clusterv1.ReadyCondition, DoneReason: clusterv1.ReadyReason, NotDoneReason: clusterv1.NotReadyReason,
}

type snapshot struct {
	fleet   *metav1.ObjectMeta
	ref     clusterv1.ContractVersionedObjectReference
	infra   contract.InfraMachineView
	reached bool
}

func (s snapshot) link() reference.Link {
	return reference.Link{Role: infrastructure, From: s.fleet, Cluster: "c", Ref: s.ref, View: s.infra, Reached: s.reached}
}

func decide(s snapshot) (p reconciler.Plan) {
	if s.fleet.DeletionTimestamp.IsZero() {
		s.link().Decide(&p)
	} else {
		s.link().Delete(&p, "WaitingForInfrastructureDeletion")
	}
	return p
}

// Until here it is 30 lines.

func object(text string, version contract.Version) contract.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return contract.Object{Unstructured: u, Contract: version}
}

const owner = "{apiVersion: cluster.x-k8s.io/v1beta2, kind: Fleet, name: f, uid: fleet, controller: true}"

// reads makes the infrastructure say something, owned as it should be.
func reads(text string) func(*snapshot) {
	return readsOf(contract.V1Beta2, text)
}

func readsOf(version contract.Version, text string) func(*snapshot) {
	return func(s *snapshot) {
		s.infra = contract.InfraMachine(object("metadata: {name: i, labels: {cluster.x-k8s.io/cluster-name: c}, ownerReferences: ["+owner+"]}\n"+text, version))
	}
}

func owned(refs string) func(*snapshot) {
	return func(s *snapshot) {
		s.infra = contract.InfraMachine(object("metadata: {name: i, labels: {cluster.x-k8s.io/cluster-name: c}, ownerReferences: ["+refs+"]}", contract.V1Beta2))
	}
}

func world(changes ...func(*snapshot)) snapshot {
	s := snapshot{
		fleet: &metav1.ObjectMeta{Name: "f", UID: "fleet"},
		ref:   clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "i"},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func deleted(s *snapshot) { s.fleet.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }

func reached(s *snapshot) { s.reached = true }

func unreadable(s *snapshot) {
	s.infra = contract.InfraMachine(contract.Object{Problem: "Install FooMachine"})
}

const untouched = "FooMachine i has no status: no controller has reconciled it yet; if that stays so, check that its provider runs"

const done = "spec: {providerID: x://1}\nstatus: {initialization: {provisioned: true}}"

func TestLink(t *testing.T) { // CL-06, CL-16, CT-07, MA-05, MA-06, MA-07
	cases := map[string]struct {
		reason  string
		s       snapshot
		want    []string
		verdict condition.Result
	}{
		"not set": {"the owner may do without", world(reached, func(s *snapshot) { s.ref = clusterv1.ContractVersionedObjectReference{} }),
			nil, condition.True("Ready")},
		"unreadable": {"a person has to change something, and nothing tells of it", world(unreadable),
			[]string{"Install FooMachine", "recheck 30s"}, condition.Unknown("InternalError", "Install FooMachine")},
		"missing": {"it may come", world(),
			[]string{"Waiting for FooMachine i to be created", "recheck 30s"}, condition.False("ObjectDoesNotExist", "FooMachine does not exist")},
		"lost": {"nothing but a person brings it back", world(reached),
			[]string{"FooMachine i has been deleted while it was in use: restore it, or delete Fleet f"},
			condition.False("ObjectDeleted", "FooMachine i has been deleted while it was in use: restore it, or delete Fleet f")},
		"not owned": {"ownership comes first", world(owned("{kind: Other, name: o, uid: o}")),
			[]string{"own FooMachine i: it is the Fleet's infrastructure"}, condition.False("NotReady", untouched)},
		"owner of an earlier life": {"replaced", world(owned("{apiVersion: cluster.x-k8s.io/v1beta2, kind: Fleet, name: f, uid: old, controller: true}")),
			[]string{"own FooMachine i: it is the Fleet's infrastructure"}, condition.False("NotReady", untouched)},
		"owned by another of a namesake": {"another API's kind of the same name is another owner", world(owned("{apiVersion: other.io/v1, kind: Fleet, name: f, uid: o, controller: true}")),
			[]string{"FooMachine i belongs to Fleet f: refer to an object of its own in Fleet f"},
			condition.Unknown("InternalError", "FooMachine i belongs to Fleet f: refer to an object of its own in Fleet f")},
		"owned by another": {"who will not give it up", world(owned("{apiVersion: cluster.x-k8s.io/v1beta2, kind: Fleet, name: g, uid: g, controller: true}")),
			[]string{"FooMachine i belongs to Fleet g: refer to an object of its own in Fleet f"},
			condition.Unknown("InternalError", "FooMachine i belongs to Fleet g: refer to an object of its own in Fleet f")},
		"field not readable": {"said for as long as it is so, and not taken for one that is missing", world(reads("spec: {providerID: [x]}\nstatus: {initialization: {provisioned: true}}")),
			[]string{"FooMachine i reports what its contract does not allow: field spec.providerID: want string, have array"},
			condition.Unknown("InternalError", "FooMachine i reports what its contract does not allow: field spec.providerID: want string, have array")},
		"flag not readable": {"", world(reads("status: {initialization: {provisioned: 'yes'}}")),
			[]string{"FooMachine i reports what its contract does not allow: field status.initialization.provisioned: want bool, have string"},
			condition.Unknown("InternalError", "FooMachine i reports what its contract does not allow: field status.initialization.provisioned: want bool, have string")},
		"item not readable": {"the item is named", world(reads(done[:len(done)-1] + ", addresses: [{type: 5}]}")),
			[]string{"FooMachine i reports what its contract does not allow: field status.addresses: type: want string, have number"},
			condition.Unknown("InternalError", "FooMachine i reports what its contract does not allow: field status.addresses: type: want string, have number")},
		"not done": {"the field is named", world(reads("status: {}")),
			[]string{"Waiting for FooMachine i to report status.initialization.provisioned"}, condition.False("NotReady", "FooMachine status.initialization.provisioned is false")},
		"not done, older contract": {"the field of its own contract", world(readsOf(contract.V1Beta1, "status: {}")),
			[]string{"Waiting for FooMachine i to report status.ready"}, condition.False("NotReady", "FooMachine status.ready is false")},
		"done without a result": {"whatever its condition says", world(reads("status: {initialization: {provisioned: true}, conditions: [{type: Ready, status: 'True'}]}")),
			[]string{"Waiting for FooMachine i to set spec.providerID: it reports status.initialization.provisioned"},
			condition.False("NotReady", "Waiting for FooMachine i to set spec.providerID: it reports status.initialization.provisioned")},
		"condition": {"repeated", world(reads(done[:len(done)-1] + ", conditions: [{type: Ready, status: 'False', reason: Quota, message: no more}]}")),
			nil, condition.False("Quota", "no more")},
		"done":              {"", world(reads(done)), nil, condition.True("Ready")},
		"done once":         {"what was reached stays", world(reached, reads("status: {}")), []string{"Waiting for FooMachine i to report status.initialization.provisioned"}, condition.True("Ready")},
		"deleting":          {"", world(deleted, reads(done)), []string{"delete FooMachine i: the Fleet is deleted", "Waiting for FooMachine i to be deleted"}, condition.True("Ready")},
		"deleting, gone":    {"", world(deleted, reached), nil, condition.False("ObjectDeleted", "FooMachine has been deleted")},
		"deleting, unknown": {"it may be there", world(deleted, unreadable), []string{"Install FooMachine", "recheck 30s"}, condition.Unknown("InternalError", "Install FooMachine")},
		"deleting, another's": {"it is not deleted with who does not own it", world(deleted, owned("{apiVersion: cluster.x-k8s.io/v1beta2, kind: Fleet, name: g, uid: g, controller: true}")), nil,
			condition.Unknown("InternalError", "FooMachine i belongs to Fleet g: refer to an object of its own in Fleet f")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			var got []string
			for _, a := range p.Actions {
				got = append(got, a.String())
			}
			for _, w := range p.Waits {
				got = append(got, w.Message)
				if len(w.On) != 1 || w.On[0].Name != "i" || w.Until == "" {
					t.Errorf("what is waited for, and what ends it, is not said: %+v", w)
				}
			}
			if p.Recheck > 0 {
				got = append(got, "recheck "+p.Recheck.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.verdict, tc.s.link().ComputeCondition()); diff != "" {
				t.Errorf("%s: condition (-want +got):\n%s", tc.reason, diff)
			}
			events := reference.Events(nil, tc.s.link())
			if problem := tc.s.link().Problem(); (problem != "") != (len(events) == 1) {
				t.Errorf("%s: problem %q, events %v", tc.reason, problem, events)
			}
			before := condition.Set{{Type: "InfrastructureReady", Message: tc.verdict.Message}}
			if events := reference.Events(before, tc.s.link()); len(events) != 0 {
				t.Errorf("%s: told again: %v", tc.reason, events)
			}
		})
	}
}

// What ends a wait is a field of the object, its creation, or a person.
func TestWaits(t *testing.T) {
	on := []reconciler.Subject{{Kind: "FooMachine", Name: "i"}}
	for name, tc := range map[string]struct {
		s    snapshot
		want reconciler.Wait
	}{
		"missing":  {world(), reconciler.Wait{On: on, Until: "change"}},
		"not done": {world(reads("status: {}")), reconciler.Wait{On: on, Field: "status.initialization.provisioned", Until: "change"}},
		"unnamed":  {world(reads("status: {initialization: {provisioned: true}}")), reconciler.Wait{On: on, Field: "spec.providerID", Until: "change"}},
		"lost":     {world(reached), reconciler.Wait{On: on, Until: reconciler.UntilUser}},
		"deleting": {world(deleted, reads(done)), reconciler.Wait{On: on, Until: "change"}},
	} {
		got := decide(tc.s).Waits[0]
		got.Reason, got.Message = "", ""
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFailure(t *testing.T) { // CT-08, MA-07
	fails := "status: {failureReason: Bad, failureMessage: broke}"
	if f := reference.Failure(world(reads(fails)).link()); f != (contract.Failure{}) {
		t.Errorf("contract v1beta2 has none: %v", f)
	}
	want := contract.Failure{Reason: "Bad", Message: "Failure detected from FooMachine i: broke"}
	if f := reference.Failure(world().link(), world(readsOf(contract.V1Beta1, fails)).link()); f != want {
		t.Errorf("%v", f)
	}
	l := world(reads(fails)).link()
	l.AnyContract = true
	if f := reference.Failure(l); f != want {
		t.Errorf("of any contract: %v", f)
	}
	if v := l.ComputeCondition(); v != condition.False("NotReady", "FooMachine status.initialization.provisioned is false, and it reports a failure: Bad: broke") {
		t.Errorf("%v", v)
	}
}

func TestBroken(t *testing.T) { // CL-28
	expendable := world(reached).link()
	expendable.Expendable = true
	for name, tc := range map[string]struct {
		l    reference.Link
		want bool
	}{
		"missing":             {world().link(), false},
		"lost":                {world(reached).link(), true},
		"lost and not missed": {expendable, false},
		"unreadable":          {world(unreadable).link(), true},
		"field":               {world(reads("spec: {providerID: [x]}")).link(), true},
		"deleting":            {world(deleted, unreadable).link(), false},
		"done":                {world(reads(done)).link(), false},
	} {
		if got := reference.IsBroken(world(reads(done)).link(), tc.l); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
