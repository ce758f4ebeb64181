package apiserver_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
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

func TestStartServesCRDsAndObjectsToAnAdministrator(t *testing.T) {
	s := apiserver.Start(t, apiserver.Options{Objects: []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		widgets(),
	}})
	if _, err := kubernetes.NewForConfigOrDie(s.Config).CoreV1().Namespaces().Get(t.Context(), "shop", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace that was asked for: %v", err)
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
