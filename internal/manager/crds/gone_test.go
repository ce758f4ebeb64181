package crds_test

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A manager that starts while its CRDs are being deleted installs them again once they are gone, and does not wait for those that objects
// with finalizers keep: it is the one that removes them.
func TestCRDsThatAreBeingDeleted(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, options := server.Client(t, scheme), crds.Options{Sets: providerset.All()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(crds.Install(t.Context(), c, options))
	kept := object("LocalCluster", "kept")
	kept.SetFinalizers([]string{"example.com/kept"})
	must(c.Create(t.Context(), kept))
	must(c.Create(t.Context(), object("LocalMachine", "goes")))
	deleted := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range []string{"localclusters.infrastructure.slipway.dev", "localmachines.infrastructure.slipway.dev", "localmachinepools.infrastructure.slipway.dev"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(c.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		if name == "localmachinepools.infrastructure.slipway.dev" {
			crd.Finalizers = append(crd.Finalizers, "example.com/kept")
			must(c.Update(t.Context(), crd))
		}
		must(c.Delete(t.Context(), crd))
		deleted[name] = crd
	}
	must(crds.Install(t.Context(), c, options))
	for name, before := range deleted {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(c.Get(t.Context(), client.ObjectKey{Name: name}, crd))
		again, wanted := crd.UID != before.UID, name == "localmachines.infrastructure.slipway.dev"
		if again != wanted || crd.DeletionTimestamp.IsZero() != wanted {
			t.Errorf("%s: installed again %t, being deleted since %v", name, again, crd.DeletionTimestamp)
		}
	}
	installed := make(chan error, 1)
	must(c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	kept.SetFinalizers(nil)
	must(c.Update(t.Context(), kept))
	go func() { installed <- crds.Install(t.Context(), c, options) }()
	select {
	case err := <-installed:
		must(err)
	case <-time.After(time.Minute):
		t.Fatal("it waits for what is gone")
	}
	must(c.Create(t.Context(), object("LocalCluster", "again")))
}

func object(kind, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("infrastructure.slipway.dev/v1alpha1")
	out.SetKind(kind)
	out.SetNamespace("default")
	out.SetName(name)
	if kind == "LocalCluster" {
		out.Object["spec"] = map[string]any{"backend": map[string]any{"simulated": map[string]any{}}}
	}
	if kind == "LocalMachine" {
		out.Object["spec"] = map[string]any{"backend": map[string]any{"simulated": map[string]any{}}}
	}
	return out
}
