package rbac

import (
	"cmp"
	"embed"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/manifest"
	"github.com/slipwayhq/slipway/internal/providerset"
)

//go:embed *.yaml
var manifests embed.FS

const (
	// User is the identity of the process that runs the manager, and of the controllers if providers have no identities
	// of their own. Package controlplane issues certificates for the same name (certificates.go).
	User = "slipway:manager"

	// ServiceAccount is the identity, in Namespace, of a manager that runs several providers in the cluster. The
	// ServiceAccount of a single provider has the name of its ClusterRole.
	ServiceAccount = "slipway-manager"

	// ClusterOperator is the ClusterRole of users who decide which programs run on hosts and in nodes. It is not
	// aggregated into other roles.
	ClusterOperator = "slipway-cluster-operator"

	// Namespace contains the manager's own objects. Package managementnode repeats the name.
	Namespace = "slipway-system"

	// aggregated is the ClusterRole that aggregates the core's permissions for provider kinds.
	aggregated = "slipway-manager"

	// machinesOfProviders is the aggregated ClusterRole of the provider control-plane-kubeadm.
	machinesOfProviders = "slipway-control-plane-kubeadm-providers"

	// processRole is the Role of a manager's process in Namespace.
	processRole = "slipway-process"

	// planesRole is the Role for running hosted control planes as Pods in Namespace.
	planesRole = "slipway-control-planes"
)

// Rights selects the identities and their roles. `slipway up`, `slipway manager --print-roles` and package release fill
// it in.
type Rights struct {
	// Sets are the providers that run. Nil: all.
	Sets []providerset.Set
	// Separate gives the controllers of each provider an identity of their own, [Rights.UserOf]. Otherwise one
	// identity, User or a ServiceAccount, has the roles of all.
	Separate bool
	// PodNamespace is the namespace in which the manager of a release runs as Pods. Its only identity is a
	// ServiceAccount, and the roles of users are installed with the core. Empty: the manager does not run in Pods of a
	// release.
	PodNamespace string
	// HostedInPods is set if hosted control planes run as Pods in the namespace, as in a release.
	HostedInPods bool
}

func (r Rights) namespace() string { return cmp.Or(r.PodNamespace, Namespace) }

// UserOf returns the identity of a provider's controllers.
func (r Rights) UserOf(set providerset.Name) string {
	if r.Separate {
		return User + ":" + string(set)
	}
	return User
}

// RoleOf returns the name of the ClusterRole of a provider's controllers. Package release also names the components of
// a provider by it, so it must not change.
func RoleOf(set providerset.Name) string { return "slipway-" + string(set) }

func (r Rights) sets() []providerset.Set {
	if r.Sets == nil {
		return providerset.All()
	}
	return r.Sets
}

// ServiceAccount returns the name of the ServiceAccount of a manager with a single identity. Package release runs the
// manager under it.
func (r Rights) ServiceAccount() string {
	if sets := r.sets(); len(sets) == 1 {
		return RoleOf(sets[0].Name)
	}
	return ServiceAccount
}

// Objects returns all objects, the namespace first. They can be applied in this order. `slipway up` applies them at
// each start and `slipway status` compares them with the cluster; package release writes them into manifests, and
// `slipway manager --print-roles` prints them. The permissions are in the YAML files of this folder; tests compare them
// with the lists in testdata.
func Objects(r Rights) ([]*unstructured.Unstructured, error) {
	out, err := unstructuredOf(&corev1.Namespace{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: r.namespace()}})
	if err != nil {
		return nil, err
	}
	for _, name := range r.sharedManifests() {
		objects, err := read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	bindings := r.bindings()
	for _, set := range r.sets() {
		var roles []*unstructured.Unstructured
		if len(set.Controllers) > 0 {
			if roles, err = read(string(set.Name)); err != nil {
				return nil, err
			}
		}
		process, err := r.processClusterRole(set, roles)
		if err != nil {
			return nil, err
		}
		generated, err := unstructuredOf(process)
		if err != nil {
			return nil, err
		}
		out = append(append(out, roles...), generated...)
	}
	bound, err := unstructuredOf(append([]runtime.Object{r.homeRole()}, bindings...)...)
	if err != nil {
		return nil, err
	}
	policies, err := r.identityPolicies()
	return slices.Concat(out, bound, policies), err
}

// sharedManifests returns the names of the manifests that belong to no single provider.
func (r Rights) sharedManifests() []string {
	core := providerset.Contains(r.sets(), providerset.Core)
	switch {
	case core:
		return []string{"users", "manager", "classes", "credentials"}
	case r.PodNamespace == "":
		return []string{"users"}
	}
	return nil
}

// read returns the objects of a manifest.
func read(name string) ([]*unstructured.Unstructured, error) {
	content, err := manifests.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("reading roles: %w", err)
	}
	objects, err := manifest.Objects(content)
	if err != nil {
		return nil, fmt.Errorf("reading config/rbac/%s.yaml: %w", name, err)
	}
	return objects, nil
}

func unstructuredOf(objects ...runtime.Object) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("preparing roles: %w", err)
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(content, "spec")
		unstructured.RemoveNestedField(content, "status")
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, nil
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
