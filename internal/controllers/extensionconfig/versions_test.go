package extensionconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
)

// RT-01: both versions are served; what one says, the other says too, and nothing is lost on the way there and back.
func TestVersions(t *testing.T) {
	url, port := "https://host:8443/x", int32(8443)
	old := &runtimev1alpha1.ExtensionConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: "runtime.cluster.x-k8s.io/v1alpha1", Kind: "ExtensionConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: "ext"},
		Spec: runtimev1alpha1.ExtensionConfigSpec{
			ClientConfig:      runtimev1alpha1.ClientConfig{URL: &url, CABundle: []byte("ca")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Settings:          map[string]string{"c": "d"},
		},
	}
	inCluster := old.DeepCopy()
	inCluster.Spec.ClientConfig.URL = nil
	inCluster.Spec.ClientConfig.Service = &runtimev1alpha1.ServiceReference{Namespace: "n", Name: "s", Port: &port}
	converter, err := conversion.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*runtimev1alpha1.ExtensionConfig{"url": old, "service": inCluster} {
		up, err := converter.Convert(o.DeepCopy(), "v1beta2")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		spec := up.(*runtimev1.ExtensionConfig).Spec
		if got := spec.ClientConfig; string(got.CABundle) != "ca" || (got.URL == url) != (name == "url") || (got.Service.Name == "s") != (name == "service") {
			t.Errorf("%s: v1beta2 says %+v", name, got)
		}
		if diff := cmp.Diff(o.Spec.Settings, spec.Settings); diff != "" {
			t.Errorf("%s: settings:\n%s", name, diff)
		}
		down, err := converter.Convert(up, "v1alpha1")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		back := down.(*runtimev1alpha1.ExtensionConfig)
		if diff := cmp.Diff(o.Spec, back.Spec); diff != "" {
			t.Errorf("%s: there and back:\n%s", name, diff)
		}
	}
}
