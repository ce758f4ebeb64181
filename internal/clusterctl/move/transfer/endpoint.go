package transfer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Endpoint is the source or target management cluster of a move. Package move reads and writes both through it.
type Endpoint struct {
	Client client.Client
	Writer *kube.Writer
	// Name is "source" or "target", or "management cluster" in a restore; errors contain it.
	Name string
}

// New returns an Endpoint for a client. Package move creates one for the source and one for the target.
func New(name string, c client.Client) *Endpoint {
	return &Endpoint{Client: c, Writer: kube.NewWriter(c, "move"), Name: name}
}

// page is the page size of list requests.
const page = 500

// List lists all objects of a kind, in one namespace or in all if namespace is empty. Package move lists the Clusters
// and SSHHosts of the target with it.
func (s *Endpoint) List(ctx context.Context, k Kind, namespace string) ([]graph.Object, error) {
	return s.list(ctx, k, namespace, func(graph.Object) bool { return true })
}

// list lists the objects of a kind for which keep returns true; keep may trim them. In addition to these, only one page
// is in memory.
func (s *Endpoint) list(ctx context.Context, k Kind, namespace string, keep func(graph.Object) bool) ([]graph.Object, error) {
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

// Read reads all objects that may move, and the Secrets and SSHHosts of other namespaces. secretsOf are the namespaces
// of the infrastructure providers, whose Secrets are read, too. The SSHHosts are read last, because the SSHMachines
// among the other objects decide which are needed.
func (s *Endpoint) Read(ctx context.Context, kinds []Kind, namespace string, secretsOf []string) ([]graph.Object, error) {
	var out []graph.Object
	for _, k := range kinds {
		if isHostKind(k) {
			continue
		}
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
	hosts, err := s.readHosts(ctx, kinds, namespace, out)
	return append(out, hosts...), err
}

// ReadClasses reads the ClusterClasses in other namespaces that the Clusters among the objects use, with their
// templates. Move.readObjects (package move) calls it.
func (s *Endpoint) ReadClasses(ctx context.Context, kinds []Kind, objects []graph.Object) ([]graph.Object, error) {
	var out []graph.Object
	seen := map[graph.ID]bool{}
	get := func(id graph.ID) (*unstructured.Unstructured, error) {
		k := KindOf(kinds, id)
		if seen[id] || k.Kind == "" || !k.Namespaced {
			return nil, nil
		}
		seen[id] = true
		o, err := s.Get(ctx, id, k.Version)
		if err == nil && o != nil {
			out = append(out, graph.Object{Unstructured: o, Marked: k.Marked, MarkedHierarchy: k.MarkedHierarchy})
		}
		return o, err
	}
	for _, cluster := range objects {
		id := graph.ClassOf(cluster.Unstructured)
		if !graph.IDOf(cluster.Unstructured).IsCore(graph.Cluster) || id.Namespace == cluster.GetNamespace() {
			continue
		}
		class, err := get(id)
		if err != nil {
			return nil, err
		}
		if class == nil {
			continue
		}
		for _, template := range graph.References(class) {
			if _, err := get(template); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Providers returns the providers in the inventory; none if it is empty, as in many embedded management clusters.
// Built-in providers are recorded for other programs and excluded; their support is determined by kinds. The plan of a
// move compares the providers of both management clusters.
func (s *Endpoint) Providers(ctx context.Context) ([]graph.Provider, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: managedLabel, Version: "v1alpha3", Kind: "ProviderList"})
	if err := s.Client.List(ctx, list); IsNoMatch(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing the providers of the %s: %w", s.Name, err)
	}
	var out []graph.Provider
	for _, o := range list.Items {
		if provider.IsBuiltIn(&o) {
			continue
		}
		text := func(field string) string { v, _, _ := unstructured.NestedString(o.Object, field); return v }
		out = append(out, graph.Provider{Name: text("providerName"), Type: text("type"), Version: text("version"), Namespace: o.GetNamespace()})
	}
	return out, nil
}

// Identity returns the identity of a management cluster: the UID of its kube-system Namespace. The journal contains
// both identities, so that a move continues only between the same management clusters.
func (s *Endpoint) Identity(ctx context.Context) (types.UID, error) {
	var ns corev1.Namespace
	if err := s.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("reading Namespace %s of the %s: %w", metav1.NamespaceSystem, s.Name, err)
	}
	return ns.UID, nil
}

// Namespaces returns the existing namespaces. The plan of a move lists the namespaces that the target lacks.
func (s *Endpoint) Namespaces(ctx context.Context) (map[string]bool, error) {
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

// Find reads the objects that exist, with one list per kind and namespace. Package move reads the objects of the target
// with it.
func (s *Endpoint) Find(ctx context.Context, ids []graph.ID, version func(graph.ID) string) (map[graph.ID]graph.Object, error) {
	return s.find(ctx, ids, version, func(graph.Object) {})
}

// find is Find with a function that trims each object.
func (s *Endpoint) find(ctx context.Context, ids []graph.ID, version func(graph.ID) string, trim func(graph.Object)) (map[graph.ID]graph.Object, error) {
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

// Get reads an object; it returns nil if the object does not exist.
func (s *Endpoint) Get(ctx context.Context, id graph.ID, version string) (*unstructured.Unstructured, error) {
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

// SetPaused pauses or resumes a Cluster, ClusterClass or SSHHost. To resume, the field or annotation is removed instead
// of set to false. An object that no longer exists is skipped. Package move pauses the source with it, and at the end
// resumes the target.
func (s *Endpoint) SetPaused(ctx context.Context, id graph.ID, version string, paused bool) error {
	live, err := s.Get(ctx, id, version)
	if err != nil || live == nil {
		return err
	}
	return s.Writer.Patch(ctx, live, func(o client.Object) { graph.Pause(o.(*unstructured.Unstructured), paused) })
}

// EnsureNamespace creates a namespace if it does not exist. Package move calls it for the target before it creates
// objects there.
func (s *Endpoint) EnsureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	err := s.Client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return s.Writer.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// FindEntries reads the objects of the entries that exist. Package move reads the present state with it before it
// deletes or restores.
func (s *Endpoint) FindEntries(ctx context.Context, entries []Entry, at func(Entry) graph.ID) (map[graph.ID]graph.Object, error) {
	return s.findTrimmed(ctx, entries, at, func(graph.Object) {})
}

// findTrimmed is FindEntries with a function that trims each object.
func (s *Endpoint) findTrimmed(ctx context.Context, entries []Entry, at func(Entry) graph.ID, trim func(graph.Object)) (map[graph.ID]graph.Object, error) {
	var ids []graph.ID
	versions := map[graph.ID]string{}
	for _, e := range entries {
		ids = append(ids, at(e))
		versions[at(e)] = e.Version
	}
	return s.find(ctx, ids, func(id graph.ID) string { return versions[id] }, trim)
}
