package builtin

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// clusterctlNames maps the built-in providers to the well-known providers of clusterctl.
func clusterctlNames() map[providerset.Name]provider.Provider {
	return map[providerset.Name]provider.Provider{
		providerset.Core:                {Type: provider.Core, Name: provider.CoreName},
		providerset.BootstrapKubeadm:    {Type: provider.Bootstrap, Name: "kubeadm"},
		providerset.ControlPlaneKubeadm: {Type: provider.ControlPlane, Name: "kubeadm"},
	}
}

// Running describes the built-in providers that run.
type Running struct {
	Sets []providerset.Set
	// Version is the Cluster API version that they implement.
	Version string
	// Namespace is the namespace of the manager.
	Namespace string
}

// inventoryProviders returns the inventory objects for the running providers.
func (r Running) inventoryProviders() []inventory.Provider {
	var out []inventory.Provider
	for _, set := range r.Sets {
		if k, is := clusterctlNames()[set.Name]; is {
			out = append(out, inventory.Provider{Namespace: r.Namespace, Name: k.Name, Type: k.Type, Version: r.Version, BuiltIn: true})
		}
	}
	return out
}

// Steps returns the steps that update the inventory; recorded is its current content ([inventory.ReadAll]).
func Steps(running Running, recorded []inventory.Provider) []installation.Step {
	wanted := slices.DeleteFunc(running.inventoryProviders(), func(w inventory.Provider) bool {
		return slices.ContainsFunc(recorded, func(p inventory.Provider) bool { return !p.BuiltIn && p.Label() == w.Label() })
	})
	var out []installation.Step
	for _, p := range recorded {
		isWanted := slices.ContainsFunc(wanted, func(w inventory.Provider) bool { return w.Label() == p.Label() && w.Namespace == p.Namespace })
		if p.BuiltIn && !isWanted {
			out = append(out, installation.Step{Verb: installation.Delete, Object: p.Object(), Why: "it is not built in any more"})
		}
	}
	for _, w := range wanted {
		if !slices.Contains(recorded, w) {
			out = append(out, installation.Step{Verb: installation.Apply, Object: w.Object(), Why: "it is built in"})
		}
	}
	return out
}

// Record updates the inventory with administrator access. It writes nothing if none of the well-known providers runs or
// is recorded.
func Record(ctx context.Context, admin *rest.Config, running Running) error {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to record the providers that are built in: %w", err)
	}
	recorded, err := inventory.ReadAll(ctx, c)
	if err != nil {
		return err
	}
	steps := Steps(running, recorded)
	if len(steps) == 0 {
		return nil
	}
	crd := []installation.Step{{Verb: installation.Apply, Object: inventory.CRD()}, {Verb: installation.Serve, Object: inventory.CRD()}}
	if err := (installation.Runner{Client: c}).Run(ctx, installation.Plan{Steps: append(crd, steps...)}); err != nil {
		return fmt.Errorf("recording the providers that are built in: %w", err)
	}
	return nil
}
