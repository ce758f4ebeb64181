package template

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonProvider is the reason when no infrastructure provider can be selected; Invalid.
const reasonProvider = "NoInfrastructureProvider"

// Installed returns the installed infrastructure provider with its version, whose template "slipway generate cluster"
// uses: the named one, or the only one. If none is recorded and the management cluster has the CRDs of the built-in
// provider, it returns the built-in one.
func Installed(ctx context.Context, c client.Client, name string) (provider.Reference, error) {
	installed, err := provider.ReadInventory(ctx, c)
	if err != nil {
		return provider.Reference{}, err
	}
	found := infrastructure(installed, name)
	if len(found) == 0 && name == "" && hasBuiltinCRDs(c) {
		return provider.Reference{Name: BuiltinName}, nil
	}
	return selectOnly(found, name)
}

// infrastructure returns the infrastructure providers in an inventory, without duplicates.
func infrastructure(installed []provider.Installed, name string) []provider.Reference {
	var out []provider.Reference
	for _, p := range installed {
		r := provider.Reference{Name: p.Name, Version: p.Version}
		if p.Type == provider.Infrastructure && (name == "" || name == r.Name) && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// hasBuiltinCRDs reports whether the management cluster has the CRDs of the built-in provider.
func hasBuiltinCRDs(c client.Client) bool {
	_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: localv1.GroupVersion.Group, Kind: "LocalCluster"})
	return err == nil
}

func selectOnly(found []provider.Reference, name string) (provider.Reference, error) {
	var names []string
	for _, r := range found {
		names = append(names, r.String())
	}
	slices.Sort(names)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return provider.Reference{}, fault.New(fault.Invalid, reasonProvider, "the management cluster has more than one infrastructure provider: %s; select one with --infrastructure", strings.Join(names, ", "))
	case name != "":
		return provider.Reference{}, fault.New(fault.Invalid, reasonProvider, "the infrastructure provider %s is not installed; specify its version: --infrastructure %s:VERSION", name, name)
	}
	return provider.Reference{}, fault.New(fault.Invalid, reasonProvider, "the management cluster has no infrastructure provider; specify one with --infrastructure NAME:VERSION, or a template with --from")
}
