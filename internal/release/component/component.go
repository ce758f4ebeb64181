package component

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Options say what is released.
type Options struct {
	// Version of the release, for example v0.1.0.
	Version string
	// Image of the manager without a tag; the version is its tag.
	Image string
}

// unit is a Deployment with everything that it needs.
type unit struct {
	Options
	name, namespace string
	// providers is the value of --providers; empty: all of them.
	providers string
	sets      []providerset.Set
}

// Providers are the sets that a release has components for: those with controllers.
func Providers() []providerset.Set {
	var out []providerset.Set
	for _, set := range providerset.All() {
		if len(set.Controllers) > 0 {
			out = append(out, set)
		}
	}
	return out
}

// Of returns the components of one provider, in the order in which they can be applied. All of them are of its namespace, and have
// its label.
func Of(set providerset.Set, o Options) ([]*unstructured.Unstructured, error) {
	name := rbac.RoleOf(set.Name)
	u := unit{Options: o, name: name, namespace: name + "-system", providers: string(set.Name), sets: []providerset.Set{set}}
	if set.Name == providerset.Core {
		u.namespace = manager.Namespace
	}
	objects, err := u.objects()
	if err != nil {
		return nil, fmt.Errorf("components of provider %s: %w", set.Name, err)
	}
	for _, object := range objects {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterv1.ProviderNameLabel] = string(set.Name)
		object.SetLabels(labels)
	}
	return objects, nil
}

// Together returns one manager that runs all providers, the simulated backend among them: without clusterctl, applied as it is.
func Together(o Options) ([]*unstructured.Unstructured, error) {
	u := unit{Options: o, name: rbac.ServiceAccount, namespace: manager.Namespace, sets: providerset.All()}
	objects, err := u.objects()
	if err != nil {
		return nil, fmt.Errorf("components of all providers: %w", err)
	}
	return objects, nil
}

func (u unit) objects() ([]*unstructured.Unstructured, error) {
	rights := rbac.Rights{Sets: u.sets, Pods: u.namespace}
	roles, err := rbac.Objects(rights)
	if err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedStringMap(roles[0].Object, u.namespaceLabels(), "metadata", "labels"); err != nil {
		return nil, err
	}
	served, err := webhook.Objects(webhook.Address{
		Sets: u.sets, MostReplicas: policy.Default().Maxima.Replicas,
		Service: webhook.Service{Namespace: u.namespace, Name: u.service()},
	})
	if err != nil {
		return nil, err
	}
	parts := []runtime.Object{u.serviceAccount(rights.ServiceAccount())}
	for _, o := range served {
		parts = append(parts, o)
	}
	parts = append(parts, u.parts(rights.ServiceAccount())...)
	out := roles
	for _, part := range parts {
		o, err := plain(part)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// namespaceLabels make the API server refuse Pods in the namespace that are less restricted than ours.
func (u unit) namespaceLabels() map[string]string {
	return map[string]string{api.EnforceLevelLabel: string(api.LevelRestricted)}
}

func (u unit) serviceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name},
	}
}

// plain is the object as a manifest has it.
func plain(o runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// YAML is a manifest of the objects.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for n, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if n > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}
