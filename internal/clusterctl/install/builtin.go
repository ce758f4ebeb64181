package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// clusterctlNames maps the built-in providers to the well-known providers of clusterctl. Only these are recorded.
func clusterctlNames() map[providerset.Name]provider.Provider {
	return map[providerset.Name]provider.Provider{
		providerset.Core:                {Type: provider.Core, Name: provider.CoreName},
		providerset.BootstrapKubeadm:    {Type: provider.Bootstrap, Name: "kubeadm"},
		providerset.ControlPlaneKubeadm: {Type: provider.ControlPlane, Name: "kubeadm"},
	}
}

// RunningBuiltin describes the built-in providers that run. `slipway up` fills it in for [RecordBuiltin].
type RunningBuiltin struct {
	Sets []providerset.Set
	// Version is the Cluster API version that they implement.
	Version string
	// Namespace is the namespace of the manager.
	Namespace string
}

// inventoryProviders returns the inventory objects for the running providers.
func (r RunningBuiltin) inventoryProviders() []provider.Installed {
	var out []provider.Installed
	for _, set := range r.Sets {
		if k, is := clusterctlNames()[set.Name]; is {
			out = append(out, provider.Installed{Namespace: r.Namespace, Name: k.Name, Type: k.Type, Version: r.Version, BuiltIn: true})
		}
	}
	return out
}

// builtinSteps returns the steps that update the inventory; recorded is its current content
// ([provider.ReadProviderObjects]).
func builtinSteps(running RunningBuiltin, recorded []provider.Installed) []Step {
	wanted := slices.DeleteFunc(running.inventoryProviders(), func(w provider.Installed) bool {
		return slices.ContainsFunc(recorded, func(p provider.Installed) bool { return !p.BuiltIn && p.Label() == w.Label() })
	})
	var out []Step
	for _, p := range recorded {
		isWanted := slices.ContainsFunc(wanted, func(w provider.Installed) bool { return w.Label() == p.Label() && w.Namespace == p.Namespace })
		if p.BuiltIn && !isWanted {
			out = append(out, Step{Verb: Delete, Object: p.Object(), Why: "it is no longer built in"})
		}
	}
	for _, w := range wanted {
		if !slices.Contains(recorded, w) {
			out = append(out, Step{Verb: Apply, Object: w.Object(), Why: "it is built in"})
		}
	}
	return out
}

// RecordBuiltin updates the inventory with administrator access, at each start of `slipway up`. The package
// documentation has the rules. It writes nothing if none of the well-known providers runs or is recorded.
func RecordBuiltin(ctx context.Context, admin *rest.Config, running RunningBuiltin) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to record the built-in providers: %w", err)
	}
	recorded, err := provider.ReadProviderObjects(ctx, c)
	if err != nil {
		return err
	}
	steps := builtinSteps(running, recorded)
	if len(steps) == 0 {
		return nil
	}
	crd := []Step{{Verb: Apply, Object: provider.InventoryCRD()}, {Verb: Serve, Object: provider.InventoryCRD()}}
	if err := (Runner{Client: c}).Run(ctx, Plan{Steps: append(crd, steps...)}); err != nil {
		return fmt.Errorf("recording the built-in providers: %w", err)
	}
	return nil
}
