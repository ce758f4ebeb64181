package clone

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Metadata is what the owner of Machines says of the metadata of their clones (MS-08).
type Metadata struct {
	Labels, Annotations map[string]string
	// OldLabels and OldAnnotations are keys that it said before and does not say any more.
	OldLabels, OldAnnotations []string
}

// Kept reports whether the clone has all that the metadata says, and nothing that it does not say any more.
func (m Metadata) Kept(clone *unstructured.Unstructured) bool {
	return kept(clone.GetLabels(), m.Labels, m.OldLabels) && kept(clone.GetAnnotations(), m.Annotations, m.OldAnnotations)
}

func kept(have, want map[string]string, old []string) bool {
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

// Writers are the field managers of clones (MS-09): one creates them with all they have, another applies metadata to
// them later. The keys that it applies are handed over from the first once, so that it can remove them.
type Writers struct {
	// Live reads past the cache.
	Live client.Reader
	// Creator created the clone, Metadata applies to it.
	Creator, Metadata string
	Writer            *kube.Writer
}

// oldManager created and changed clones before Cluster API v1.12.
const oldManager = "manager"

// Sync makes the metadata of the clone what m says.
func (w Writers) Sync(ctx context.Context, clone *unstructured.Unstructured, m Metadata) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(clone.GroupVersionKind())
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(clone), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() != clone.GetUID() {
		return nil
	}
	writer := w.Writer.Named(w.Metadata)
	if err := writer.HandOver(ctx, live, kube.HandOver{From: []string{w.Creator, oldManager}, To: w.Metadata, Takes: m.takes}); err != nil {
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

// takes tells the fields whose owner is whoever applies metadata.
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
