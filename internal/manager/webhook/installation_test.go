package webhook_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/manager/webhook"
)

// CV-01, FL-04: installing again writes nothing, other managers share the certificate, and a new address is told.
func testInstallation(t *testing.T, w *world) {
	versions := func() map[string]string {
		out := map[string]string{}
		for _, kind := range []string{"CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			list := &metav1.PartialObjectMetadataList{}
			group := "admissionregistration.k8s.io"
			if kind == "CustomResourceDefinition" {
				group = "apiextensions.k8s.io"
			}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
			if err := w.client.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				out[kind+" "+item.Name] = item.ResourceVersion
			}
		}
		return out
	}
	before := versions()
	other := webhook.NewCertificates(w.client, namespace, w.address)
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(other.CA()) != string(w.certificates.CA()) {
		t.Error("a second manager made an authority of its own")
	}
	if err := webhook.Install(t.Context(), w.client, w.address, other.CA()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("installing again wrote (-before +after):\n%s", diff)
	}
	service := webhook.Address{Service: webhook.Service{Namespace: namespace, Name: "slipway-webhook"}}
	if err := webhook.Install(t.Context(), w.client, service, other.CA()); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for name, version := range versions() {
		if before[name] != version {
			changed++
		}
	}
	if want := 17 + 9; changed != want {
		t.Errorf("a new address changed %d objects, want %d: the CRDs of several versions, the validation of six providers and the defaulting of three", changed, want)
	}
	if err := webhook.Install(t.Context(), w.client, w.address, w.certificates.CA()); err != nil {
		t.Fatal(err)
	}
}
