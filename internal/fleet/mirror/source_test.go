package mirror

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/slipwayhq/slipway/test/mirrortest"
)

// The objects of a list or of a stream of events are trimmed before the next one is decoded, because all of them are in memory
// at the same time. The event that ends a stream remains.
func TestSourceTrims(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Stream()
	api.Put(t, `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {namespace: team, name: long, managedFields: [{manager: kubectl, operation: Apply, fieldsV1: {f:spec: {}}}]}}`)
	m, err := New(api.Config(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	source := m.newSource(Kind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine", Resource: "machines", Namespaced: true}, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	list, err := source.ListWithContextFunc(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	items := list.(*unstructured.UnstructuredList).Items
	i := slices.IndexFunc(items, func(u unstructured.Unstructured) bool { return u.GetName() == "long" })
	if i < 0 || len(items[i].GetManagedFields()) > 0 {
		t.Errorf("a list is not trimmed: %v", items)
	}
	initial := true
	w, err := source.WatchFuncWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	added := 0
	for e := range w.ResultChan() {
		u := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Bookmark {
			if u.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || added != len(items) {
				t.Errorf("the stream ends after %d events with %v", added, u)
			}
			return
		}
		if added++; len(u.GetManagedFields()) > 0 {
			t.Errorf("an event is not trimmed: %v", u)
		}
	}
	t.Error("the stream has no end")
}
