package transfer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
)

// Survey finds objects that a move would leave behind, for its plan. Move.readLeft (package move) creates it.
type Survey struct {
	Source *Endpoint
	// Target is nil if the objects are written to files.
	Target *Endpoint
	// Kinds are the kinds that were read.
	Kinds []Kind
	// Namespace is the namespace that was read; empty for all.
	Namespace string
	// At maps the ID of a selected object to its ID at the target.
	At func(graph.ID) graph.ID

	// others are the kinds of CRDs that were not read.
	others []Kind
}

// LeftBehind returns the namespaced references, owners and dependents of the selection that are neither selected nor
// present at the target.
func (v Survey) LeftBehind(ctx context.Context, g *graph.Graph, s graph.Selection) ([]graph.UnmovedObject, error) {
	if len(s.Levels) == 0 {
		return nil, nil
	}
	others, err := v.Source.otherKinds(ctx)
	if err != nil {
		return nil, err
	}
	v.others = others
	var out []graph.UnmovedObject
	moved := map[types.UID]graph.ID{}
	for _, i := range s.Items() {
		if !i.Copy && i.GetUID() != "" {
			moved[i.GetUID()] = i.ID
		}
	}
	for _, link := range g.UnselectedLinks(s) {
		left, uid, err := v.resolve(ctx, link)
		if err != nil {
			return nil, err
		}
		if left == nil {
			continue
		}
		out = append(out, *left)
		if link.UID == "" && uid != "" {
			moved[uid] = link.To // its dependents would have to move, too
		}
	}
	owned, err := v.dependents(ctx, moved)
	out = append(out, owned...)
	if err != nil || v.Target == nil {
		return out, err // with files, nothing is deleted, and controllers recreate the dependents
	}
	owned, err = v.builtIn(ctx, moved)
	return append(out, owned...), err
}

// resolve returns the object of a link that would be left behind, and its UID; nil if there is none.
func (v Survey) resolve(ctx context.Context, link graph.Link) (*graph.UnmovedObject, types.UID, error) {
	left := &graph.UnmovedObject{Link: link, CRD: KindOf(v.Kinds, link.To).CRD}
	if link.Read {
		return v.unlessAtTarget(ctx, left, "")
	}
	if KindOf(v.Kinds, link.To).Kind != "" && (v.Namespace == "" || link.From.Namespace == v.Namespace) {
		return nil, "", nil // all objects of the kind were read: it does not exist
	}
	k := KindOf(v.others, link.To)
	left.Unread, left.CRD = k.Kind != "", cmp.Or(left.CRD, k.CRD)
	if k.Kind == "" {
		mapping, err := v.Source.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: link.To.Group, Kind: link.To.Kind})
		if IsNoMatch(err) {
			return nil, "", nil // the kind does not exist
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading the scope of %s: %w", link.To.Kind, err)
		}
		k.GroupVersionKind, k.Namespaced = mapping.GroupVersionKind, mapping.Scope.Name() == meta.RESTScopeNameNamespace
	}
	if !k.Namespaced {
		return nil, "", nil
	}
	o, err := v.Source.metadata(ctx, k.GroupVersionKind, link.To)
	switch {
	case apierrors.IsForbidden(err):
		left.ReadError = err
		return left, "", nil
	case err != nil:
		return nil, "", err
	case o == nil, link.UID != "" && o.UID != link.UID:
		return nil, "", nil
	}
	return v.unlessAtTarget(ctx, left, o.UID)
}

