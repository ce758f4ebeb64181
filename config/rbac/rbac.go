// Package rbac holds who may do what: the rights of each provider's controllers, those of the process they run in, those that
// our own providers bring for the core, and roles for people.
//
// Does: gives the manifests in this folder as objects, a file for each provider, and binds the roles to the identities that run them.
//
// Owns: the ClusterRoles, Roles and bindings named slipway-*, and namespace slipway-system where they are.
//
// Never: writes to a cluster.
//
// Read first: [Rights], then cluster-api.yaml and process.go.
package rbac

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/internal/providerset"
)

//go:embed *.yaml
var manifests embed.FS

const (
	// User is the identity of the process that runs the manager. Where providers have no identities of their own, it is
	// that of their controllers, too.
	User = "slipway:manager"

	// ServiceAccount is the identity, in Namespace, of a manager of several providers that runs in the cluster. That of one
	// provider has the name of its ClusterRole.
	ServiceAccount = "slipway-manager"

	// ClusterOperator is the ClusterRole of those who decide what runs on hosts and in nodes. Nothing aggregates it.
	ClusterOperator = "slipway-cluster-operator"

	// Namespace is where the manager keeps its own objects.
	Namespace = "slipway-system"

	// aggregated is the ClusterRole that gathers what the core may do with kinds of providers.
	aggregated = "slipway-manager"

	// machinesOfProviders is the ClusterRole that gathers the same for the provider control-plane-kubeadm.
	machinesOfProviders = "slipway-control-plane-kubeadm-providers"

	// processRole is the Role of a manager's process in Namespace.
	processRole = "slipway-process"

	// planesRole is the Role of who runs hosted control planes as Pods there.
	planesRole = "slipway-control-planes"
)

// Rights says who gets which roles.
type Rights struct {
	// Sets are the providers that run; nil: all.
	Sets []providerset.Set
	// Separate: the controllers of each provider have an identity of their own, [UserOf]. Else one identity, User or a
	// ServiceAccount, has the roles of all.
	Separate bool
	// Pods: the manager runs in Pods of a release, in this namespace. Its identity is a ServiceAccount alone, and the roles of
	// people come with the core.
	Pods string
	// Planes: hosted control planes run as Pods in the namespace, as they do in a release.
	Planes bool
}

func (r Rights) namespace() string { return cmp.Or(r.Pods, Namespace) }

// UserOf is the identity of a provider's controllers.
func (r Rights) UserOf(set providerset.Name) string {
	if r.Separate {
		return User + ":" + string(set)
	}
	return User
}

// RoleOf is the name of the ClusterRole of a provider's controllers.
func RoleOf(set providerset.Name) string { return "slipway-" + string(set) }

func (r Rights) sets() []providerset.Set {
	if r.Sets == nil {
		return providerset.All()
	}
	return r.Sets
}

// ServiceAccount is that of a manager with one identity.
func (r Rights) ServiceAccount() string {
	if sets := r.sets(); len(sets) == 1 {
		return RoleOf(sets[0].Name)
	}
	return ServiceAccount
}

// Objects returns everything, the namespace first. The objects can be applied as they are, in this order.
func Objects(r Rights) ([]*unstructured.Unstructured, error) {
	out, err := unstructuredOf(&corev1.Namespace{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), "Namespace"), ObjectMeta: metav1.ObjectMeta{Name: r.namespace()}})
	if err != nil {
		return nil, err
	}
	for _, name := range r.shared() {
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
		process, err := r.processOf(set, roles)
		if err != nil {
			return nil, err
		}
		generated, err := unstructuredOf(process)
		if err != nil {
			return nil, err
		}
		out = append(append(out, roles...), generated...)
	}
	bound, err := unstructuredOf(append([]runtime.Object{r.home()}, bindings...)...)
	if err != nil {
		return nil, err
	}
	policies, err := r.identityPolicies()
	return slices.Concat(out, bound, policies), err
}

// shared are the manifests that belong to no single provider.
func (r Rights) shared() []string {
	core := providerset.Has(r.sets(), providerset.Core)
	switch {
	case core:
		return []string{"users", "manager", "classes", "credentials"}
	case r.Pods == "":
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
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading config/rbac/%s.yaml: %w", name, err)
		}
		objects = append(objects, object)
	}
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
