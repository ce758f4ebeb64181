package clusterclass

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func ref(kind, version string) clusterv1.ClusterClassTemplateReference {
	return clusterv1.ClusterClassTemplateReference{APIVersion: "example.com/" + version, Kind: kind, Name: "t"}
}

func variable(name, kind string) clusterv1.ClusterClassVariable {
	return clusterv1.ClusterClassVariable{Name: name, Required: new(false), Schema: clusterv1.VariableSchema{
		OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: kind},
	}}
}

var ask = discover{Patch: "p", Extension: "vars.ext"}

// settled is a class whose templates are owned and whose extension has answered.
func settled() snapshot {
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", UID: "u", Generation: 2}}
	class.Spec.Infrastructure.TemplateRef = ref("ClusterTemplate", "v1beta2")
	class.Spec.Variables = []clusterv1.ClusterClassVariable{variable("b", "string")}
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", External: &clusterv1.ExternalPatchDefinition{DiscoverVariablesExtension: "vars.ext"}}}
	class.Status.ObservedGeneration = 1
	template := &unstructured.Unstructured{}
	template.SetOwnerReferences([]metav1.OwnerReference{ownerReference(class)})
	return snapshot{
		Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC), Class: class, RuntimeSDK: true,
		Templates:  []classTemplate{{Ref: class.Spec.Infrastructure.TemplateRef, Object: contract.Object{Unstructured: template}, Newest: "v1beta2"}},
		Discovered: map[discover]discovered{ask: {Variables: []clusterv1.ClusterClassVariable{variable("a", "integer")}}},
	}
}

