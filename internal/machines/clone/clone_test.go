package clone

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func request(t *testing.T, spec string) Options {
	return Options{
		Template: contract.Object{Unstructured: object(t, "apiVersion: i/v1\nkind: FooMachineTemplate\nmetadata: {namespace: ns, name: t, labels: {own: x}}\nspec: "+spec)},
		Name:     "m", Cluster: "c", Owner: metav1.OwnerReference{APIVersion: "a/v1", Kind: "MachineSet", Name: "ms", UID: "u"},
		Labels: map[string]string{"both": "owner", "set": "ms"}, Annotations: map[string]string{"note": "owner"},
	}
}

func TestNew(t *testing.T) { // MS-04, MS-05, OR-01
	cases := map[string]struct{ reason, spec, want string }{
		"full": {
			reason: "the owner's metadata goes before the template's; where it came from is noted",
			spec:   "{template: {metadata: {labels: {both: template, t: '1'}, annotations: {a: '1'}}, spec: {size: 3}}}",
			want: `apiVersion: i/v1
kind: FooMachine
metadata:
  namespace: ns
  name: m
  labels: {both: owner, set: ms, t: '1', cluster.x-k8s.io/cluster-name: c}
  annotations: {a: '1', note: owner, cluster.x-k8s.io/cloned-from-name: t, cluster.x-k8s.io/cloned-from-groupkind: FooMachineTemplate.i}
  ownerReferences: [{apiVersion: a/v1, kind: MachineSet, name: ms, uid: u}]
spec: {size: 3}`,
		},
		"empty": {
			reason: "a template may leave everything to defaults",
			spec:   "{template: {}}",
			want: `apiVersion: i/v1
kind: FooMachine
metadata:
  namespace: ns
  name: m
  labels: {both: owner, set: ms, cluster.x-k8s.io/cluster-name: c}
  annotations: {note: owner, cluster.x-k8s.io/cloned-from-name: t, cluster.x-k8s.io/cloned-from-groupkind: FooMachineTemplate.i}
  ownerReferences: [{apiVersion: a/v1, kind: MachineSet, name: ms, uid: u}]
spec: {}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := New(request(t, tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	plain := request(t, "{template: {spec: {}}}")
	plain.Template.SetKind("FooMachine")
	for name, r := range map[string]Options{
		"not a template kind": plain, "no template": request(t, "{}"), "spec is a text": request(t, "{template: {spec: x}}"),
	} {
		if _, err := New(r); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRef(t *testing.T) {
	got := Ref(clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "t"}, "m")
	if got != (clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "m"}) {
		t.Errorf("got %+v", got)
	}
}

// TestSync: metadata follows its owner, whoever created the clone; the provider's and the template's stay.
func TestSync(t *testing.T) { // MS-08, MS-09
	ctx := context.Background()
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "FooMachine"}, &unstructured.Unstructured{})
	metav1.AddToGroupVersion(s, schema.GroupVersion{Group: "i", Version: "v1"})
	for name, create := range map[string]func(c client.Client, o *unstructured.Unstructured) error{
		"made here": func(c client.Client, o *unstructured.Unstructured) error {
			return kube.NewWriter(c, "x").WithManager("capi-x").CreateApplied(ctx, o)
		},
		"made by older one": func(c client.Client, o *unstructured.Unstructured) error {
			return c.Create(ctx, o, client.FieldOwner("manager"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(s).WithReturnManagedFields().Build()
			clone, err := New(request(t, "{template: {metadata: {labels: {t: '1'}}, spec: {size: 3}}}"))
			if err != nil {
				t.Fatal(err)
			}
			if err := create(c, clone); err != nil {
				t.Fatal(err)
			}
			w := Writers{Live: c, Creator: "capi-x", Metadata: "capi-x-metadata", Writer: kube.NewWriter(c, "x")}
			m := Metadata{Labels: map[string]string{"set": "ms", "new": "1"}, OldLabels: []string{"both"}, OldAnnotations: []string{"note"}}
			if m.IsCurrent(clone) {
				t.Error("what has to change is taken as kept")
			}
			for range 2 {
				if err := w.Sync(ctx, clone, m); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(clone), clone); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"set": "ms", "new": "1", "t": "1", clusterv1.ClusterNameLabel: "c"}
			if diff := cmp.Diff(want, clone.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if _, still := clone.GetAnnotations()["note"]; still || len(clone.GetAnnotations()) != 2 {
				t.Errorf("annotations %v", clone.GetAnnotations())
			}
			if size, _, _ := unstructured.NestedInt64(clone.Object, "spec", "size"); size != 3 || len(clone.GetOwnerReferences()) != 1 || !m.IsCurrent(clone) {
				t.Errorf("the rest changed: %v", clone.Object)
			}
			if err := w.Sync(ctx, object(t, "apiVersion: i/v1\nkind: FooMachine\nmetadata: {namespace: ns, name: gone}"), m); err != nil {
				t.Errorf("a clone that is gone: %v", err)
			}
		})
	}
}
