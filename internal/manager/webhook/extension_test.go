package webhook_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RT-02: with the gate off, which is the default, no one registers an extension, whatever version they use.
func testExtensions(t *testing.T, w *world) {
	url := "https://extension.invalid"
	for version, o := range map[string]client.Object{
		"v1beta2": &runtimev1.ExtensionConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "ext"},
			Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: url}},
		},
		"v1alpha1": &runtimev1alpha1.ExtensionConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "ext"},
			Spec:       runtimev1alpha1.ExtensionConfigSpec{ClientConfig: runtimev1alpha1.ClientConfig{URL: &url}},
		},
	} {
		err := w.client.Create(t.Context(), o)
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "--feature-gates=RuntimeSDK=true") {
			t.Errorf("%s: %v", version, err)
		}
	}
}
