package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forgery is a manifest of an older version.
type forgery struct {
	reason   string
	manifest string
	// data is what the annotation of the conversion says that there was; empty: there is none.
	data string
	// want is in the refusal; empty: it is accepted.
	want string
}

const (
	oldTemplate = `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, metadata: {name: NAME, namespace: default},
		spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: "2"}}}}}}}`
	twice = `{"spec":{"template":{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[
		{"name":"v","value":"1"},{"name":"v","value":"2"}]}}}}}}`
	never = `{"spec":{"template":{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[
		{"name":"v","value":"2"}]},"timeouts":{"kubeletHealthCheckSeconds":-1}}}}}}`
	hours = `{"spec":{"template":{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[
		{"name":"v","value":"2"}]},"timeouts":{"kubeletHealthCheckSeconds":7200}}}}}}`

	oldDeployment = `{apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment, metadata: {name: NAME, namespace: default},
		spec: {clusterName: c, replicas: 1, selector: {}, template: {spec: {clusterName: c, nodeDrainTimeout: DRAIN,
			bootstrap: {dataSecretName: s}, infrastructureRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, name: x}}}}}`
)

func forgeries() map[string]forgery {
	drains := func(timeout string) string { return strings.ReplaceAll(oldDeployment, "DRAIN", timeout) }
	arguments := make([]string, 3000)
	for i := range arguments {
		arguments[i] = fmt.Sprintf("a%d: x", i)
	}
	return map[string]forgery{
		"honest":        {"what a client of the older version read and writes again", oldTemplate, hours, ""},
		"no annotation": {"a manifest of the older version", oldTemplate, "", ""},
		"rule":          {"a rule of the stored version", oldTemplate, twice, "kubeletExtraArgs name must be unique"},
		"bound":         {"a bound of the stored version", oldTemplate, never, "kubeletHealthCheckSeconds"},
		"own field":     {"what the older version allows in a field of its own is no forgery", drains("-5s"), "", ""},
		"many": {"more than the rules of the stored version could be evaluated for: there is nothing to judge",
			strings.Replace(oldTemplate, `v: "2"`, strings.Join(arguments, ", "), 1), "", ""},
		"both": {"nor is it beside the annotation", drains("-5s"), `{"spec":{"paused":false}}`, ""},
		"behind an own field": {"what the older version allows hides nothing",
			strings.Replace(oldTemplate, "joinConfiguration: {", `clusterConfiguration: {apiServer: {extraArgs: {"": x}}}, joinConfiguration: {`, 1), twice, "kubeletExtraArgs name must be unique"},
	}
}

// CV-01: the annotation of a conversion is a client's to write, and says nothing that the stored version would not accept.
func testForged(t *testing.T, w *world) {
	for name, tc := range forgeries() {
		t.Run(name, func(t *testing.T) {
			id := "forged-" + strings.ReplaceAll(name, " ", "-")
			o := parse(t, strings.ReplaceAll(tc.manifest, "NAME", id))
			plain := o.DeepCopy()
			if tc.data != "" {
				o.SetAnnotations(map[string]string{"cluster.x-k8s.io/conversion-data": tc.data})
			}
			judge(t, w.client.Create(t.Context(), o.DeepCopy()), tc)
			// The same by an update.
			if err := w.client.Create(t.Context(), plain); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(o.GroupVersionKind())
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), stored); err != nil {
				t.Fatal(err)
			}
			stored.SetAnnotations(o.GetAnnotations())
			stored.SetLabels(map[string]string{"a": "b"})
			judge(t, w.client.Update(t.Context(), stored), tc)
		})
	}
}

func judge(t *testing.T, err error, tc forgery) {
	t.Helper()
	if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
		t.Errorf("want %q, got %v (%s)", tc.want, err, tc.reason)
	}
}

// CV-01: what is stored already is no reason to refuse a change of something else in the older version.
func testForgedBefore(t *testing.T, w *world) {
	if err := w.client.Create(t.Context(), parse(t, strings.NewReplacer("NAME", "before", "DRAIN", "-5s").Replace(oldDeployment))); err != nil {
		t.Fatal(err)
	}
	hub := &clusterv1.MachineDeployment{}
	hub.Name, hub.Namespace = "before", "default"
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	hub.Spec.Paused = new(false) // which is what the annotation is there for
	if err := w.client.Update(t.Context(), hub); err != nil {
		t.Fatal(err)
	}
	old := parse(t, strings.NewReplacer("NAME", "before", "DRAIN", "-5s").Replace(oldDeployment))
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	if old.GetAnnotations()["cluster.x-k8s.io/conversion-data"] == "" {
		t.Fatal("there is no annotation")
	}
	if err := unstructured.SetNestedField(old.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Update(t.Context(), old); err != nil {
		t.Error(err)
	}
}

// CV-01: an update in an older version that changes nothing else is no call, and one in the stored version never is for its schema.
func testForgedCalls(t *testing.T, w *world) {
	o := parse(t, strings.ReplaceAll(oldTemplate, "NAME", "calls"))
	if err := w.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before := w.calls.of("/validate")
	o.SetLabels(map[string]string{"a": "b"})
	if err := w.client.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	hub := &bootstrapv1.KubeadmConfigTemplate{}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), hub); err != nil {
		t.Fatal(err)
	}
	hub.Labels = map[string]string{"a": "c"}
	if err := w.client.Update(t.Context(), hub); err != nil {
		t.Fatal(err)
	}
	if calls := w.calls.of("/validate") - before; calls != 0 {
		t.Errorf("the webhook was called %d times", calls)
	}
}
