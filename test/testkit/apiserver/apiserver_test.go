package apiserver_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

func widgets() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.slipway.dev"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "test.slipway.dev",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve},
				},
			}},
		},
	}
}

// converted is a kind with another stored version, whose conversion webhook does not respond.
func converted() *apiextensionsv1.CustomResourceDefinition {
	crd, url := widgets(), "https://127.0.0.1:1/convert"
	crd.Name, crd.Spec.Names = "gadgets.test.slipway.dev", apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	older := *crd.Spec.Versions[0].DeepCopy()
	older.Name, older.Storage = "v1beta1", false
	crd.Spec.Versions = append(crd.Spec.Versions, older)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url}, ConversionReviewVersions: []string{"v1"},
	}}
	return crd
}

// A client that watches knows how far it has come though nothing it watches changes: it need not list again, and etcd decodes nothing
// of what others wrote.
func TestWatchesHaveBookmarks(t *testing.T) {
	s := apiserver.Start(t, apiserver.Options{Objects: []client.Object{widgets(), converted()}, Args: []string{"--progress=200ms"}})
	c, clients := dynamic.NewForConfigOrDie(s.Config), kubernetes.NewForConfigOrDie(s.Config)
	write := func(name string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := clients.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	for _, kind := range []schema.GroupVersionResource{
		namespaces, {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "test.slipway.dev", Version: "v1", Resource: "widgets"}, {Group: "test.slipway.dev", Version: "v1beta1", Resource: "gadgets"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		since := version(t, c, kind)
		write("beside-" + kind.Resource)
		event := next(t, c, kind, metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true})
		if event.Type != watch.Bookmark || !isLater(t, event.Object, since) {
			t.Errorf("%s since %s: got %s %v, want a bookmark that is later", kind.Resource, since, event.Type, event.Object)
		}
	}
	// Without AllowWatchBookmarks the first event is a change.
	since := version(t, c, namespaces)
	write("beside")
	w, err := c.Resource(namespaces).Watch(t.Context(), metav1.ListOptions{ResourceVersion: since})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 3 { // it is time for bookmarks
		next(t, c, namespaces, metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true})
	}
	if _, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Added {
		t.Errorf("got %s %v, want the Namespace that is new", event.Type, event.Object)
	}
}

// version returns the resource version of the list of a kind.
func version(t *testing.T, c dynamic.Interface, kind schema.GroupVersionResource) string {
	t.Helper()
	list, err := c.Resource(kind).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.GetResourceVersion()
}

// next returns the next event of a watch.
func next(t *testing.T, c dynamic.Interface, kind schema.GroupVersionResource, o metav1.ListOptions) watch.Event {
	t.Helper()
	w, err := c.Resource(kind).Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case event := <-w.ResultChan():
		return event
	case <-time.After(time.Minute):
		t.Fatalf("nothing is heard of %s", kind.Resource)
	}
	return watch.Event{}
}

// isLater reports whether an object's resource version is greater.
func isLater(t *testing.T, o runtime.Object, than string) bool {
	t.Helper()
	read, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	order, err := resourceversion.CompareResourceVersion(read.GetResourceVersion(), than)
	if err != nil {
		t.Fatal(err)
	}
	return order > 0
}

func TestStartServesCRDsAndObjectsToAnAdministrator(t *testing.T) {
	s := apiserver.Start(t, apiserver.Options{Objects: []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		widgets(),
	}})
	if _, err := kubernetes.NewForConfigOrDie(s.Config).CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); err != nil {
		t.Errorf("the requested namespace does not exist: %v", err)
	}
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("widgets")
	resource.Group, resource.Version = "test.slipway.dev", "v1"
	list, err := dynamic.NewForConfigOrDie(s.Config).Resource(resource).Namespace("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("list a custom resource: %v", err)
	}
	if len(list.Items) != 0 {
		t.Errorf("got %d widgets, want none", len(list.Items))
	}
	if err := s.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there after Stop: %v", err)
	}
}
