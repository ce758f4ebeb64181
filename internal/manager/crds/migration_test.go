package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const crdName = "things.test.slipway.dev"

// thing is a CRD that stores v1 and serves v1 and v2.
func thing() *apiextensionsv1.CustomResourceDefinition {
	open := true
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
			},
		}
	}
	c := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	c.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "test.slipway.dev", Scope: apiextensionsv1.NamespaceScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
	}
	return c
}

func thingObject(version, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "b"}}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.slipway.dev", Version: version, Kind: "Thing"})
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

type bench struct {
	t *testing.T
	client.Client
	m *crds.Migrator
}

func newBench(t *testing.T) bench {
	t.Helper()
	srv := apiserver.Start(t, apiserver.Options{Objects: []client.Object{thing()}})
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(srv.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return bench{t: t, Client: c, m: crds.NewMigrator(c, c, map[string]crds.Access{crdName: {Reader: c, Client: c}}, nil)}
}

func (b bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b bench) crd() *apiextensionsv1.CustomResourceDefinition {
	b.t.Helper()
	c := &apiextensionsv1.CustomResourceDefinition{}
	b.must(b.Get(b.t.Context(), client.ObjectKey{Name: crdName}, c))
	return c
}

// change changes the versions of the CRD and waits until the API server serves them.
func (b bench) change(f func([]apiextensionsv1.CustomResourceDefinitionVersion)) {
	b.t.Helper()
	c := b.crd()
	f(c.Spec.Versions)
	b.must(b.Update(b.t.Context(), c))
}

func (b bench) live(version, name string) *unstructured.Unstructured {
	b.t.Helper()
	u := thingObject(version, name)
	b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(u), u))
	return u
}

// until polls a fact about the API server.
func (b bench) until(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.t.Fatal(what)
}

// remember adds an entry of managed fields in a version.
func (b bench) remember(name, version string) {
	b.t.Helper()
	u := b.live("v2", name)
	entry := metav1.ManagedFieldsEntry{
		Manager: "old", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "test.slipway.dev/" + version,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:a":{}}}`)},
	}
	data, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": append(u.GetManagedFields(), entry)}})
	b.must(err)
	b.must(b.Patch(b.t.Context(), u, client.RawPatch(types.JSONPatchType, data)))
}

func managers(u *unstructured.Unstructured) []string {
	var out []string
	for _, e := range u.GetManagedFields() {
		out = append(out, fmt.Sprintf("%s %s", e.Manager, e.APIVersion))
	}
	return out
}

// TestMigration follows a CRD from one stored version to the next, until the older one is not served any more.
func TestMigration(t *testing.T) { // CM-01, CM-02, CM-03
	b := newBench(t)
	for i := range 3 {
		b.must(b.Create(t.Context(), thingObject("v1", fmt.Sprint("o", i)), client.FieldOwner("user")))
	}
	before := b.live("v1", "o0").GetResourceVersion()
	b.must(b.m.Migrate(t.Context(), logr.Discard()))
	if c := b.crd(); len(c.Annotations) != 0 {
		t.Errorf("a CRD that never changed has nothing to migrate: %v", c.Annotations)
	}

	b.change(func(v []apiextensionsv1.CustomResourceDefinitionVersion) { v[0].Storage, v[1].Storage = false, true })
	b.until("both versions are stored", func() bool { return len(b.crd().Status.StoredVersions) == 2 })
	b.until("the new version is written", func() bool { // the API server takes a moment to follow
		b.must(b.m.Migrate(t.Context(), logr.Discard()))
		if b.live("v2", "o0").GetResourceVersion() != before {
			return true
		}
		c := b.crd()
		c.Annotations = nil
		c.Status.StoredVersions = []string{"v1", "v2"}
		b.must(b.Update(t.Context(), c.DeepCopy()))
		c.ResourceVersion = b.crd().ResourceVersion
		b.must(b.Status().Update(t.Context(), c))
		return false
	})
	c := b.crd()
	if diff := cmp.Diff([]string{"v2"}, c.Status.StoredVersions); diff != "" {
		t.Errorf("stored versions (-want +got):\n%s", diff)
	}
	if got := c.Annotations["crd-migration.cluster.x-k8s.io/observed-generation"]; got != fmt.Sprint(c.Generation) {
		t.Errorf("observed generation %q of %d", got, c.Generation)
	}
	settled := b.live("v2", "o1").GetResourceVersion()
	b.must(b.m.Migrate(t.Context(), logr.Discard()))
	if b.live("v2", "o1").GetResourceVersion() != settled || b.crd().ResourceVersion != c.ResourceVersion {
		t.Error("CM-03: a generation is migrated once")
	}
	b.unserve()
}

// unserve ends version v1, which some objects remember.
func (b bench) unserve() {
	b.t.Helper()
	b.remember("o0", "v1")
	b.change(func(v []apiextensionsv1.CustomResourceDefinitionVersion) { v[0].Served = false })
	b.must(b.m.Migrate(b.t.Context(), logr.Discard()))
	for _, name := range []string{"o0", "o1"} { // o1 was only ever written in v1
		for _, m := range managers(b.live("v2", name)) {
			if m == "old test.slipway.dev/v1" || m == "user test.slipway.dev/v1" {
				b.t.Errorf("CM-02: %s still remembers %s", name, m)
			}
		}
		if u := b.live("v2", name); u.Object["spec"].(map[string]any)["a"] != "b" {
			b.t.Errorf("%s says something else: %v", name, u.Object["spec"])
		}
	}
}

func TestSkipAll(t *testing.T) { // CM-03
	m := crds.NewMigrator(nil, nil, nil, []crds.Phase{"All"})
	if err := m.Migrate(context.Background(), logr.Discard()); err != nil {
		t.Errorf("nothing is read: %v", err)
	}
}
