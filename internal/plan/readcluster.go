package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// listsAtOnce is the number of concurrent lists, and pageSize the maximum number of objects in a response.
const listsAtOnce, pageSize = 8, 500

// ReadCluster copies a management cluster for `slipway plan`: its CRDs, all objects of Cluster API and of its
// providers, and the metadata of the Secrets of clusters. It must not read the content of Secrets. If the client may
// not list a kind in all namespaces, it lists the given namespaces instead.
func ReadCluster(ctx context.Context, c client.Reader, namespaces []string) (Snapshot, error) {
	s := Snapshot{}
	var ours []*apiextensionsv1.CustomResourceDefinition
	crds := &unstructured.UnstructuredList{}
	crds.SetGroupVersionKind(kube.CRDKind().GroupVersion().WithKind(kube.CRDKind().Kind + "List"))
	if err := c.List(ctx, crds); err != nil {
		return s, fmt.Errorf("listing CRDs: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for i := range crds.Items {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crds.Items[i].Object, crd); err != nil {
			return s, fmt.Errorf("reading CRD %s: %w", crds.Items[i].GetName(), err)
		}
		if version := versionOf(crd); version != "" {
			ours = append(ours, crd)
			kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind})
		}
	}
	if len(kinds) == 0 {
		return s, &meta.NoKindMatchError{GroupKind: clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind).GroupKind()}
	}
	s.Kinds = kindsOf(ours)
	var err error
	if s.Objects, s.WithoutHosts, err = listAll(ctx, c, kinds, namespaces); err != nil {
		return s, err
	}
	// Without permission to list Namespaces, every extension is treated as applying to all namespaces.
	spaces, err := pages(ctx, c, corev1.SchemeGroupVersion.WithKind("Namespace"), "")
	if err != nil && !apierrors.IsForbidden(err) {
		return s, err
	}
	s.Objects = append(s.Objects, spaces...)
	secrets, err := secretsOf(ctx, c, namespaces)
	s.Objects = append(s.Objects, secrets...)
	return s, err
}

// versionOf returns the version in which a kind is read: the one that fulfils the contract, or the storage version for
// the other kinds of Cluster API. It is empty for unrelated kinds.
func versionOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if _, version, err := contract.Resolve(crd.Name, crd.Labels); err == nil {
		return version
	}
	if !strings.HasSuffix(crd.Spec.Group, clusterv1.GroupVersion.Group) {
		return ""
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// listAll lists all objects of the kinds concurrently, and returns them in the order of the kinds. It also reports
// whether the client may not list SSHHosts, which are the operator's.
func listAll(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind, namespaces []string) (_ []*unstructured.Unstructured, withoutHosts bool, err error) {
	found := make([][]*unstructured.Unstructured, len(kinds))
	group, ctx := fault.NewGroup(ctx)
	group.SetLimit(listsAtOnce)
	for n, kind := range kinds {
		group.Go(func() (err error) {
			isHost := kind.Group == infrav1.GroupVersion.Group && kind.Kind == "SSHHost"
			in := namespaces
			if isHost {
				in = nil // a part of the hosts would be misleading
			}
			found[n], err = list(ctx, c, kind, in)
			if isHost && apierrors.IsForbidden(err) {
				withoutHosts, err = true, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	return slices.Concat(found...), withoutHosts, nil
}

func list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespaces []string) ([]*unstructured.Unstructured, error) {
	out, err := pages(ctx, c, kind, "")
	if !apierrors.IsForbidden(err) || len(namespaces) == 0 {
		return out, err
	}
	for _, namespace := range namespaces {
		more, err := pages(ctx, c, kind, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func pages(ctx context.Context, c client.Reader, kind schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	next := ""
	for {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if next = page.GetContinue(); next == "" {
			return out, nil
		}
	}
}

// secretsOf returns the Secrets of clusters without their content, or none if the client may not list them. For
// clusters without a control plane object, controllers check whether the Secrets exist.
func secretsOf(ctx context.Context, c client.Reader, namespaces []string) ([]*unstructured.Unstructured, error) {
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	var out []*unstructured.Unstructured
	for _, namespace := range append([]string{""}, namespaces...) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind("SecretList"))
		err := c.List(ctx, page, client.InNamespace(namespace), client.HasLabels{clusterv1.ClusterNameLabel})
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing Secrets: %w", err)
		}
		for i := range page.Items {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&page.Items[i])
			if err != nil {
				return nil, err
			}
			u := &unstructured.Unstructured{Object: content}
			u.SetGroupVersionKind(kind)
			out = append(out, u)
		}
		if namespace == "" {
			break
		}
	}
	return out, nil
}
