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
func updateOutdated(changes ...func(*snapshot, *memberMachine)) (snapshot, memberMachine) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m1", Annotations: map[string]string{}}}
	m.Spec.Version, m.Spec.Bootstrap.DataSecretName, m.Status.NodeRef.Name = "v1.35.0", new("data"), "n1"
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "m1"}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "KubeadmConfig", Name: "m1"}
	s := snapshot{
		ControlPlane: &controlplanev1.KubeadmControlPlane{}, Settings: Settings{InPlaceUpdates: true},
		Machines: machines.OwnedMachines{{Machine: m}}, Clones: &clone.Clones{Items: map[clone.Key]contract.Object{
			{Kind: "FooMachine", Name: "m1"}: {Unstructured: updateObject("FooMachine", "m1"), Contract: contract.V1Beta2}}},
		Infra: clone.Template{Ref: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "t"},
			Object: contract.Object{Unstructured: updateObject("FooMachineTemplate", "t"), Contract: contract.V1Beta2}},
		InPlace: map[string]inplace.UpdateCheck{},
	}
	s.ControlPlane.Spec.Replicas = new(int32(2))
	c := memberMachine{OwnedMachine: s.Machines[0], Config: &bootstrapv1.KubeadmConfig{}, Reasons: []rolloutReason{{Cause: rolloutVersion, Message: "Version v1.35.0, v1.36.0 required"}}}
	s.Members = []memberMachine{c, {OwnedMachine: machines.OwnedMachine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}}}}
	for _, change := range changes {
		change(&s, &c)
	}
	return s, c
}

func answered(a inplace.UpdateCheck) func(*snapshot, *memberMachine) {
	return func(in *snapshot, _ *memberMachine) { in.InPlace["m1"] = a }
}

func annotated(key, value string) func(*snapshot, *memberMachine) {
	return func(in *snapshot, _ *memberMachine) { in.Machines[0].Annotations[key] = value }
}

func says(conditionType string, status metav1.ConditionStatus) func(*snapshot, *memberMachine) {
	return func(_ *snapshot, c *memberMachine) {
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
		changes []func(*snapshot, *memberMachine)
		want    []string
		whyNot  string
	}{
		"not known yet":            {nil, ask, ""},
		"the gate is off":          {[]func(*snapshot, *memberMachine){func(in *snapshot, _ *memberMachine) { in.Settings.InPlaceUpdates = false }}, nil, ""},
		"up to date":               {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) { c.Reasons = nil }}, nil, ""},
		"not healthy":              {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) { c.Unhealthy = "has no Pod" }}, nil, ""},
		"enough are up to date":    {[]func(*snapshot, *memberMachine){func(in *snapshot, _ *memberMachine) { in.ControlPlane.Spec.Replicas = new(int32(1)) }}, nil, ""},
		"a person wants it gone":   {[]func(*snapshot, *memberMachine){annotated(clusterv1.DeleteMachineAnnotation, "")}, nil, ""},
		"to be remediated":         {[]func(*snapshot, *memberMachine){annotated(clusterv1.RemediateMachineAnnotation, "")}, nil, ""},
		"a health check failed":    {[]func(*snapshot, *memberMachine){says(clusterv1.MachineHealthCheckSucceededCondition, "False")}, nil, ""},
		"a health check succeeded": {[]func(*snapshot, *memberMachine){says(clusterv1.MachineHealthCheckSucceededCondition, "True")}, ask, ""},
		"it is remediated":         {[]func(*snapshot, *memberMachine){says(clusterv1.MachineOwnerRemediatedCondition, "False")}, nil, ""},
		"its age makes it outdated, too": {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) {
			c.Reasons = append(c.Reasons, rolloutReason{Cause: rolloutAfter})
		}}, nil, ""},
		"its certificates make it outdated": {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) {
			c.Reasons = []rolloutReason{{Cause: rolloutCertificateExpiry}}
		}}, nil, ""},
		"no Node":                   {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) { c.Status.NodeRef.Name = "" }}, nil, ""},
		"no bootstrap data":         {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) { c.Spec.Bootstrap.DataSecretName = nil }}, nil, ""},
		"no KubeadmConfig":          {[]func(*snapshot, *memberMachine){func(_ *snapshot, c *memberMachine) { c.Config = nil }}, nil, ""},
		"no infrastructure machine": {[]func(*snapshot, *memberMachine){func(in *snapshot, _ *memberMachine) { in.Clones = &clone.Clones{} }}, nil, ""},
		"no template":               {[]func(*snapshot, *memberMachine){func(in *snapshot, _ *memberMachine) { in.Infra.Object = contract.Object{} }}, nil, ""},
		"covered": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{Handler: "h.x", Covered: true})},
			[]string{"do: update Machine m1 in place: Version v1.35.0, v1.36.0 required; handler h.x makes all changes"}, ""},
		"not covered": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{Handler: "h.x", Uncovered: "Machine spec.version"})}, nil,
			"; no in-place update, because handler h.x does not change Machine spec.version"},
		"refused": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{Uncovered: "spec.backend: backend cannot be changed"})}, nil,
			"; no in-place update, because the API server rejects it: spec.backend: backend cannot be changed"},
		"no extension": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{})}, nil, ""},
		"no answer": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{Problem: fault.New(fault.Unreachable, "X", "handler h.x: HTTP 502")})}, []string{
			"wait: Machine m1 is neither updated nor replaced until it is known whether it can be updated in place: handler h.x: HTTP 502; retrying", "recheck: 30s",
		}, ""},
		"not callable yet": {[]func(*snapshot, *memberMachine){answered(inplace.UpdateCheck{CallAfter: time.Second})}, []string{
			"wait: Waiting to call the extension that determines whether Machine m1 can be updated in place", "recheck: 1s",
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
		changes []func(*snapshot, *memberMachine)
		written bool
		want    []string
	}{
		"none":            {nil, false, nil},
		"begun":           {[]func(*snapshot, *memberMachine){begun}, false, []string{"do: update Machine m1 in place: its update has begun", "recheck: 2s"}},
		"just written":    {[]func(*snapshot, *memberMachine){begun}, true, []string{"recheck: 2s"}},
		"updating":        {[]func(*snapshot, *memberMachine){begun, pending}, false, []string{"wait: Waiting for the in-place update of Machine m1 to end"}},
		"ending":          {[]func(*snapshot, *memberMachine){pending}, false, []string{"wait: Waiting for the in-place update of Machine m1 to end"}},
		"being deleted":   {[]func(*snapshot, *memberMachine){begun, func(in *snapshot, _ *memberMachine) { in.Machines[0].Deleted = true }}, false, nil},
		"the gate is off": {[]func(*snapshot, *memberMachine){begun, func(in *snapshot, _ *memberMachine) { in.Settings.InPlaceUpdates = false }}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := updateOutdated(tc.changes...)
			var p reconciler.Plan
			in.Written = map[string]bool{"m1": tc.written}
			if ongoing := continueUpdate(in, &p); ongoing != (len(tc.want) > 0) {
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
