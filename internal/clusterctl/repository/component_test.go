package repository_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

const file = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: acmeclusters.infrastructure.cluster.x-k8s.io
  annotations: {cert-manager.io/inject-ca-from: capa-system/capa-serving-cert}
  labels: {cluster.x-k8s.io/v1beta2: v1beta2}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AcmeCluster}
  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: capa-webhook, namespace: capa-system, path: /convert}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmeidentities.infrastructure.cluster.x-k8s.io}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AcmeIdentity}
  scope: Cluster
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AcmeIdentity
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: capa-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: capa-manager, namespace: capa-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: capa-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: capa-manager}
subjects:
- {kind: ServiceAccount, name: capa-manager, namespace: capa-system}
- {kind: Group, name: everyone, apiGroup: rbac.authorization.k8s.io}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: capa-controller-manager, namespace: capa-system}
spec:
  template:
    spec:
      initContainers: [{name: prepare, image: "registry.example/capa/tool:v1"}]
      containers:
      - name: manager
        image: registry.example/capa/manager:v1
        args: ["--feature-gates=MachinePool=${EXP_MACHINE_POOL:=true}", "--region=${REGION}"]
      - {name: proxy, image: "registry.example/capa/tool:v1"}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: capa-serving-cert, namespace: capa-system}
spec: {dnsNames: [capa-webhook.capa-system.svc, capa-webhook.capa-system.svc.cluster.local, other.example]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: capa, annotations: {cert-manager.io/inject-ca-from: capa-system/capa-serving-cert}}
webhooks:
- {name: a, clientConfig: {service: {name: capa-webhook, namespace: capa-system}}}
- {name: b, clientConfig: {url: "https://else.example"}}
`

func componentAcme() provider.Provider {
	return provider.Provider{Name: "acme", Type: provider.Infrastructure, URL: "memory"}
}

func options(values map[string]string) repository.ComponentOptions {
	return repository.ComponentOptions{Lookup: func(name string) (string, bool) { v, ok := values[name]; return v, ok }}
}

// components loads a components file of a repository.
func components(t *testing.T, text string, o repository.ComponentOptions) (*repository.Components, error) {
	t.Helper()
	r := repository.Memory{Components: "infrastructure-components.yaml", Files: map[string]map[string]string{"v1.0.0": {"infrastructure-components.yaml": text}}}
	return repository.LoadComponents(t.Context(), repository.New(componentAcme(), r, repository.Options{}), "v1.0.0", o)
}

func load(t *testing.T, o repository.ComponentOptions) *repository.Components {
	t.Helper()
	c, err := components(t, file, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func find(t *testing.T, c *repository.Components, kind string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(c.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	if i < 0 {
		t.Fatalf("there is no %s", kind)
	}
	return c.Objects[i]
}

func text(t *testing.T, c *repository.Components) string {
	t.Helper()
	data, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// CC2-08, CC2-14: everything is in the target namespace and has the labels, whatever namespace the file has.
func TestTargetNamespace(t *testing.T) {
	c := load(t, repository.ComponentOptions{TargetNamespace: "elsewhere", Lookup: options(map[string]string{"REGION": "r"}).Lookup})
	if c.TargetNamespace != "elsewhere" {
		t.Error(c.TargetNamespace)
	}
	all := text(t, c)
	if strings.Contains(all, "capa-system") {
		t.Errorf("the namespace of the file is left:\n%s", all)
	}
	for _, want := range []string{
		"cert-manager.io/inject-ca-from: elsewhere/capa-serving-cert", "- capa-webhook.elsewhere.svc\n", "- capa-webhook.elsewhere.svc.cluster.local",
		"- other.example", "url: https://else.example", "cluster.x-k8s.io/v1beta2: v1beta2",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	for _, o := range c.Objects {
		scoped := slices.Contains([]string{"Deployment", "ServiceAccount", "Certificate"}, o.GetKind())
		if (o.GetNamespace() == "elsewhere") != scoped || !scoped && o.GetNamespace() != "" {
			t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
		}
		value, ok := o.GetLabels()["clusterctl.cluster.x-k8s.io"]
		if !ok || value != "" || o.GetLabels()["cluster.x-k8s.io/provider"] != "infrastructure-acme" {
			t.Errorf("%s %s has the labels %v", o.GetKind(), o.GetName(), o.GetLabels())
		}
	}
	binding := find(t, c, "ClusterRoleBinding")
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	want := []any{
		map[string]any{"kind": "ServiceAccount", "name": "capa-manager", "namespace": "elsewhere"},
		map[string]any{"kind": "Group", "name": "everyone", "apiGroup": "rbac.authorization.k8s.io"},
	}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Error(diff)
	}
}

// CC2-08: the namespace of the file is the default; a file without one gets it.
func TestNamespaces(t *testing.T) {
	const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
	namespace := func(name string) string {
		return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n"
	}
	cases := map[string]struct{ reason, data, target, want, says string }{
		"of the file":   {"the default", account + namespace("a"), "", "a", ""},
		"chosen":        {"the choice wins", account + namespace("a"), "b", "b", ""},
		"none":          {"it is added", account, "b", "b", ""},
		"none at all":   {"the flag is named", account, "", "", "--target-namespace"},
		"two":           {"which one?", account + namespace("a") + namespace("b"), "c", "", "more than one Namespace: a and b"},
		"no name":       {"it would be refused later", account, "A_B", "", "not a valid namespace name"},
		"another group": {"a Namespace of another group is none", account + "---\napiVersion: x.example/v1\nkind: Namespace\nmetadata: {name: other}\n", "", "", "--target-namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := components(t, tc.data, repository.ComponentOptions{TargetNamespace: tc.target})
			if tc.says != "" {
				if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "infrastructure-acme v1.0.0") {
					t.Errorf("%v, want %q: %s", err, tc.says, tc.reason)
				}
				return
			}
			if err != nil || c.TargetNamespace != tc.want || c.Objects[0].GetKind() != "Namespace" || c.Objects[0].GetName() != tc.want {
				t.Errorf("%+v, %v, want %s: %s", c, err, tc.want, tc.reason)
			}
		})
	}
}

// CC2-10, CC2-14: variables are replaced, or left where that is wanted; what is missing is named.
func TestVariables(t *testing.T) {
	c := load(t, options(map[string]string{"REGION": "eu", "EXP_MACHINE_POOL": "false"}))
	if all := text(t, c); !strings.Contains(all, "--region=eu") || !strings.Contains(all, "MachinePool=false") {
		t.Error(all)
	}
	raw := options(nil)
	raw.Raw = true
	if all := text(t, load(t, raw)); !strings.Contains(all, "--region=${REGION}") || !strings.Contains(all, "${EXP_MACHINE_POOL:=true}") {
		t.Error(all)
	}
	if len(c.Variables) != 2 || c.Variables[0].Name != "EXP_MACHINE_POOL" || *c.Variables[0].Default != "true" || c.Variables[1].Default != nil {
		t.Errorf("%+v", c.Variables)
	}
	_, err := components(t, file, options(nil))
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "provider infrastructure-acme v1.0.0: no value is set for: REGION") {
		t.Error(err)
	}
}

// A value that makes the file unreadable is not repeated: it may be a password.
func TestValuesAreNotRepeated(t *testing.T) {
	for _, value := range []string{"s3cret\"\n\t: [", "s3cret\"]\n- {"} {
		_, err := components(t, file, options(map[string]string{"REGION": value}))
		if fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "document 7 of the components of infrastructure-acme v1.0.0") || !strings.Contains(err.Error(), "REGION") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// CX-21, CX-04: images are overridden, then listed once each.
func TestComponentImages(t *testing.T) {
	o := options(map[string]string{"REGION": "r"})
	o.AlterImage = func(of, image string) (string, error) {
		if of != "infrastructure-acme" {
			t.Errorf("component %s", of)
		}
		return strings.Replace(image, "registry.example", "mirror.example", 1), nil
	}
	c := load(t, o)
	if diff := cmp.Diff([]string{"mirror.example/capa/manager:v1", "mirror.example/capa/tool:v1"}, c.Images); diff != "" {
		t.Error(diff)
	}
	if all := text(t, c); strings.Contains(all, "registry.example") || strings.Count(all, "mirror.example") != 3 {
		t.Error(all)
	}
	o.AlterImage = func(string, string) (string, error) { return "", errors.New("no") }
	if _, err := components(t, file, o); err == nil {
		t.Error("an error of an override is dropped")
	}
}

// Every kind that makes Pods has its images listed.
func TestImagesOfKinds(t *testing.T) {
	pod := map[string]any{"containers": []any{map[string]any{"name": "a", "image": "x"}}}
	in := func(o map[string]any, path ...string) map[string]any {
		out := map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "a"}}
		if err := unstructured.SetNestedMap(out, o, path...); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for kind, o := range map[string]map[string]any{
		"Deployment": in(pod, "spec", "template", "spec"), "DaemonSet": in(pod, "spec", "template", "spec"), "StatefulSet": in(pod, "spec", "template", "spec"),
		"Job": in(pod, "spec", "template", "spec"), "CronJob": in(pod, "spec", "jobTemplate", "spec", "template", "spec"), "Pod": in(pod, "spec"),
		"ConfigMap": in(pod, "spec"),
	} {
		o["kind"] = kind
		images, err := repository.Images([]*unstructured.Unstructured{{Object: o}}, func(image string) (string, error) { return image, nil })
		if err != nil || (len(images) == 1) != (kind != "ConfigMap") {
			t.Errorf("%s: %v, %v", kind, images, err)
		}
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "spec": "x"}}
	if images, err := repository.Images([]*unstructured.Unstructured{broken}, nil); err != nil || len(images) != 0 {
		t.Errorf("%v, %v", images, err)
	}
}

// Objects are printed with the Namespace first, and installed in an order in which each finds what it needs.
func TestOrder(t *testing.T) {
	c := load(t, options(map[string]string{"REGION": "r"}))
	kinds := func(objects []*unstructured.Unstructured) string {
		var out []string
		for _, o := range objects {
			out = append(out, o.GetKind())
		}
		return strings.Join(out, " ")
	}
	printed := "Namespace Certificate CustomResourceDefinition CustomResourceDefinition AcmeIdentity ServiceAccount ClusterRoleBinding Deployment ValidatingWebhookConfiguration"
	if got := kinds(c.Objects); got != printed {
		t.Errorf("printed: %s", got)
	}
	installed := "Namespace CustomResourceDefinition CustomResourceDefinition ServiceAccount ClusterRoleBinding Certificate AcmeIdentity Deployment ValidatingWebhookConfiguration"
	if got := kinds(repository.InstallOrder(c.Objects)); got != installed {
		t.Errorf("installed: %s", got)
	}
}

// What is wrong with a file is said before anything is installed.
func TestBroken(t *testing.T) {
	for data, want := range map[string]string{
		"":        "no objects",
		"# empty": "no objects",
		"a: b":    "not a valid manifest",
		"kind: [": "not a valid manifest",
		"a: ${B":  "invalid variable",
		strings.ReplaceAll(file, "capa-system/capa-serving-cert", "capa-serving-cert"): "not of the form NAMESPACE/NAME",
	} {
		_, err := components(t, data, options(map[string]string{"REGION": "r"}))
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "infrastructure-acme v1.0.0") {
			t.Errorf("%.20q: %v, want %q", data, err, want)
		}
	}
}

// CC2-01: components are those of a repository.
func TestComponentLoad(t *testing.T) {
	s := repository.New(componentAcme(), repository.Memory{Default: "v1.0.0", Components: "infrastructure-components.yaml", Files: map[string]map[string]string{
		"v1.0.0": {"infrastructure-components.yaml": file},
	}}, repository.Options{})
	c, err := repository.LoadComponents(t.Context(), s, "v1.0.0", options(map[string]string{"REGION": "r"}))
	if err != nil || c.Version != "v1.0.0" || len(c.Objects) != 9 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := repository.LoadComponents(t.Context(), s, "v2.0.0", options(nil)); fault.KindOf(err) != fault.Gone {
		t.Error(err)
	}
	var back map[string]any
	if err := yaml.Unmarshal([]byte(strings.Split(text(t, c), "---\n")[0]), &back); err != nil || back["kind"] != "Namespace" {
		t.Errorf("%v, %v", back, err)
	}
}
