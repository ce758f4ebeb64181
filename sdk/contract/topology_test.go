package contract_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

func spec() contract.ControlPlaneSpec {
	return contract.ControlPlaneSpec{
		Version: "v1.36.3", Replicas: new(int32(3)), RolloutAfter: metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)),
		Machines: &contract.ControlPlaneMachines{
			Infrastructure: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "HostTemplate", Name: "host"}, Namespace: "ns", APIVersion: "i/v1",
			Labels:         map[string]string{"a": "b"},
			ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: "Gate"}},
			Deletion:       clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(90)), NodeDeletionTimeoutSeconds: new(int32(0))},
			Taints:         []clusterv1.MachineTaint{{Key: "k", Effect: "NoSchedule", Propagation: "Always"}},
		},
	}
}

func TestControlPlaneSpec(t *testing.T) { // TP-09
	for name, tc := range map[string]struct {
		reason   string
		contract contract.Version
		spec     contract.ControlPlaneSpec
		want     string
	}{
		"all": {"where contract v1beta2 has them", contract.V1Beta2, spec(), `{spec: {
			version: v1.36.3, replicas: 3, rollout: {after: "2026-11-01T12:00:00Z"}, other: kept,
			machineTemplate: {metadata: {labels: {a: b}}, spec: {
				infrastructureRef: {apiGroup: i, kind: HostTemplate, name: host}, readinessGates: [{conditionType: Gate}],
				deletion: {nodeDrainTimeoutSeconds: 90, nodeDeletionTimeoutSeconds: 0}, taints: [{key: k, effect: NoSchedule, propagation: Always}]}}}}`},
		"older contract": {"where contract v1beta1 has them; taints nowhere", contract.V1Beta1, spec(), `{spec: {
			version: v1.36.3, replicas: 3, rolloutAfter: "2026-11-01T12:00:00Z", other: kept,
			machineTemplate: {metadata: {labels: {a: b}}, infrastructureRef: {apiVersion: i/v1, kind: HostTemplate, name: host, namespace: ns},
				readinessGates: [{conditionType: Gate}], nodeDrainTimeout: 1m30s, nodeDeletionTimeout: 0s}}}`},
		"without machines": {"what is not asked for is not set", contract.V1Beta2, contract.ControlPlaneSpec{Version: "v1.36.3"}, `{spec: {version: v1.36.3, other: kept}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, tc.contract, "spec: {other: kept}")
			if err := tc.spec.Set(o); err != nil {
				t.Fatal(err)
			}
			want := object(t, tc.contract, tc.want)
			if diff := cmp.Diff(normal(want.Object), normal(o.Object)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tc.spec.Machines != nil {
				if got, ok := contract.MachineInfrastructure(o).Get(); !ok || got != tc.spec.Machines.Infrastructure {
					t.Errorf("reference %+v", got)
				}
			}
		})
	}
	if err := spec().Set(object(t, contract.V1Beta2, "spec: {machineTemplate: text}")); err == nil {
		t.Error("a field that is no object was accepted")
	}
}

// normal has all numbers as float64.
func normal(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[key] = normal(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normal(v[i])
		}
		return out
	case int64:
		return float64(v)
	}
	return v
}

func TestTemplate(t *testing.T) { // TP-13
	for name, tc := range map[string]struct {
		reason, text string
		want         contract.TemplateContent
		is           bool
	}{
		"all": {"spec and metadata", "{kind: FooTemplate, spec: {template: {metadata: {labels: {a: b}, annotations: {c: d}}, spec: {x: z}}}}",
			contract.TemplateContent{Kind: "Foo", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Spec: map[string]any{"x": "z"}}, true},
		"empty":          {"an object without a spec", "{kind: FooTemplate, spec: {template: {}}}", contract.TemplateContent{Kind: "Foo"}, true},
		"other kind":     {"the suffix is missing", "{kind: Foo, spec: {template: {}}}", contract.TemplateContent{}, false},
		"only a suffix":  {"of no kind", "{kind: Template, spec: {template: {}}}", contract.TemplateContent{}, false},
		"no template":    {"nothing to make anything from", "{kind: FooTemplate, spec: {}}", contract.TemplateContent{}, false},
		"a template, no": {"it is a text", "{kind: FooTemplate, spec: {template: text}}", contract.TemplateContent{}, false},
	} {
		got, is := contract.Template(object(t, contract.V1Beta2, tc.text))
		if diff := cmp.Diff(tc.want, got); diff != "" || is != tc.is {
			t.Errorf("%s: %s: %v (-want +got):\n%s", name, tc.reason, is, diff)
		}
	}
}

func TestFulfilledBy(t *testing.T) { // TP-35
	labels := map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha1_v1alpha2", "cluster.x-k8s.io/v1beta2": "v1"}
	for version, want := range map[string]contract.Version{"v1alpha1": contract.V1Beta1, "v1alpha2": contract.V1Beta1, "v1": contract.V1Beta2, "v2": ""} {
		if got, err := contract.FulfilledBy("foos.example.org", labels, version); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}
