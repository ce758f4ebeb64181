package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxKinds bounds the kinds that are copied, because every tenant who may create CRDs could add more.
const maxKinds = 256

// Kind is a kind that is copied.
type Kind struct {
	Group, Kind, Version, Resource string
	Namespaced                     bool
}

// GroupKind returns the group and the kind.
func (k Kind) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// resource returns the resource of the API.
func (k Kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// discovered are the kinds of a management cluster. The mirror compares them with the copied kinds.
type discovered struct {
	kinds []Kind
	// left are the kinds beyond the limit.
	left   []schema.GroupKind
	mapper meta.RESTMapper
	// failed are the groups with a version that could not be read.
	failed map[string]bool
	// withoutLabels is true if the labels of CRDs could not be read, so that kinds are selected by their group alone.
	withoutLabels bool
}

// keep removes all kinds but the selected ones; none selects all.
func (d *discovered) keep(selected []schema.GroupKind) {
	if len(selected) == 0 {
		return
	}
	d.kinds = slices.DeleteFunc(d.kinds, func(k Kind) bool { return !slices.Contains(selected, k.GroupKind()) })
	d.left = slices.DeleteFunc(d.left, func(k schema.GroupKind) bool { return !slices.Contains(selected, k) })
}

// limit moves the kinds beyond the limit from kinds to left.
func (d *discovered) limit() {
	most := min(len(d.kinds), maxKinds)
	for _, k := range d.kinds[most:] {
		d.left = append(d.left, k.GroupKind())
	}
	d.kinds = d.kinds[:most]
}

// isIncomplete reports whether kinds of a group may be missing or in another version than usual.
func (d discovered) isIncomplete(group string) bool {
	return d.failed[group] || d.withoutLabels && !isClusterAPIGroup(group)
}

// watchPlan lists the watches that have to be started, or restarted in another version, and those that have to be
// stopped. applyPlan carries it out.
type watchPlan struct {
	start []Kind
	stop  []schema.GroupKind
}

// planWatches compares the current kinds with the discovered ones:
//
//	kind is new                           start
//	group is incomplete                   no change
//	version, resource or scope differs    start again
//	kind is not served any more           stop
func planWatches(current map[schema.GroupKind]Kind, found discovered) watchPlan {
	var plan watchPlan
	served := map[schema.GroupKind]bool{}
	for _, k := range found.kinds {
		served[k.GroupKind()] = true
		known, ok := current[k.GroupKind()]
		if !ok || known != k && !found.isIncomplete(k.Group) {
			plan.start = append(plan.start, k)
		}
	}
	for of := range current {
		if !served[of] && !found.isIncomplete(of.Group) {
			plan.stop = append(plan.stop, of)
		}
	}
	slices.SortFunc(plan.stop, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return plan
}

// discover reads the kinds of the API server and selects those of Cluster API.
func discover(ctx context.Context, api discovery.DiscoveryInterface, crds metadata.Interface) (discovered, error) {
	served, lists, err := api.ServerGroupsAndResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return discovered{}, fmt.Errorf("reading the kinds of the API server: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(servedKinds{groups: served, lists: lists})
	if err != nil {
		return discovered{}, fmt.Errorf("reading the kinds of the API server: %w", err)
	}
	preferred := map[string]string{}
	for _, g := range groups {
		preferred[g.Group.Name] = g.Group.PreferredVersion.Version
	}
	out := discovered{failed: map[string]bool{}}
	if partial != nil {
		for gv := range partial.Groups {
			out.failed[gv.Group] = true
		}
	}
	labelled, err := labelledResources(ctx, crds)
	if out.withoutLabels = apierrors.IsForbidden(err); err != nil && !out.withoutLabels {
		return discovered{}, err
	}
	out.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	out.kinds = selectKinds(lists, preferred, labelled)
	out.limit()
	if !slices.ContainsFunc(out.kinds, func(k Kind) bool { return k.GroupKind() == clusterKind() }) {
		return discovered{}, fmt.Errorf("the cluster is not a management cluster of Cluster API: %w", &meta.NoKindMatchError{GroupKind: clusterKind()})
	}
	return out, nil
}

// servedKinds are the kinds that an API server has returned, so that they are read once for several purposes.
type servedKinds struct {
	discovery.DiscoveryInterface
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

// ServerGroupsAndResources implements discovery.ServerResourcesInterface.
func (k servedKinds) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return k.groups, k.lists, nil
}

func clusterKind() schema.GroupKind {
	return schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}
}

// labelledResources returns the resources, as "plural.group", of the CRDs with a label of a provider.
func labelledResources(ctx context.Context, crds metadata.Interface) (map[string]bool, error) {
	out := map[string]bool{}
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := crds.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	for i := range list.Items {
		if hasProviderLabel(list.Items[i].Labels) {
			out[list.Items[i].Name] = true
		}
	}
	return out, nil
}

// hasProviderLabel reports whether a CRD has a label of clusterctl, of a provider, or of a contract version.
func hasProviderLabel(labels map[string]string) bool {
	for label := range labels {
		if label == clusterv1.ProviderNameLabel || strings.HasPrefix(label, "clusterctl.cluster.x-k8s.io") || strings.HasPrefix(label, clusterv1.GroupVersion.Group+"/v1") {
			return true
		}
	}
	return false
}

// isClusterAPIGroup reports whether a group belongs to Cluster API or Slipway by its name.
func isClusterAPIGroup(group string) bool {
	for _, suffix := range []string{"cluster.x-k8s.io", "slipway.dev"} {
		if group == suffix || strings.HasSuffix(group, "."+suffix) {
			return true
		}
	}
	return false
}

// selectKinds selects the kinds that are copied, in a stable order: kinds with a CRD label of a provider or in a group of
// Cluster API that can be listed and watched. Each kind is read in one version: the latest that Slipway knows for the core
// group, otherwise the preferred version of the group, otherwise the first.
func selectKinds(lists []*metav1.APIResourceList, preferred map[string]string, labelled map[string]bool) []Kind {
	found := map[schema.GroupKind]Kind{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == "" {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") ||
				!isClusterAPIGroup(gv.Group) && !labelled[r.Name+"."+gv.Group] {
				continue
			}
			k := Kind{Group: gv.Group, Kind: r.Kind, Version: gv.Version, Resource: r.Name, Namespaced: r.Namespaced}
			if known, ok := found[k.GroupKind()]; !ok || versionRank(k, preferred) < versionRank(known, preferred) {
				found[k.GroupKind()] = k
			}
		}
	}
	kinds := make([]Kind, 0, len(found))
	for _, k := range found {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b Kind) int {
		return cmp.Or(compareCore(a, b), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

func versionRank(k Kind, preferred map[string]string) int {
	switch {
	case k.Group == clusterv1.GroupVersion.Group && k.Version == clusterv1.GroupVersion.Version:
		return 0
	case preferred[k.Group] == k.Version:
		return 1
	}
	return 2
}

// compareCore orders the core group first, so that it is never cut off.
func compareCore(a, b Kind) int {
	rank := func(k Kind) int {
		if isClusterAPIGroup(k.Group) {
			return len(strings.TrimSuffix(k.Group, clusterv1.GroupVersion.Group))
		}
		return 1 << 20
	}
	return cmp.Compare(rank(a), rank(b))
}
