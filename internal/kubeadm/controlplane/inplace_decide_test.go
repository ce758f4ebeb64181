package controlplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func updateObject(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	u.SetAPIVersion("i/v1")
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// updateOutdated is a control plane of two with one Machine that has another version.
func updateOutdated(changes ...func(*updateInput, *deletionCandidate)) (updateInput, deletionCandidate) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m1", Annotations: map[string]string{}}}
	m.Spec.Version, m.Spec.Bootstrap.DataSecretName, m.Status.NodeRef.Name = "v1.35.0", new("data"), "n1"
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "m1"}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "KubeadmConfig", Name: "m1"}
	in := updateInput{
		ControlPlane: &controlplanev1.KubeadmControlPlane{}, Enabled: true, UpToDate: 1, Desired: 2,
		State: machines.OwnerState{Members: machines.OwnedMachines{{Machine: m}}, Clones: &clone.Clones{Items: map[clone.Key]contract.Object{
			{Kind: "FooMachine", Name: "m1"}: {Unstructured: updateObject("FooMachine", "m1"), Contract: contract.V1Beta2}}}},
		Template: clone.Template{Ref: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "t"},
			Object: contract.Object{Unstructured: updateObject("FooMachineTemplate", "t"), Contract: contract.V1Beta2}},
		Configs: map[string]*bootstrapv1.KubeadmConfig{"m1": {}},
		Reasons: map[string][]rolloutReason{"m1": {{Cause: rolloutVersion, Message: "Version v1.35.0, v1.36.0 required"}}},
		Checks:  map[string]inplace.UpdateCheck{},
	}
	c := deletionCandidate{Machine: m, Outdated: true}
	for _, change := range changes {
		change(&in, &c)
	}
	return in, c
}

func answered(a inplace.UpdateCheck) func(*updateInput, *deletionCandidate) {
	return func(in *updateInput, _ *deletionCandidate) { in.Checks["m1"] = a }
}

func annotated(key, value string) func(*updateInput, *deletionCandidate) {
	return func(in *updateInput, _ *deletionCandidate) { in.State.Members[0].Annotations[key] = value }
}

func says(conditionType string, status metav1.ConditionStatus) func(*updateInput, *deletionCandidate) {
	return func(_ *updateInput, c *deletionCandidate) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: conditionType, Status: status})
	}
}

func updateTexts(p reconciler.Plan) []string {
	var out []string
	for _, q := range p.Reads {
		out = append(out, "ask: "+q.String())
	}
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	if p.Recheck > 0 {
		out = append(out, "recheck: "+p.Recheck.String())
	}
	return out
}

