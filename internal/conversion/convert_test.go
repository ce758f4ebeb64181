package conversion_test

import (
	"encoding/json"
	"math/rand"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/slipwayhq/slipway/internal/conversion"
)

// rounds is how many random objects of each kind and version are converted.
const rounds = 20

func versionOf(schema.GroupKind) string { return "v1beta9" }

func newConverter(t *testing.T) *conversion.Converter {
	t.Helper()
	c, err := conversion.New(versionOf)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// spokes lists every kind in every version that is not the hub.
func spokes(scheme *runtime.Scheme) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		object, err := scheme.New(kind)
		if err != nil {
			continue
		}
		_, single := object.(client.Object)
		if single && kind.Version != conversion.HubVersion && strings.HasSuffix(kind.Group, "cluster.x-k8s.io") {
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	return kinds
}

// fuzzFuncs fills types that are not their fields' sum.
func fuzzFuncs(serializer.CodecFactory) []any {
	return []any{
		func(j *apiextensionsv1.JSON, c randfill.Continue) {
			j.Raw = []byte([]string{`"text"`, `{"required":false,"n":0}`, `[0,false]`, `12`}[c.Intn(4)])
		},
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":"b"}`) },
		func(r *corev1.ObjectReference, c randfill.Continue) {
			*r = corev1.ObjectReference{
				APIVersion: "example.org/v1beta9", Kind: "Thing", Name: "n" + c.String(8), Namespace: "ns",
			}
		},
		func(r *clusterv1.ContractVersionedObjectReference, c randfill.Continue) {
			*r = clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Thing", Name: "n" + c.String(8)}
		},
		// Schemas contain schemas: one level of them is enough, and all that fits into the time.
		func(s *clusterv1.JSONSchemaProps, c randfill.Continue) {
			*s = clusterv1.JSONSchemaProps{Type: "string", Format: c.String(3), Pattern: c.String(3), Default: &apiextensionsv1.JSON{Raw: []byte("false")}}
			c.Fill(&s.UniqueItems)
			c.Fill(&s.XIntOrString)
			c.Fill(&s.MaxLength)
			c.Fill(&s.Required)
			c.Fill(&s.XValidations)
		},
		func(s *clusterv1beta1.JSONSchemaProps, c randfill.Continue) {
			*s = clusterv1beta1.JSONSchemaProps{Type: "string", Format: c.String(3), Pattern: c.String(3), Default: &apiextensionsv1.JSON{Raw: []byte("false")}}
			c.Fill(&s.UniqueItems)
			c.Fill(&s.XIntOrString)
			c.Fill(&s.MaxLength)
			c.Fill(&s.Required)
		},
		func(s *controlplanev1beta1.RolloutStrategy, c randfill.Continue) {
			s.Type = controlplanev1beta1.RollingUpdateStrategyType // the only one there is, and the default
			c.Fill(&s.RollingUpdate)
		},
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int31()) * time.Second },
		func(s *bootstrapv1beta1.BootstrapTokenString, c randfill.Continue) {
			s.ID, s.Secret = "abcdef", "0123456789abcdef"
		},
		func(s *bootstrapv1.BootstrapTokenString, c randfill.Continue) {
			s.ID, s.Secret = "abcdef", "0123456789abcdef"
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			*m = metav1.ObjectMeta{Name: "n", Namespace: "ns", Labels: map[string]string{"a": c.String(5)}}
		},
	}
}

func newFuzzer(c *conversion.Converter, seed int64) *randfill.Filler {
	codecs := serializer.NewCodecFactory(c.Scheme())
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzzFuncs)
	return fuzzer.FuzzerFor(funcs, rand.NewSource(seed), codecs).NilChance(0.4).NumElements(1, 3).MaxDepth(18)
}

// normal returns the object as the API server sees it: as JSON values.
func normal(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{}
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(value).(map[string]any)
}

// withoutEmpty drops what means the same as absent: null, empty texts, lists and objects.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			item = withoutEmpty(item)
			value[key] = item
			object, isMap := item.(map[string]any)
			list, isList := item.([]any)
			if item == nil || item == "" || isMap && len(object) == 0 || isList && len(list) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	}
	return value
}

// CV-01: hub → spoke → hub loses nothing, for every kind and every older version.
func TestHubSurvivesEverySpoke(t *testing.T) {
	c := newConverter(t)
	for _, kind := range spokes(c.Scheme()) {
		t.Run(kind.GroupVersion().String()+" "+kind.Kind, func(t *testing.T) {
			fill := newFuzzer(c, 1)
			for range rounds {
				hub, err := c.Scheme().New(kind.GroupKind().WithVersion(conversion.HubVersion))
				if err != nil {
					t.Fatal(err)
				}
				fill.Fill(hub)
				hub.GetObjectKind().SetGroupVersionKind(kind.GroupKind().WithVersion(conversion.HubVersion))
				want := normal(t, hub)
				spoke, err := c.Convert(hub, kind.Version)
				if err != nil {
					t.Fatal(err)
				}
				again, err := c.Convert(overTheWire(t, c, spoke), conversion.HubVersion)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, normal(t, again)); diff != "" {
					t.Fatalf("the hub changed (-before +after):\n%s", diff)
				}
				if diff := cmp.Diff(want, normal(t, hub)); diff != "" {
					t.Fatalf("the input was changed:\n%s", diff)
				}
			}
		})
	}
}

// overTheWire encodes and decodes, as happens between the webhook and a client.
func overTheWire(t *testing.T, c *conversion.Converter, object runtime.Object) runtime.Object {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Scheme().New(object.GetObjectKind().GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// forget removes what the hub has no field for, as the package's documentation says, and gives a reference to a Node
// its only form.
func forget(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range []string{
			"useExperimentalRetryJoin", "revisionHistoryLimit", "progressDeadlineSeconds", "definitionFrom",
		} {
			delete(value, key)
		}
		if config, ok := value["clusterConfiguration"].(map[string]any); ok {
			delete(config, "clusterName") // these are taken from the Cluster
			delete(config, "kubernetesVersion")
			delete(config, "networking")
		}
		if ref, ok := value["nodeRef"].(map[string]any); ok {
			value["nodeRef"] = map[string]any{"apiVersion": "v1", "kind": "Node", "name": ref["name"]}
		}
		if status, ok := value["status"].(map[string]any); ok && value["kind"] == "KubeadmControlPlane" {
			delete(status, "ready") // computed from readyReplicas
		}
		for _, item := range value {
			forget(item)
		}
	case []any:
		for _, item := range value {
			forget(item)
		}
	}
}

// CV-01: spoke → hub → spoke keeps what the hub has a place for.
func TestSpokeSurvivesTheHub(t *testing.T) {
	c := newConverter(t)
	for _, kind := range spokes(c.Scheme()) {
		t.Run(kind.GroupVersion().String()+" "+kind.Kind, func(t *testing.T) {
			fill := newFuzzer(c, 2)
			for range rounds {
				spoke, err := c.Scheme().New(kind)
				if err != nil {
					t.Fatal(err)
				}
				fill.Fill(spoke)
				spoke.GetObjectKind().SetGroupVersionKind(kind)
				want := normal(t, spoke)
				forget(want)
				hub, err := c.Convert(spoke, conversion.HubVersion)
				if err != nil {
					t.Fatal(err)
				}
				again, err := c.Convert(overTheWire(t, c, hub), kind.Version)
				if err != nil {
					t.Fatal(err)
				}
				got := normal(t, again)
				forget(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("the spoke changed (-before +after):\n%s", diff)
				}
			}
		})
	}
}
