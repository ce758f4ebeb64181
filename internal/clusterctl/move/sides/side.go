package sides

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/check"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/portable"
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

// Side is one of the two management clusters.
type Side struct {
	Client client.Client
	Writer *kube.Writer
	// Name is source or target.
	Name string
}

// New returns a side.
func New(name string, c client.Client) *Side {
	return &Side{Client: c, Writer: kube.NewWriter(c, "move"), Name: name}
}

// Kinds are those whose CRDs have the label, and Secrets and ConfigMaps, in the newest version that every one of the mappers
// serves.
func (s *Side) Kinds(ctx context.Context, target meta.RESTMapper) ([]Kind, error) {
	out := []Kind{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true},
	}
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(kube.CRDKind())
	if err := s.Client.List(ctx, crds, client.HasLabels{managedLabel}); err != nil {
		return nil, fmt.Errorf("listing the kinds of the %s: %w", s.Name, err)
	}
	for _, crd := range crds.Items {
		plural, group, _ := strings.Cut(crd.Name, ".")
		served, err := s.Client.RESTMapper().KindsFor(schema.GroupVersionResource{Group: group, Resource: plural})
		if IsNoMatch(err) {
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
func (s *Side) kind(served []schema.GroupVersionKind, target meta.RESTMapper) (Kind, error) {
	own, err := s.Client.RESTMapper().RESTMapping(served[0].GroupKind(), served[0].Version)
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
		case !IsNoMatch(err):
			return k, fmt.Errorf("reading whether the target has %s: %w", gvk.Kind, err)
		}
	}
	k.Missing = true
	return k, nil
}

// IsNoMatch reports whether an API server does not serve a kind.
func IsNoMatch(err error) bool {
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	return errors.As(err, &kind) || errors.As(err, &resource)
}

// List reads all objects of a kind; a namespace that is empty means all.
func (s *Side) List(ctx context.Context, k Kind, namespace string) ([]graph.Object, error) {
	return s.list(ctx, k, namespace, func(graph.Object) bool { return true })
}

// list reads those objects of a kind that are kept, which may be made smaller: a page at a time is in memory besides.
func (s *Side) list(ctx context.Context, k Kind, namespace string, keep func(graph.Object) bool) ([]graph.Object, error) {
	const page = 500
	var out []graph.Object
	options := &client.ListOptions{Limit: page}
	if k.Namespaced {
		options.Namespace = namespace
	}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.GroupVersionKind)
		if err := s.Client.List(ctx, list, options); err != nil {
			return nil, fmt.Errorf("listing %s objects of the %s: %w", k.Kind, s.Name, err)
		}
		for n := range list.Items {
			o := graph.Object{Unstructured: &unstructured.Unstructured{Object: list.Items[n].Object}, Marked: k.Marked, MarkedHierarchy: k.MarkedHierarchy}
			if keep(o) {
				out = append(out, o)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// Read reads all objects that may move, and the Secrets of further namespaces.
func (s *Side) Read(ctx context.Context, kinds []Kind, namespace string, secretsOf []string) ([]graph.Object, error) {
	var out []graph.Object
	for _, k := range kinds {
		objects, err := s.List(ctx, k, namespace)
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
			if objects, err = s.List(ctx, k, other); err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

// Providers are those of the inventory; none: nothing was installed, as in many embedded ones. Those that are built in are recorded
// for other programs: what they serve is judged by kinds.
func (s *Side) Providers(ctx context.Context) ([]check.Provider, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: managedLabel, Version: "v1alpha3", Kind: "ProviderList"})
	if err := s.Client.List(ctx, list); IsNoMatch(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing the providers of the %s: %w", s.Name, err)
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

// Identity of a management cluster: the UID of a namespace that is created once.
func (s *Side) Identity(ctx context.Context) (types.UID, error) {
	var ns corev1.Namespace
	if err := s.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("reading Namespace %s of the %s: %w", metav1.NamespaceSystem, s.Name, err)
	}
	return ns.UID, nil
}

// KindOf is the kind of an object; the zero value: it is none of these.
func KindOf(kinds []Kind, id graph.ID) Kind {
	for _, k := range kinds {
		if k.Group == id.Group && k.Kind == id.Kind {
			return k
		}
	}
	return Kind{}
}

// Namespaces are those that exist.
func (s *Side) Namespaces(ctx context.Context) (map[string]bool, error) {
	var list corev1.NamespaceList
	if err := s.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the namespaces of the %s: %w", s.Name, err)
	}
	out := map[string]bool{}
	for _, ns := range list.Items {
		out[ns.Name] = true
	}
	return out, nil
}

// Find reads those of the objects that exist, with a list for each kind and namespace.
func (s *Side) Find(ctx context.Context, ids []graph.ID, version func(graph.ID) string) (map[graph.ID]graph.Object, error) {
	return s.find(ctx, ids, version, func(graph.Object) {})
}

// find is Find that trims each object.
func (s *Side) find(ctx context.Context, ids []graph.ID, version func(graph.ID) string, trim func(graph.Object)) (map[graph.ID]graph.Object, error) {
	type bundle struct{ group, version, kind, namespace string }
	wanted, lists := map[graph.ID]bool{}, map[bundle]bool{}
	for _, id := range ids {
		wanted[id] = true
		lists[bundle{id.Group, version(id), id.Kind, id.Namespace}] = true
	}
	out := map[graph.ID]graph.Object{}
	for b := range lists {
		k := Kind{Namespaced: b.namespace != ""}
		k.Group, k.Version, k.Kind = b.group, b.version, b.kind
		_, err := s.list(ctx, k, b.namespace, func(o graph.Object) bool {
			if id := graph.IDOf(o.Unstructured); wanted[id] {
				trim(o)
				out[id] = o
			}
			return false
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Get reads an object; nil: there is none.
func (s *Side) Get(ctx context.Context, id graph.ID, version string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(strings.TrimPrefix(id.Group+"/"+version, "/"))
	o.SetKind(id.Kind)
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of the %s: %w", id, s.Name, err)
	}
	return o, nil
}

// SetPaused pauses or resumes a Cluster or ClusterClass; the field or annotation is removed, not false. One that is gone is left
// out.
func (s *Side) SetPaused(ctx context.Context, id graph.ID, version string, paused bool) error {
	live, err := s.Get(ctx, id, version)
	if err != nil || live == nil {
		return err
	}
	return s.Writer.Patch(ctx, live, func(o client.Object) { portable.Pause(o.(*unstructured.Unstructured), paused) })
}

// EnsureNamespace creates a namespace that is missing.
func (s *Side) EnsureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return s.Writer.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// FindEntries reads those of the entries that exist.
func (s *Side) FindEntries(ctx context.Context, entries []Entry, at func(Entry) graph.ID) (map[graph.ID]graph.Object, error) {
	return s.findTrimmed(ctx, entries, at, func(graph.Object) {})
}

// findTrimmed reads those of the entries that exist, each trimmed.
func (s *Side) findTrimmed(ctx context.Context, entries []Entry, at func(Entry) graph.ID, trim func(graph.Object)) (map[graph.ID]graph.Object, error) {
	var ids []graph.ID
	versions := map[graph.ID]string{}
	for _, e := range entries {
		ids = append(ids, at(e))
		versions[at(e)] = e.Version
	}
	return s.find(ctx, ids, func(id graph.ID) string { return versions[id] }, trim)
}
