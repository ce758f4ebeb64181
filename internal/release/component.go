package release

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
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// componentOptions configures the components of all providers in a release. [Write] derives it from [Config].
type componentOptions struct {
	// Version of the release, for example v0.1.0.
	Version string
	// Image of the manager without a tag; the tag is the version.
	Image string
}

// managerWorkload describes the Deployment of a manager (`slipway manager`) and the objects that it needs: for one
// provider, or for all of them.
type managerWorkload struct {
	componentOptions
	name, namespace string
	// providers is the value of --providers. Empty: all providers.
	providers string
	sets      []providerset.Set
}

// Providers returns the provider sets that have components in a release: those with controllers. [Write] writes a
// provider repository for each of them.
func Providers() []providerset.Set {
	var out []providerset.Set
	for _, set := range providerset.All() {
		if len(set.Controllers) > 0 {
			out = append(out, set)
		}
	}
	return out
}

// providerObjects returns the components of one provider, in the order in which they can be applied. All of them have
// the provider label and, if they are namespaced, the provider's namespace. A release contains them as
// TYPE-components.yaml, which clusterctl and `slipway init` install. Both find the objects by the label later, and an
// upgrade replaces objects of the same name: names and label must not change between releases.
func providerObjects(set providerset.Set, o componentOptions) ([]*unstructured.Unstructured, error) {
	name := rbac.RoleOf(set.Name)
	u := managerWorkload{componentOptions: o, name: name, namespace: name + "-system", providers: string(set.Name), sets: []providerset.Set{set}}
	if set.Name == providerset.Core {
		u.namespace = rbac.Namespace
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

// managerObjects returns one manager that runs all providers, including the simulated backend. A release contains it as
// manager.yaml, which users apply with kubectl, without clusterctl.
func managerObjects(o componentOptions) ([]*unstructured.Unstructured, error) {
	u := managerWorkload{componentOptions: o, name: rbac.ServiceAccount, namespace: rbac.Namespace, sets: providerset.All()}
	objects, err := u.objects()
	if err != nil {
		return nil, fmt.Errorf("components of all providers: %w", err)
	}
	return objects, nil
}

// objects returns all objects of a manager, the namespace first: the RBAC rules, CRDs and webhook configurations that
// `slipway up` also installs, the ServiceAccount, and the objects of parts.
func (u managerWorkload) objects() ([]*unstructured.Unstructured, error) {
	rights := rbac.Rights{Sets: u.sets, PodNamespace: u.namespace}
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
		o, err := toUnstructured(part)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// namespaceLabels returns the Pod Security labels that make the API server reject Pods with more privileges.
func (u managerWorkload) namespaceLabels() map[string]string {
	return map[string]string{api.EnforceLevelLabel: string(api.LevelRestricted)}
}

// serviceAccount returns the ServiceAccount of the Pods, to which [rbac.Objects] binds the roles.
func (u managerWorkload) serviceAccount(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name},
	}
}

// toUnstructured returns the object as it appears in a manifest.
func toUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// ComponentsYAML returns a manifest with the objects. Besides the components, it encodes the cluster templates and
// ClusterClasses of a release and of `slipway generate cluster`.
func ComponentsYAML(objects []*unstructured.Unstructured) ([]byte, error) {
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
