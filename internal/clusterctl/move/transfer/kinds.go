package transfer

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/kube"
)

// managedLabel is the label of CRDs that were installed by clusterctl, and also the API group of its inventory.
const managedLabel = "clusterctl.cluster.x-k8s.io"

// contractPrefix is the prefix of the CRD labels that list the API versions for a contract, such as
// cluster.x-k8s.io/v1beta2.
const contractPrefix = "cluster.x-k8s.io/v"

// Kind is a kind whose objects may move. [Endpoint.Kinds] returns the kinds of a management cluster.
type Kind struct {
	schema.GroupVersionKind
	Namespaced bool
	// CRD is the name of its CRD; empty for a built-in kind.
	CRD string
	// Marked and MarkedHierarchy are labels of its CRD; see [graph.Object].
	Marked, MarkedHierarchy bool
	// Missing means that the target serves none of the versions that the source serves.
	Missing bool
}

// Kinds returns the kinds whose objects a move reads: the kinds of Cluster API and its providers, by the labels of
// their CRDs, and Secrets and ConfigMaps, in the newest version that both management clusters serve.
func (s *Endpoint) Kinds(ctx context.Context, target meta.RESTMapper) ([]Kind, error) {
	out := []Kind{
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespaced: true},
		{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespaced: true},
	}
	own, err := s.listCRDKinds(ctx, target, isOfClusterAPI)
	return sorted(append(out, own...)), err
}

// otherKinds returns the kinds of all other CRDs. [Survey.LeftBehind] searches them for linked objects that would stay
// behind.
func (s *Endpoint) otherKinds(ctx context.Context) ([]Kind, error) {
	all, err := s.listCRDKinds(ctx, nil, func(labels map[string]string) bool { return !isOfClusterAPI(labels) })
	return sorted(all), err
}

// builtInKinds returns the namespaced built-in kinds that are not moved. Secrets and ConfigMaps are moved. Kinds that
// Kubernetes controllers create themselves (Events, Leases, Endpoints, EndpointSlices, ControllerRevisions) do not
// prevent a move and are omitted. [Survey.LeftBehind] searches the kinds for dependents of moved objects, which prevent
// a move.
func builtInKinds() []schema.GroupVersionKind {
	groups := []struct {
		group, version string
		kinds          []string
	}{
		{"", "v1", []string{"PersistentVolumeClaim", "Pod", "ReplicationController", "Service", "ServiceAccount"}},
		{"apps", "v1", []string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}},
		{"autoscaling", "v2", []string{"HorizontalPodAutoscaler"}},
		{"batch", "v1", []string{"CronJob", "Job"}},
		{"networking.k8s.io", "v1", []string{"Ingress", "NetworkPolicy"}},
		{"policy", "v1", []string{"PodDisruptionBudget"}},
		{"rbac.authorization.k8s.io", "v1", []string{"Role", "RoleBinding"}},
	}
	var out []schema.GroupVersionKind
	for _, g := range groups {
		for _, kind := range g.kinds {
			out = append(out, schema.GroupVersionKind{Group: g.group, Version: g.version, Kind: kind})
		}
	}
	return out
}

// isOfClusterAPI reports whether a CRD has a label of clusterctl, a provider or a contract. CRDs of providers that were
// not installed with clusterctl lack its label.
func isOfClusterAPI(labels map[string]string) bool {
	for key := range labels {
		version, contract := strings.CutPrefix(key, contractPrefix)
		switch {
		case key == managedLabel, key == clusterv1.ProviderNameLabel, key == graph.MoveLabel, key == graph.MoveHierarchyLabel:
			return true
		case contract && version != "" && version[0] >= '0' && version[0] <= '9':
			return true
		}
	}
	return false
}

func sorted(kinds []Kind) []Kind {
	slices.SortFunc(kinds, func(a, b Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return kinds
}

// listCRDKinds returns the served kinds of the CRDs whose labels match.
func (s *Endpoint) listCRDKinds(ctx context.Context, target meta.RESTMapper, with func(labels map[string]string) bool) ([]Kind, error) {
	crds := &metav1.PartialObjectMetadataList{}
	crds.SetGroupVersionKind(kube.CRDKind())
	if err := s.Client.List(ctx, crds); err != nil {
		return nil, fmt.Errorf("listing the kinds of the %s: %w", s.Name, err)
	}
	var out []Kind
	for _, crd := range crds.Items {
		if !with(crd.Labels) {
			continue
		}
		plural, group, _ := strings.Cut(crd.Name, ".")
		served, err := s.Client.RESTMapper().KindsFor(schema.GroupVersionResource{Group: group, Resource: plural})
		if IsNoMatch(err) {
			continue // not served yet, or no longer: it has no objects
		}
		if err != nil {
			return nil, fmt.Errorf("reading the versions of %s: %w", crd.Name, err)
		}
		kind, err := s.selectVersion(served, target)
		if err != nil {
			return nil, err
		}
		kind.CRD = crd.Name
		_, kind.Marked = crd.Labels[graph.MoveLabel]
		_, kind.MarkedHierarchy = crd.Labels[graph.MoveHierarchyLabel]
		out = append(out, kind)
	}
	return out, nil
}

// selectVersion selects one of the versions that the source serves.
func (s *Endpoint) selectVersion(served []schema.GroupVersionKind, target meta.RESTMapper) (Kind, error) {
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

// IsNoMatch reports whether the error means that an API server does not serve a kind.
func IsNoMatch(err error) bool {
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	return errors.As(err, &kind) || errors.As(err, &resource)
}

// KindOf returns the kind of an object, or the zero value if it is not among the kinds. Package move looks up the kind
// of each entry with it.
func KindOf(kinds []Kind, id graph.ID) Kind {
	for _, k := range kinds {
		if k.Group == id.Group && k.Kind == id.Kind {
			return k
		}
	}
	return Kind{}
}
