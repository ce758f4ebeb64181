package manager_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// reconciled are the kinds with a controller, each with the least that makes an object of it.
func reconciled() map[string]string {
	const machine = `{clusterName: c, bootstrap: {dataSecretName: d}, infrastructureRef: {apiGroup: i.io, kind: Foo, name: f}}`
	const template = `selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: ` + machine + `}`
	return map[string]string{
		"Cluster":             `{infrastructureRef: {apiGroup: i.io, kind: Foo, name: f}}`,
		"Machine":             machine,
		"MachineSet":          `{clusterName: c, ` + template + `}`,
		"MachineDeployment":   `{clusterName: c, ` + template + `}`,
		"MachinePool":         `{clusterName: c, template: {spec: ` + machine + `}}`,
		"MachineHealthCheck":  `{clusterName: c, selector: {matchLabels: {a: b}}}`,
		"ClusterResourceSet":  `{clusterSelector: {matchLabels: {a: b}}, resources: [{kind: Secret, name: s}]}`,
		"ExtensionConfig":     `{clientConfig: {url: "https://e.example"}}`,
		"KubeadmConfig":       `{format: cloud-config}`,
		"HostedControlPlane":  `{version: v1.36.3}`,
		"EtcdSnapshotPolicy":  `{clusterName: c, schedule: "@daily", destination: {folder: {}}}`,
		"KubeadmControlPlane": `{version: v1.36.3, replicas: 1, machineTemplate: {spec: {infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: t}}}}`,
		"LocalCluster":        `{backend: {simulated: {}}}`,
		"LocalMachine":        `{backend: {simulated: {}}}`,
		"LocalMachinePool":    `{template: {backend: {simulated: {}}}}`,
		"SSHHost":             `{address: 192.0.2.1, user: root, credentialsRef: {name: s}, hostKeys: [k]}`,
		"SSHCluster":          `{controlPlaneEndpoint: {host: 192.0.2.1, port: 6443}}`,
		"SSHMachine":          `{bundle: None}`,
	}
}

// others have conditions and no controller here.
func others() []string {
	return []string{"ClusterClass", "IPAddressClaim", "MachineDrainRule"}
}

// object is an object of any kind.
type object struct{ *unstructured.Unstructured }

// GetConditions implements reconciler.Object.
func (o *object) GetConditions() []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []metav1.Condition
	for _, item := range list {
		var c metav1.Condition
		if m, ok := item.(map[string]any); ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// hasConditions reports whether objects of a version have status.conditions as all new kinds have.
func hasConditions(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
	_, has := v.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
	return v.Storage && has
}

// TestNoKindFailsSilently: whatever its controller cannot read, an object says so, and ceases to when it can.
func TestNoKindFailsSilently(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	c := newClient(t, server)
	all, err := crds.All()
	must(t, err)
	tried := 0
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			spec, ours := reconciled()[kind.Kind]
			if !hasConditions(v) || !ours && slices.Contains(others(), kind.Kind) {
				continue
			}
			if !ours {
				t.Errorf("%s has conditions: add it to one of the two lists", kind.Kind)
				continue
			}
			tried++
			t.Run(kind.Kind, func(t *testing.T) { failsAndRecovers(t, c, kind, spec) })
		}
	}
	if tried != len(reconciled()) {
		t.Errorf("%d kinds were tried of %d", tried, len(reconciled()))
	}
}

func failsAndRecovers(t *testing.T, c client.Client, kind schema.GroupVersionKind, spec string) {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "name": "fails"}}}
	o.SetGroupVersionKind(kind)
	var fields map[string]any
	must(t, yaml.Unmarshal([]byte(spec), &fields))
	o.Object["spec"] = fields
	if kind.Kind == "ExtensionConfig" {
		o.SetNamespace("")
	}
	must(t, c.Create(t.Context(), o))
	at, failed := time.Now(), error(nil)
	r := &reconciler.Reconciler[*object, int]{
		Client: c, Writer: kube.NewWriter(c, "fails"), Now: func() time.Time { return at },
		Controller: reconciler.Controller[*object, int]{
			Name: "fails", New: func() *object { return &object{newOf(kind)} },
			Observe: func(context.Context, *object) (int, error) { return 0, failed },
			Decide:  func(int) reconciler.Plan { return reconciler.Plan{} },
			Report:  func(int, reconciler.Plan, reconciler.Outcome) reconciler.Report { return reconciler.Report{} },
		},
	}
	said := func(err error, later time.Duration) string {
		t.Helper()
		at, failed = at.Add(later), err
		if _, got := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); got != nil && err == nil {
			t.Fatal(got)
		}
		live := &object{newOf(kind)}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), live))
		if found := condition.Set(live.GetConditions()).Get("Reconciled"); found != nil {
			return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
		}
		return ""
	}
	forbidden := errors.New("reading Secret default/s: forbidden")
	if got := said(forbidden, 0) + said(forbidden, time.Minute); got != "False ReconcileFailed: Observing: reading Secret default/s: forbidden; retrying" {
		t.Errorf("an error: %s", got)
	}
	if got := said(nil, 0); got != "" {
		t.Errorf("nothing fails any more: %s", got)
	}
	if got := said(fault.New(fault.Invalid, "NoSuchKind", "%s", strings.Repeat("long ", 9000)), 0); !strings.HasPrefix(got, "False NoSuchKind: Long long") {
		t.Errorf("what a person has to change: %s", got)
	}
}

func newOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}
