package crds

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// D34: of kinds without a controller here a provider from elsewhere keeps its CRDs, and the core takes its own over.
func TestCRDsOfOthers(t *testing.T) {
	const kubeadm, core = "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "clusters.cluster.x-k8s.io"
	service := func(namespace, name string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: name}}
	}
	url := &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:6441/convert")}
	ours, theirs := service("slipway-system", "slipway-webhook"), service("capi-kubeadm-control-plane-system", "webhook")
	cases := map[string]struct {
		reason    string
		crd       string
		live, own *apiextensionsv1.WebhookClientConfig
		written   bool
	}{
		"missing":            {"somebody has to bring it", kubeadm, nil, ours, true},
		"theirs":             {"its controllers convert what they store", kubeadm, theirs, ours, false},
		"theirs, up":         {"as above, with our webhooks at a URL", kubeadm, theirs, url, false},
		"ours":               {"an earlier run of ours", kubeadm, ours, ours, true},
		"ours, other port":   {"an earlier slipway up", kubeadm, url, ours, true},
		"no webhooks at all": {"a test without conversion", kubeadm, theirs, nil, true},
		"the core's":         {"a provider with controllers here takes its kinds over", core, theirs, ours, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := apiextensionsv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme)
			if tc.live != nil {
				live := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: tc.crd}}
				live.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
					Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: tc.live},
				}
				c.WithObjects(live)
			}
			list, err := All()
			if err != nil {
				t.Fatal(err)
			}
			sets := providerset.All()
			for i := range sets {
				if sets[i].Name == providerset.ControlPlaneKubeadm {
					sets[i].Controllers = nil // as a provider whose kinds are served without a controller
				}
			}
			got, err := wanted(t.Context(), c.Build(), list, Options{ConversionWebhook: tc.own, Sets: sets})
			if err != nil {
				t.Fatal(err)
			}
			written := slices.ContainsFunc(got, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == tc.crd })
			if written != tc.written {
				t.Errorf("%s: written %t, want %t", tc.reason, written, tc.written)
			}
		})
	}
}

// Only the CRDs of the providers that run are installed.
func TestCRDsOfSets(t *testing.T) {
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	sets := providerset.Without(providerset.Others(providerset.ControlPlaneHosted)...)
	got, err := wanted(t.Context(), fake.NewClientBuilder().Build(), list, Options{Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, crd := range got {
		names = append(names, crd.Name)
	}
	if diff := cmp.Diff(providerset.CRDs(sets), names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Who takes the conversion over from a manager that ended leaves the schemas as they are, and who installs the CRDs next writes them.
func TestRedirect(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	crd := func(name string, webhook bool) *apiextensionsv1.CustomResourceDefinition {
		o := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{HashAnnotation: "of a newer version", "a": "b"}}}
		o.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta9", Served: true}}
		o.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
		if webhook {
			o.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"}}}
		}
		return o
	}
	const moved, plain, other = "clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "kubeadmconfigs.bootstrap.cluster.x-k8s.io"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd(moved, true), crd(plain, false), crd(other, true)).Build()
	sets := slices.DeleteFunc(providerset.All(), func(s providerset.Set) bool { return s.Name != providerset.Core })
	to := &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:2/convert"), CABundle: []byte("ca")}
	if err := Redirect(t.Context(), c, Options{ConversionWebhook: to, Sets: sets}); err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]bool{moved: true, plain: false, other: false} {
		want, got := crd(name, name != plain), &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, got); err != nil {
			t.Fatal(err)
		}
		if changed {
			want.Spec.Conversion.Webhook.ClientConfig = to
			delete(want.Annotations, HashAnnotation)
		}
		if diff := cmp.Diff(want.Spec, got.Spec) + cmp.Diff(want.Annotations, got.Annotations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
