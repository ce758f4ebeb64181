package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

func newRestoration(t testing.TB) *restoration {
	t.Helper()
	converter, err := conversion.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &restoration{converter: converter}
}

// written is the request of a client that writes an object of an older version with what the annotation says, and the object
// as it would be stored; before is as it is stored, or nil.
func written(t testing.TB, r *restoration, spoke client.Object, data string, before runtime.Object) (ctrladmission.Request, runtime.Object) {
	t.Helper()
	kinds, _, err := r.converter.Scheme().ObjectKinds(spoke)
	if err != nil {
		t.Fatal(err)
	}
	spoke = spoke.DeepCopyObject().(client.Object)
	spoke.GetObjectKind().SetGroupVersionKind(kinds[0])
	if data != "" {
		spoke.SetAnnotations(map[string]string{"cluster.x-k8s.io/conversion-data": data})
	}
	hub, err := r.converter.Convert(spoke, conversion.HubVersion)
	if err != nil {
		t.Fatal(err)
	}
	raw := func(o runtime.Object) runtime.RawExtension {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	stored := kinds[0].GroupKind().WithVersion(conversion.HubVersion)
	req := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(stored), RequestKind: new(metav1.GroupVersionKind(kinds[0])), Object: raw(hub),
		Resource: metav1.GroupVersionResource{Group: stored.Group, Version: stored.Version, Resource: strings.ToLower(stored.Kind) + "s"},
	}}
	if before != nil {
		before.GetObjectKind().SetGroupVersionKind(stored)
		req.OldObject = raw(before)
	}
	return req, hub
}

// oldConfigs returns a template of the older version with an argument for the kubelet.
func oldConfigs() *bootstrapv1beta1.KubeadmConfigTemplate {
	o := &bootstrapv1beta1.KubeadmConfigTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t"}}
	o.Spec.Template.Spec.JoinConfiguration = &bootstrapv1beta1.JoinConfiguration{
		NodeRegistration: bootstrapv1beta1.NodeRegistrationOptions{KubeletExtraArgs: map[string]string{"v": "2"}},
	}
	return o
}

const (
	argumentTwice = `{"spec":{"template":{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[
		{"name":"v","value":"1"},{"name":"v","value":"2"}]}}}}}}`
	// timeoutOf has a field that the older version has no place for.
	timeoutOf = `{"spec":{"template":{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[
		{"name":"v","value":"2"}]},"timeouts":{"kubeletHealthCheckSeconds":%d}}}}}}`
)

// CV-01: what the annotation brings is judged by the schema of the stored version; what is stored already is not.
func TestRestored(t *testing.T) {
	r := newRestoration(t)
	stored := func(seconds int32) runtime.Object {
		_, hub := written(t, r, oldConfigs(), fmt.Sprintf(timeoutOf, seconds), nil)
		return hub
	}
	nameless := oldConfigs()
	nameless.Spec.Template.Spec.ClusterConfiguration = &bootstrapv1beta1.ClusterConfiguration{APIServer: bootstrapv1beta1.APIServer{
		ControlPlaneComponent: bootstrapv1beta1.ControlPlaneComponent{ExtraArgs: map[string]string{"": "x"}},
	}}
	for name, tc := range map[string]struct {
		reason string
		spoke  *bootstrapv1beta1.KubeadmConfigTemplate
		data   string
		before runtime.Object
		want   []string
	}{
		"honest":           {"as it was read", oldConfigs(), fmt.Sprintf(timeoutOf, 7200), nil, nil},
		"no annotation":    {"the fields of the older version alone", oldConfigs(), "", nil, nil},
		"bound":            {"", oldConfigs(), fmt.Sprintf(timeoutOf, -1), nil, []string{"timeouts.kubeletHealthCheckSeconds"}},
		"rule":             {"", oldConfigs(), argumentTwice, nil, []string{"kubeletExtraArgs"}},
		"own field":        {"the older version has no such bound", nameless, "", nil, nil},
		"rule behind it":   {"an own field that is wrong hides nothing", nameless, argumentTwice, nil, []string{"kubeletExtraArgs"}},
		"changed to wrong": {"", oldConfigs(), fmt.Sprintf(timeoutOf, -1), stored(7200), []string{"timeouts.kubeletHealthCheckSeconds"}},
		"wrong already":    {"it stays as it is", oldConfigs(), fmt.Sprintf(timeoutOf, -1), stored(-1), nil},
		"wrong otherwise":  {"another value is a change", oldConfigs(), fmt.Sprintf(timeoutOf, -2), stored(-1), []string{"timeouts.kubeletHealthCheckSeconds"}},
	} {
		req, hub := written(t, r, tc.spoke, tc.data, tc.before)
		errs, err := r.violations(t.Context(), req, hub)
		if err != nil || len(errs) != len(tc.want) {
			t.Errorf("%s: got %v, %v; want %q (%s)", name, errs, err, tc.want, tc.reason)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(errs[i].Field, want) {
				t.Errorf("%s: got %v, want %s (%s)", name, errs[i], want, tc.reason)
			}
		}
		req.RequestKind.Version = conversion.HubVersion
		if errs, err := r.violations(t.Context(), req, hub); err != nil || len(errs) > 0 {
			t.Errorf("%s: the API server has judged the stored version itself; got %v, %v", name, errs, err)
		}
	}
}

