// Package rbac holds who may do what: the manager's rights, those that our own providers bring for it, and roles for
// people.
//
// Does: gives the manifests in this folder as objects, and the bindings of the manager's role to whoever runs it.
//
// Owns: the ClusterRoles, Roles and bindings named slipway-*, and namespace slipway-system where they are.
//
// Never: writes to a cluster.
//
// Read first: manager.yaml.
package rbac

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed *.yaml
var manifests embed.FS

const (
	// User is the identity of the manager that `slipway up` runs.
	User = "slipway:manager"

	// ServiceAccount is the identity, in Namespace, of a manager that runs in the cluster.
	ServiceAccount = "slipway-manager"

	// ClusterOperator is the ClusterRole of those who decide what runs on hosts and in nodes. Nothing aggregates it.
	ClusterOperator = "slipway-cluster-operator"

	// Namespace holds the manager's own objects.
	Namespace = "slipway-system"

	// managerRole is the name of the manager's ClusterRole, Role, and bindings.
	managerRole = "slipway-manager"
)

// Objects returns everything, the namespace first, with the manager's roles bound to User and ServiceAccount. The
// objects can be applied as they are, in this order.
func Objects() ([]*unstructured.Unstructured, error) {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	objects := []*unstructured.Unstructured{namespace}
	names, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := manifests.ReadFile(name)
		if err != nil {
			return nil, err
		}
		parsed, err := parse(content)
		if err != nil {
			return nil, fmt.Errorf("reading config/rbac/%s: %w", name, err)
		}
		objects = append(objects, parsed...)
	}
	bound, err := bindings()
	return append(objects, bound...), err
}

func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// bindings gives the manager's roles to whoever runs it.
func bindings() ([]*unstructured.Unstructured, error) {
	managers := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User},
		{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: ServiceAccount},
	}
	everywhere := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: managerRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: managerRole},
		Subjects:   managers,
	}
	atHome := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: managerRole, Namespace: Namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: managerRole},
		Subjects:   managers,
	}
	var objects []*unstructured.Unstructured
	for _, binding := range []any{everywhere, atHome} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(binding)
		if err != nil {
			return nil, fmt.Errorf("binding the manager's roles: %w", err)
		}
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}