func TestDecide(t *testing.T) { // CC-01, CC-03, CC-04
	for name, c := range map[string]struct {
		reason string
		change func(*snapshot)
		want   reconciler.Plan
	}{
		"settled": {change: func(*snapshot) {}, want: reconciler.Plan{Recheck: 10 * time.Minute}},
		"extensions are asked first": {
			change: func(s *snapshot) { s.Discovered = nil }, want: reconciler.Plan{Reads: []reconciler.ReadRequest{ask}},
		},
		"Runtime SDK off": {
			reason: "RT-33: extensions are not asked",
			change: func(s *snapshot) { s.Discovered, s.RuntimeSDK = nil, false },
		},
		"a template of others": {
			change: func(s *snapshot) { s.Templates[0].Object.SetOwnerReferences(nil) },
			want:   reconciler.Plan{Actions: []reconciler.Action{own{Ref: ref("ClusterTemplate", "v1beta2")}}, Recheck: 10 * time.Minute},
		},
		"an owner reference of an earlier API version": {
			change: func(s *snapshot) {
				s.Templates[0].Object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "ClusterClass", Name: "c", UID: "u"}})
			},
			want: reconciler.Plan{Actions: []reconciler.Action{own{Ref: ref("ClusterTemplate", "v1beta2")}}, Recheck: 10 * time.Minute},
		},
		"a template that does not exist": {
			change: func(s *snapshot) { s.Templates[0].Object = contract.Object{} },
			want: reconciler.Plan{Recheck: 10 * time.Minute, Waits: []reconciler.Wait{{
				Reason: "TemplateMissing", Message: "Waiting for ClusterTemplate t to be created",
				On: []reconciler.Subject{{Kind: "ClusterTemplate", Name: "t"}}, Until: "change",
			}}},
		},
		"a kind that is not installed": {
			change: func(s *snapshot) { s.Templates[0].Object, s.Templates[0].Problem = contract.Object{}, "install it" },
			want: reconciler.Plan{Recheck: 10 * time.Minute, Waits: []reconciler.Wait{{
				Reason: "TemplateUnreadable", Message: "ClusterTemplate t cannot be read: install it",
				On: []reconciler.Subject{{Kind: "ClusterTemplate", Name: "t"}}, Until: reconciler.UntilUser,
			}}},
		},
		"an extension that fails": {
			change: func(s *snapshot) {
				s.Discovered = map[discover]discovered{ask: {Problem: "handler vars.ext: nothing listens"}}
			},
			want: reconciler.Plan{Recheck: 15 * time.Second, Waits: []reconciler.Wait{{
				Reason: "VariableDiscoveryFailed", Message: "handler vars.ext: nothing listens; retrying in up to 1m",
				On: []reconciler.Subject{{Kind: "ClusterClass", Name: "c"}}, Until: reconciler.UntilTime,
			}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := settled()
			c.change(&s)
			if diff := cmp.Diff(c.want, decide(s)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

func TestReport(t *testing.T) { // CC-02, CC-03, CC-05
	def := func(from, kind string) clusterv1.ClusterClassStatusVariableDefinition {
		return clusterv1.ClusterClassStatusVariableDefinition{From: from, Required: new(false), Schema: variable("", kind).Schema}
	}
	before := []clusterv1.ClusterClassStatusVariable{{Name: "old", DefinitionsConflict: new(false), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{def("inline", "string")}}}
	merged := []clusterv1.ClusterClassStatusVariable{
		{Name: "a", DefinitionsConflict: new(false), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{def("p", "integer")}},
		{Name: "b", DefinitionsConflict: new(false), Definitions: []clusterv1.ClusterClassStatusVariableDefinition{def("inline", "string")}},
	}
	ready := metav1.Condition{Type: "VariablesReady", Status: "True", Reason: "VariablesReady"}
	current := metav1.Condition{Type: "RefVersionsUpToDate", Status: "True", Reason: "RefVersionsUpToDate"}
	failed := func(message string) metav1.Condition {
		return metav1.Condition{Type: "VariablesReady", Status: "False", Reason: "VariableDiscoveryFailed", Message: message}
	}
	for name, c := range map[string]struct {
		reason     string
		change     func(*snapshot)
		variables  []clusterv1.ClusterClassStatusVariable
		conditions []metav1.Condition
		observed   int64
	}{
		"settled": {change: func(*snapshot) {}, variables: merged, conditions: []metav1.Condition{ready, current}, observed: 2},
		"the same definition twice": {
			change: func(s *snapshot) { s.Discovered[ask] = discovered{Variables: s.Class.Spec.Variables} },
			variables: []clusterv1.ClusterClassStatusVariable{{Name: "b", DefinitionsConflict: new(false),
				Definitions: []clusterv1.ClusterClassStatusVariableDefinition{def("inline", "string"), def("p", "string")}}},
			conditions: []metav1.Condition{ready, current}, observed: 2,
		},
		"definitions that differ": {
			change: func(s *snapshot) {
				s.Discovered[ask] = discovered{Variables: []clusterv1.ClusterClassVariable{variable("b", "integer")}}
			},
			variables: []clusterv1.ClusterClassStatusVariable{{Name: "b", DefinitionsConflict: new(true),
				Definitions: []clusterv1.ClusterClassStatusVariableDefinition{def("inline", "string"), def("p", "integer")}}},
			conditions: []metav1.Condition{{Type: "VariablesReady", Status: "True", Reason: "VariablesReady",
				Message: "Variables cannot be set that are defined in different ways: b; make their definitions in the class and its extensions the same, or rename one of them"}, current},
			observed: 2,
		},
		"an extension that fails": {
			reason:    "what was known stays, and Clusters wait",
			change:    func(s *snapshot) { s.Discovered[ask] = discovered{Problem: "handler vars.ext: nothing listens"} },
			variables: before, observed: 1,
			conditions: []metav1.Condition{failed("Handler vars.ext: nothing listens; retrying in up to 1m. Clusters of the class wait until then"), current},
		},
		"an extension with a variable that is not valid": {
			change: func(s *snapshot) {
				s.Discovered[ask] = checked(s.Class, ask, []clusterv1.ClusterClassVariable{variable("builtin", "string")})
			},
			variables: before, observed: 1,
			conditions: []metav1.Condition{failed(`Extension vars.ext defines variables that are not valid: variables[0].name: Invalid value: "builtin": is the name of a predefined variable; choose another name; correct the extension; retrying in up to 1m. Clusters of the class wait until then`), current},
		},
		"an old reference": {
			change:    func(s *snapshot) { s.Templates[0].Ref = ref("ClusterTemplate", "v1beta1") },
			variables: merged, observed: 2,
			conditions: []metav1.Condition{ready, {Type: "RefVersionsUpToDate", Status: "False", Reason: "RefVersionsNotUpToDate",
				Message: "* ClusterTemplate t is referred to in example.com/v1beta1, use example.com/v1beta2"}},
		},
		"a kind that is not installed": {
			change:    func(s *snapshot) { s.Templates[0].Newest, s.Templates[0].Problem = "", "Install it" },
			variables: merged, observed: 2,
			conditions: []metav1.Condition{ready, {Type: "RefVersionsUpToDate", Status: "Unknown", Reason: "InternalError", Message: "Install it"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := settled()
			s.Class.Status.Variables = before
			c.change(&s)
			status := report(s, reconciler.Plan{}, reconciler.Outcome{}).Status.(clusterv1.ClusterClassStatus)
			if diff := cmp.Diff(c.variables, status.Variables); diff != "" {
				t.Errorf("variables, %s (-want +got)\n%s", c.reason, diff)
			}
			if status.ObservedGeneration != c.observed {
				t.Errorf("generation %d is observed, want %d", status.ObservedGeneration, c.observed)
			}
			if diff := cmp.Diff(c.conditions, status.Conditions, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime", "ObservedGeneration")); diff != "" {
				t.Errorf("conditions (-want +got)\n%s", diff)
			}
			ready := condition.Set(status.Conditions).IsTrue(clusterv1.ClusterClassVariablesReadyCondition)
			for _, old := range status.Deprecated.V1Beta1.Conditions {
				if old.Type == clusterv1.ClusterClassVariablesReconciledV1Beta1Condition && (old.Status == "True") != ready {
					t.Errorf("VariablesReconciled is %s", old.Status)
				}
			}
		})
	}
}
