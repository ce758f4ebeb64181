package apiserver

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// CRDs returns the CRDs of these kinds that Slipway installs, or all of them if no kinds are given, for [Options].
func CRDs(t testing.TB, kinds ...string) []client.Object {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	var out []client.Object
	for _, crd := range all {
		if len(kinds) == 0 || slices.Contains(kinds, crd.Spec.Names.Kind) {
			out = append(out, crd)
		}
	}
	if len(out) < len(kinds) {
		t.Fatalf("only %d of the kinds %v exist", len(out), kinds)
	}
	return out
}

// Client returns an administrator's client for the kinds of a scheme.
func (s *Server) Client(t testing.TB, scheme *runtime.Scheme) client.Client {
	t.Helper()
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
