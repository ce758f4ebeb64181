package provider

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/providerupgrade"
	"github.com/slipwayhq/slipway/internal/fault"
)

// RT-25: an upgrade of the core is refused while an extension serves a hook that this version cannot call. Other providers call no extensions.
func TestExtensionsHoldBackTheCore(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := runtimev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	extension := func(hook string) *runtimev1.ExtensionConfig {
		c := &runtimev1.ExtensionConfig{}
		c.Name = "audit"
		c.Status.Handlers = []runtimev1.ExtensionHandler{{Name: "a.audit", RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: hook}}}
		return c
	}
	for name, tc := range map[string]struct {
		of      provider.Type
		hook    string
		refused bool
	}{
		"core, unknown hook":  {provider.Core, "BeforeLunch", true},
		"core, known hook":    {provider.Core, "BeforeClusterCreate", false},
		"other, unknown hook": {provider.Infrastructure, "BeforeLunch", false},
	} {
		w := &upgradeRun{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(extension(tc.hook)).Build()}
		w.changes = []providerupgrade.Change{{From: provider.Installed{Type: tc.of}}}
		err := w.checkExtensions(t.Context())
		if (err != nil) != tc.refused || tc.refused && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "before you upgrade")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