// unlessAtTarget returns left and uid, unless the object exists at the target.
func (v Survey) unlessAtTarget(ctx context.Context, left *graph.UnmovedObject, uid types.UID) (*graph.UnmovedObject, types.UID, error) {
	if v.Target == nil {
		return left, uid, nil
	}
	gk := schema.GroupKind{Group: left.To.Group, Kind: left.To.Kind}
	mapping, err := v.Target.Client.RESTMapper().RESTMapping(gk, cmp.Or(KindOf(v.others, left.To).Version, KindOf(v.Kinds, left.To).Version))
	if IsNoMatch(err) {
		mapping, err = v.Target.Client.RESTMapper().RESTMapping(gk)
	}
	if IsNoMatch(err) {
		return left, uid, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading whether the target has %s: %w", left.To.Kind, err)
	}
	to := left.To
	to.Namespace = v.At(left.From).Namespace
	o, err := v.Target.metadata(ctx, mapping.GroupVersionKind, to)
	if err != nil {
		return nil, "", err
	}
	if o != nil {
		return nil, "", nil
	}
	return left, uid, nil
}

// metadata reads the metadata of an object; it returns nil if the object does not exist.
func (s *Endpoint) metadata(ctx context.Context, gvk schema.GroupVersionKind, id graph.ID) (*metav1.PartialObjectMetadata, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, o)
	if apierrors.IsNotFound(err) || IsNoMatch(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of the %s: %w", id, s.Name, err)
	}
	return o, nil
}

// dependents returns the direct and indirect dependents of moved objects among the kinds that were not read, because
// the garbage collector of the source would delete them.
func (v Survey) dependents(ctx context.Context, moved map[types.UID]graph.ID) ([]graph.UnmovedObject, error) {
	var all, out []graph.UnmovedObject
	for _, k := range v.others {
		if !k.Namespaced {
			continue
		}
		owned, err := v.listOwned(ctx, k)
		if apierrors.IsForbidden(err) {
			out = append(out, graph.UnmovedObject{CRD: k.CRD, Unread: true, Dependent: true, ReadError: err})
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, owned...)
	}
	for found := true; found; {
		found = false
		all = slices.DeleteFunc(all, func(l graph.UnmovedObject) bool {
			owner, is := moved[l.Owner]
			if !is {
				return false
			}
			l.From, found = owner, true
			moved[l.UID] = l.To
			out = append(out, l)
			return true
		})
	}
	return out, nil
}

// builtIn returns the dependents of moved objects among the built-in kinds. Indirect dependents of these kinds are not
// listed, because their owner is.
func (v Survey) builtIn(ctx context.Context, moved map[types.UID]graph.ID) ([]graph.UnmovedObject, error) {
	var out []graph.UnmovedObject
	for _, gvk := range builtInKinds() {
		if _, err := v.Source.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); IsNoMatch(err) {
			continue // the API server does not serve the kind
		} else if err != nil {
			return nil, fmt.Errorf("reading whether the source has %s: %w", gvk.Kind, err)
		}
		owned, err := v.listOwned(ctx, Kind{GroupVersionKind: gvk, Namespaced: true})
		if apierrors.IsForbidden(err) {
			to := graph.ID{Group: gvk.Group, Kind: gvk.Kind, Namespace: v.Namespace}
			out = append(out, graph.UnmovedObject{Link: graph.Link{To: to}, Dependent: true, BuiltIn: true, ReadError: err})
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range owned {
			if owner, is := moved[l.Owner]; is {
				l.From, l.BuiltIn, l.Unread = owner, true, false
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// listOwned returns the objects of a kind that have owners, once for each owner.
func (v Survey) listOwned(ctx context.Context, k Kind) ([]graph.UnmovedObject, error) {
	var out []graph.UnmovedObject
	options := &client.ListOptions{Limit: page, Namespace: v.Namespace}
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := v.Source.Client.List(ctx, list, options); err != nil {
			return nil, fmt.Errorf("listing %s objects of the %s: %w", k.Kind, v.Source.Name, err)
		}
		for _, o := range list.Items {
			for _, ref := range o.OwnerReferences {
				to := graph.ID{Group: k.Group, Kind: k.Kind, Namespace: o.Namespace, Name: o.Name}
				out = append(out, graph.UnmovedObject{Link: graph.Link{To: to, UID: o.UID}, Owner: ref.UID, CRD: k.CRD, Unread: true, Dependent: true})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}
