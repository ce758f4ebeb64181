package manager

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
)

// What the manager writes is not searched for unknown fields, and of what it wrote only the metadata comes back.
func TestWhatIsAskedOfTheServer(t *testing.T) {
	asked := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.Header.Get("Content-Type")+" "+r.URL.Query().Get("fieldValidation")] = r.Header.Get("Accept")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
			"metadata": {"name": "m", "namespace": "ns", "uid": "u", "resourceVersion": "2"}}`))
	}))
	defer server.Close()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	machines := clusterv1.GroupVersion.WithKind("Machine")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(machines, meta.RESTScopeNamespace)
	options := clientOptions()
	options.Scheme, options.Mapper, options.Cache = scheme, mapper, nil
	c, err := client.New(&rest.Config{Host: server.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
	w := kube.NewWriter(c, "test")
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", ResourceVersion: "1"}}
	if err := w.Patch(t.Context(), m, func(o client.Object) { o.SetFinalizers([]string{"x"}) }); err != nil {
		t.Fatal(err)
	}
	want := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterName": "c"}}}
	want.SetGroupVersionKind(machines)
	want.SetNamespace("ns")
	want.SetName("m")
	if err := w.WithManager("capi-test").CreateApplied(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	metadata := "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	if diff := cmp.Diff(map[string]string{
		"application/merge-patch+json Ignore": metadata, "application/apply-patch+yaml Ignore": metadata,
	}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if want.GetUID() != "u" || want.GetResourceVersion() != "2" {
		t.Errorf("what was created is %s at %s", want.GetUID(), want.GetResourceVersion())
	}
}