func TestBegin(t *testing.T) { // IP-11
	ask := []string{"ask: whether Machine m1 can be updated in place"}
	for name, tc := range map[string]struct {
		changes []func(*updateInput, *deletionCandidate)
		want    []string
		whyNot  string
	}{
		"not known yet":            {nil, ask, ""},
		"the gate is off":          {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) { in.Enabled = false }}, nil, ""},
		"up to date":               {[]func(*updateInput, *deletionCandidate){func(_ *updateInput, c *deletionCandidate) { c.Outdated = false }}, nil, ""},
		"not healthy":              {[]func(*updateInput, *deletionCandidate){func(_ *updateInput, c *deletionCandidate) { c.Unhealthy = true }}, nil, ""},
		"enough are up to date":    {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) { in.UpToDate = 2 }}, nil, ""},
		"a person wants it gone":   {[]func(*updateInput, *deletionCandidate){annotated(clusterv1.DeleteMachineAnnotation, "")}, nil, ""},
		"to be remediated":         {[]func(*updateInput, *deletionCandidate){annotated(clusterv1.RemediateMachineAnnotation, "")}, nil, ""},
		"a health check failed":    {[]func(*updateInput, *deletionCandidate){says(clusterv1.MachineHealthCheckSucceededCondition, "False")}, nil, ""},
		"a health check succeeded": {[]func(*updateInput, *deletionCandidate){says(clusterv1.MachineHealthCheckSucceededCondition, "True")}, ask, ""},
		"it is remediated":         {[]func(*updateInput, *deletionCandidate){says(clusterv1.MachineOwnerRemediatedCondition, "False")}, nil, ""},
		"its age makes it outdated, too": {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) {
			in.Reasons["m1"] = append(in.Reasons["m1"], rolloutReason{Cause: rolloutAfter})
		}}, nil, ""},
		"its certificates make it outdated": {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) {
			in.Reasons["m1"] = []rolloutReason{{Cause: rolloutCertificateExpiry}}
		}}, nil, ""},
		"no Node":                   {[]func(*updateInput, *deletionCandidate){func(_ *updateInput, c *deletionCandidate) { c.Status.NodeRef.Name = "" }}, nil, ""},
		"no bootstrap data":         {[]func(*updateInput, *deletionCandidate){func(_ *updateInput, c *deletionCandidate) { c.Spec.Bootstrap.DataSecretName = nil }}, nil, ""},
		"no KubeadmConfig":          {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) { in.Configs = nil }}, nil, ""},
		"no infrastructure machine": {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) { in.State.Clones = &clone.Clones{} }}, nil, ""},
		"no template":               {[]func(*updateInput, *deletionCandidate){func(in *updateInput, _ *deletionCandidate) { in.Template.Object = contract.Object{} }}, nil, ""},
		"covered": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{Handler: "h.x", Covered: true})},
			[]string{"do: update Machine m1 in place: Version v1.35.0, v1.36.0 required; handler h.x makes all changes"}, ""},
		"not covered": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{Handler: "h.x", Uncovered: "Machine spec.version"})}, nil,
			"; not in place, since handler h.x does not change Machine spec.version"},
		"refused": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{Uncovered: "spec.backend: backend cannot be changed"})}, nil,
			"; not in place, since the API server refuses that: spec.backend: backend cannot be changed"},
		"no extension": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{})}, nil, ""},
		"no answer": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{Problem: fault.New(fault.Unreachable, "X", "handler h.x: HTTP 502")})}, []string{
			"wait: Machine m1 is neither updated nor replaced until it is known whether it can be updated in place: handler h.x: HTTP 502; retrying", "recheck: 30s",
		}, ""},
		"not callable yet": {[]func(*updateInput, *deletionCandidate){answered(inplace.UpdateCheck{CallAfter: time.Second})}, []string{
			"wait: Waiting for the extension that says whether Machine m1 can be updated in place to be callable", "recheck: 1s",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, c := updateOutdated(tc.changes...)
			var p reconciler.Plan
			if handled := in.beginUpdate(c, &p); handled != (len(tc.want) > 0) {
				t.Errorf("handled %v", handled)
			}
			if diff := cmp.Diff(tc.want, updateTexts(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := in.notInPlaceReason("m1"); got != tc.whyNot {
				t.Errorf("why not: %q", got)
			}
		})
	}
}

func TestOngoing(t *testing.T) { // IP-04
	begun := annotated(clusterv1.UpdateInProgressAnnotation, "")
	pending := annotated(runtimev1.PendingHooksAnnotation, "UpdateMachine")
	for name, tc := range map[string]struct {
		changes []func(*updateInput, *deletionCandidate)
		written bool
		want    []string
	}{
		"none":            {nil, false, nil},
		"begun":           {[]func(*updateInput, *deletionCandidate){begun}, false, []string{"do: update Machine m1 in place: it was begun", "recheck: 2s"}},
		"just written":    {[]func(*updateInput, *deletionCandidate){begun}, true, []string{"recheck: 2s"}},
		"updating":        {[]func(*updateInput, *deletionCandidate){begun, pending}, false, []string{"wait: Waiting for the in-place update of Machine m1 to end"}},
		"ending":          {[]func(*updateInput, *deletionCandidate){pending}, false, []string{"wait: Waiting for the in-place update of Machine m1 to end"}},
		"being deleted":   {[]func(*updateInput, *deletionCandidate){begun, func(in *updateInput, _ *deletionCandidate) { in.State.Members[0].Deleted = true }}, false, nil},
		"the gate is off": {[]func(*updateInput, *deletionCandidate){begun, func(in *updateInput, _ *deletionCandidate) { in.Enabled = false }}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := updateOutdated(tc.changes...)
			var p reconciler.Plan
			if ongoing := in.continueUpdate(func(machines.OwnedMachine) bool { return tc.written }, &p); ongoing != (len(tc.want) > 0) {
				t.Errorf("ongoing %v", ongoing)
			}
			if diff := cmp.Diff(tc.want, updateTexts(p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	got := updateEvents(reconciler.Outcome{Done: []reconciler.Action{machines.DeleteMachines{}, inPlaceUpdate{Machine: "m1", Why: "it was begun"}}, Failed: inPlaceUpdate{Machine: "m2"},
		Err: fault.New(fault.Invalid, "X", "backend cannot be changed")})
	want := []string{"Normal UpdatingInPlace: In-place update of Machine m1 begins: it was begun",
		"Warning FailedInPlaceUpdate: In-place update of Machine m2 cannot begin: backend cannot be changed; retrying"}
	var texts []string
	for _, e := range got {
		texts = append(texts, e.Type+" "+e.Reason+": "+e.Message)
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