// The rules of the stored version are too costly for what only the older version allows: such an object is refused where
// there is something from the annotation, and is as welcome as ever where there is not.
func TestRestoredOfMany(t *testing.T) {
	r := newRestoration(t)
	many := oldConfigs()
	for i := range 3000 {
		many.Spec.Template.Spec.JoinConfiguration.NodeRegistration.KubeletExtraArgs[fmt.Sprintf("a%d", i)] = "x"
	}
	req, hub := written(t, r, many, "", nil)
	if errs, err := r.violations(t.Context(), req, hub); err != nil || len(errs) > 0 {
		t.Errorf("no annotation: got %v, %v", errs, err)
	}
	req, hub = written(t, r, many, fmt.Sprintf(timeoutOf, 7200), nil)
	if errs, err := r.violations(t.Context(), req, hub); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("an annotation: got %v, %v", errs, err)
	}
}

// What cannot be judged is refused.
func TestRestoredUnjudged(t *testing.T) {
	r := newRestoration(t)
	req, hub := written(t, r, oldConfigs(), argumentTwice, nil)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if errs, err := r.violations(ctx, req, hub); err == nil {
		t.Errorf("no rule was evaluated, got %v", errs)
	}
	req.Resource.Resource = "others"
	if errs, err := r.violations(t.Context(), req, hub); err == nil {
		t.Errorf("there is no schema, got %v", errs)
	}
}

// CV-01: every kind of several versions has a webhook, and its older versions are judged.
func TestEveryVersionIsJudged(t *testing.T) {
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	r := newRestoration(t)
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	several := 0
	for _, crd := range list {
		if len(crd.Spec.Versions) < 2 {
			continue
		}
		several++
		gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: conversion.HubVersion, Resource: crd.Spec.Names.Plural}
		if r.schemas[metav1.GroupVersionResource(gvr)] == nil {
			t.Errorf("%s is not stored in %s", crd.Name, conversion.HubVersion)
		}
		for _, v := range crd.Spec.Versions {
			for name := range v.Schema.OpenAPIV3Schema.Properties { // the webhook is called for changes of these
				if !slices.Contains([]string{"apiVersion", "kind", "metadata", "spec", "status"}, name) {
					t.Errorf("%s has the part %s in %s", crd.Name, name, v.Name)
				}
			}
		}
		found := false
		for _, k := range kinds() {
			found = found || k.resource == gvr && strings.Contains(k.touches(0), "requestKind")
		}
		if !found {
			t.Errorf("%s has no webhook for its older versions", crd.Name)
		}
	}
	if several < 15 {
		t.Errorf("%d kinds have several versions", several)
	}
}

// BenchmarkRestored is what a write of an older version costs beside its conversion: of an object that is in order, of one that
// is not, and, once in the life of a process, of the schema.
func BenchmarkRestored(b *testing.B) {
	r := newRestoration(b)
	deployment := &clusterv1beta1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	deployment.Spec.ClusterName, deployment.Spec.Template.Spec.ClusterName = "c", "c"
	deployment.Spec.Template.Spec.Bootstrap.DataSecretName = new("s")
	deployment.Spec.Template.Spec.InfrastructureRef.Kind, deployment.Spec.Template.Spec.InfrastructureRef.Name = "LocalMachineTemplate", "x"
	deployment.Spec.Template.Spec.InfrastructureRef.APIVersion = "infrastructure.slipway.dev/v1alpha1"
	for name, tc := range map[string]struct {
		spoke client.Object
		data  string
	}{
		"no annotation":               {oldConfigs(), ""},
		"MachineDeployment":           {deployment, `{"spec":{"paused":false}}`},
		"KubeadmConfigTemplate":       {oldConfigs(), fmt.Sprintf(timeoutOf, 7200)},
		"KubeadmConfigTemplate/wrong": {oldConfigs(), argumentTwice},
	} {
		req, hub := written(b, r, tc.spoke, tc.data, nil)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if errs, err := r.violations(b.Context(), req, hub); err != nil || (len(errs) > 0) != strings.HasSuffix(name, "wrong") {
					b.Fatal(errs, err)
				}
			}
		})
	}
	for _, gvr := range []schema.GroupVersionResource{
		clusterv1.GroupVersion.WithResource("clusterclasses"), bootstrapv1.GroupVersion.WithResource("kubeadmconfigtemplates"),
	} {
		b.Run("compile/"+gvr.Resource, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := newRestoration(b)
				if err := r.read(); err != nil {
					b.Fatal(err)
				}
				if _, err := r.schemas[metav1.GroupVersionResource(gvr)].Rules(b.Context(), map[string]any{}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
