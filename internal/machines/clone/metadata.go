package clone

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Metadata is the desired metadata of a clone that the owner of its Machine applies. The MachineSet and
// KubeadmControlPlane controllers compare it with the clones and apply it ([Writers.Sync]) when labels or annotations
// of their Machine template change.
type Metadata struct {
	Labels, Annotations map[string]string
	// OldLabels and OldAnnotations are keys that the owner applied earlier and no longer applies.
	OldLabels, OldAnnotations []string
}

// MetadataFor returns the desired metadata of a Machine's clones. Keys that the field manager still owns in the
// Machine but that are no longer desired are the old keys, because clones are synchronized before their Machine.
func MetadataFor(m *clusterv1.Machine, manager string, labels, annotations map[string]string) Metadata {
	owned := kube.OwnedMetadata(m, manager)
	return Metadata{Labels: labels, Annotations: annotations,
		OldLabels: without(owned.Labels, labels), OldAnnotations: without(owned.Annotations, annotations)}
}

// without returns the keys that are not in the map.
func without(keys []string, desired map[string]string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := desired[key]; return ok })
}

// IsCurrent reports whether the clone has all of the metadata and none of the old keys. [Clones.Needs] calls it.
func (m Metadata) IsCurrent(clone *unstructured.Unstructured) bool {
	return isCurrent(clone.GetLabels(), m.Labels, m.OldLabels) && isCurrent(clone.GetAnnotations(), m.Annotations, m.OldAnnotations)
}

func isCurrent(have, want map[string]string, old []string) bool {
	for key, value := range want {
		if is, ok := have[key]; !ok || is != value {
			return false
		}
	}
	return !slices.ContainsFunc(old, func(key string) bool {
		_, still := have[key]
		_, wanted := want[key]
		return still && !wanted
	})
}

// Writers are the two field managers of clones: Creator creates them, Metadata later applies metadata to them. On
// the first apply the ownership of the applied keys is transferred from Creator to Metadata, so that Metadata can
// remove them later. Their names are the ones of Cluster API, so that either implementation can take over the objects.
type Writers struct {
	// Live reads from the API server.
	Live              client.Reader
	Creator, Metadata string
	Writer            *kube.Writer
}

// oldManager is the field manager of clones in Cluster API before v1.12.
const oldManager = "manager"

// Sync applies the metadata to the clone.
func (w Writers) Sync(ctx context.Context, clone *unstructured.Unstructured, m Metadata) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(clone.GroupVersionKind())
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(clone), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() != clone.GetUID() {
		return nil
	}
	writer := w.Writer.WithManager(w.Metadata)
	if err := writer.TransferOwnership(ctx, live, kube.OwnershipTransfer{From: []string{w.Creator, oldManager}, To: w.Metadata, Takes: m.takes}); err != nil {
		return err
	}
	want := &unstructured.Unstructured{Object: map[string]any{}}
	want.SetGroupVersionKind(live.GroupVersionKind())
	want.SetNamespace(live.GetNamespace())
	want.SetName(live.GetName())
	want.SetUID(live.GetUID())
	want.SetLabels(maps.Clone(m.Labels))
	want.SetAnnotations(maps.Clone(m.Annotations))
	return writer.Apply(ctx, nil, want)
}

// takes reports whether the metadata's field manager applies the field.
func (m Metadata) takes(p fieldpath.Path) bool {
	if len(p) != 3 || p[0].FieldName == nil || *p[0].FieldName != "metadata" || p[1].FieldName == nil || p[2].FieldName == nil {
		return false
	}
	key := *p[2].FieldName
	switch *p[1].FieldName {
	case "labels":
		_, ok := m.Labels[key]
		return ok || slices.Contains(m.OldLabels, key)
	case "annotations":
		_, ok := m.Annotations[key]
		return ok || slices.Contains(m.OldAnnotations, key)
	}
	return false
}
