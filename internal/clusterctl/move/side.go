package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/check"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/kube"
)

// managedLabel is on the CRDs of all kinds that clusterctl knows of.
const managedLabel = "clusterctl.cluster.x-k8s.io"

// Kind is a kind of objects that may move.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
	// Marked and MarkedHierarchy are labels of its CRD, see [graph.Object].
	Marked, MarkedHierarchy bool
	// Missing: the target does not serve it in a version that the source serves.
	Missing bool
}

// side is one of the two management clusters.
type side struct {
	client client.Client
	writer *kube.Writer
	name   string
}

func newSide(name string, c client.Client) *side {
	return &side{client: c, writer: kube.NewWriter(c, "move"), name: name}
}

// identity of a management cluster: the UID of a namespace that is created once.
func (s *side) identity(ctx context.Context) (types.UID, error) {
	var ns corev1.Namespace
	if err := s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("reading Namespace %s of the %s: %w", metav1.NamespaceSystem, s.name, err)
	}
	return ns.UID, nil
}

// kinds are those whose CRDs have the label, and Secrets and ConfigMaps, in the newest version that every one of the mappers
// serves.
func (s *side) kinds(ctx context.Context, target meta.RESTMapper) ([]Kind, error) {
	out := []Kind{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true},
	}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(kube.CRDKind())
	if err := s.client.List(ctx, crds, client.HasLabels{managedLabel}); err != nil {
		return nil, fmt.Errorf("listing the kinds of the %s: %w", s.name, err)
	}
	for _, crd := range crds.Items {
		plural, group, _ := strings.Cut(crd.Name, ".")
		served, err := s.client.RESTMapper().KindsFor(schema.GroupVersionResource{Group: group, Resource: plural})
		if isNoMatch(err) {
			continue // not served yet, or any more: it has no objects
		}
		if err != nil {
			return nil, fmt.Errorf("reading the versions of %s: %w", crd.Name, err)
		}
		kind, err := s.kind(served, target)
		if err != nil {
			return nil, err
		}
		_, kind.Marked = crd.Labels[graph.MoveLabel]
		_, kind.MarkedHierarchy = crd.Labels[graph.MoveHierarchyLabel]
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return out, nil
}

// kind chooses one of the versions that the source serves.
func (s *side) kind(served []schema.GroupVersionKind, target meta.RESTMapper) (Kind, error) {
	own, err := s.client.RESTMapper().RESTMapping(served[0].GroupKind(), served[0].Version)
	if err != nil {
		return Kind{}, fmt.Errorf("reading the scope of %s: %w", served[0].Kind, err)
	}
	k := Kind{GroupVersionKind: served[0], Namespaced: own.Scope.Name() == meta.RESTScopeNameNamespace}
	if target == nil {
		return k, nil
	}
	for _, gvk := range served {
		switch _, err := target.RESTMapping(gvk.GroupKind(), gvk.Version); {
		case err == nil:
			k.GroupVersionKind = gvk
			return k, nil
		case !isNoMatch(err):
			return k, fmt.Errorf("reading whether the target has %s: %w", gvk.Kind, err)
		}
	}
	k.Missing = true
	return k, nil
}

func isNoMatch(err error) bool {
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	return errors.As(err, &kind) || errors.As(err, &resource)
}

// list reads all objects of a kind; a namespace that is empty means all.
func (s *side) list(ctx context.Context, k Kind, namespace string) ([]graph.Object, error) {
	const page = 500
	var out []graph.Object
	options := &client.ListOptions{Limit: page}
	if k.Namespaced {
		options.Namespace = namespace
	}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersionKind)
		if err := s.client.List(ctx, list, options); err != nil {
			return nil, fmt.Errorf("listing %s objects of the %s: %w", k.Kind, s.name, err)
		}
		for n := range list.Items {
			out = append(out, graph.Object{Unstructured: &list.Items[n], Marked: k.Marked, MarkedHierarchy: k.MarkedHierarchy})
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// read reads all objects that may move, and the Secrets of further namespaces.
func (s *side) read(ctx context.Context, kinds []Kind, namespace string, secretsOf []string) ([]graph.Object, error) {
	var out []graph.Object
	for _, k := range kinds {
		objects, err := s.list(ctx, k, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
		if k.Group != "" || k.Kind != "Secret" || namespace == "" {
			continue
		}
		for _, other := range secretsOf {
			if other == namespace {
				continue
			}
			if objects, err = s.list(ctx, k, other); err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

// providers are those of the inventory; none: nothing was installed, as in many embedded ones. Those that are built in are recorded
// for other programs: what they serve is judged by kinds.
func (s *side) providers(ctx context.Context) ([]check.Provider, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: managedLabel, Version: "v1alpha3", Kind: "ProviderList"})
	if err := s.client.List(ctx, list); isNoMatch(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing the providers of the %s: %w", s.name, err)
	}
	var out []check.Provider
	for _, o := range list.Items {
		if inventory.BuiltIn(&o) {
			continue
		}
		text := func(field string) string { v, _, _ := unstructured.NestedString(o.Object, field); return v }
		out = append(out, check.Provider{Name: text("providerName"), Type: text("type"), Version: text("version"), Namespace: o.GetNamespace()})
	}
	return out, nil
}
