package install

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// DeletionOptions selects what to delete with a provider. `slipway delete` fills it in from its flags.
type DeletionOptions struct {
	// Namespaces deletes the namespaces with their content.
	Namespaces bool
	// CRDs deletes the CRDs with all their objects, including Clusters.
	CRDs bool
}

// InstalledProvider is a provider with its installed objects. [Objects] returns it for [Uninstall].
type InstalledProvider struct {
	provider.Installed
	Objects []*unstructured.Unstructured
}

// SelectForDeletion returns the installed providers that "slipway delete" deletes, from its flags.
func SelectForDeletion(named map[provider.Type][]string, all bool, installed []provider.Installed, builtin []providerset.Name) ([]provider.Installed, error) {
	if all {
		if len(named) > 0 {
			return nil, fault.New(fault.Invalid, ReasonRequest, "--all selects every provider; omit either --all or the provider flags")
		}
		return installed, nil
	}
	if len(named) == 0 {
		return nil, fault.New(fault.Invalid, ReasonRequest, "no provider is specified; specify one, for example with --infrastructure NAME, or all with --all")
	}
	var out []provider.Installed
	for _, t := range provider.Types() {
		for _, name := range named[t] {
			ref, err := provider.ParseReference(name)
			if err != nil {
				return nil, err
			}
			if slices.Contains(builtin, providerset.Name(t.Label(ref.Name))) {
				return nil, fault.New(fault.Invalid, ReasonBuiltIn,
					"provider %s is built into this management cluster; to remove it, start the management cluster with `slipway up --without %s`", t.Label(ref.Name), t.Label(ref.Name))
			}
			found := slices.DeleteFunc(provider.FindInstalled(installed, t, ref.Name), func(p provider.Installed) bool {
				return ref.Namespace != "" && p.Namespace != ref.Namespace || ref.Version != "" && p.Current() != ref.Version
			})
			if len(found) == 0 {
				return nil, fault.New(fault.Gone, "ProviderNotInstalled", "provider %s is not installed; installed providers: %s. To delete the CRDs and Namespaces that an earlier deletion retained, run \"kubectl delete crd -l cluster.x-k8s.io/provider=%s\" and \"kubectl delete namespace NAMESPACE\"",
					t.Label(ref.String()), listed(installed), t.Label(ref.Name))
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func listed(installed []provider.Installed) string {
	if len(installed) == 0 {
		return "none"
	}
	var out string
	for n, p := range installed {
		if n > 0 {
			out += ", "
		}
		out += p.Label() + " " + p.Current()
	}
	return out
}

// Uninstall plans the deletion of providers for "slipway delete", in the reverse of [repository.InstallOrder]. The
// inventory object is deleted after all objects except Namespaces, so that the command can be repeated after an
// interruption.
//
//	webhook configurations   would reject the following deletions
//	Deployments              would recreate other objects
//	everything else          in reverse creation order
//	CRDs                     if requested
//	the inventory object
//	Namespaces               if requested; one of them contains the inventory object
func Uninstall(providers []InstalledProvider, d DeletionOptions) Plan {
	var p Plan
	providers = slices.Clone(providers)
	slices.SortStableFunc(providers, func(a, b InstalledProvider) int { return provider.CompareInstalled(b.Installed, a.Installed) })
	for _, i := range providers {
		objects := repository.InstallOrder(i.Objects)
		slices.Reverse(objects)
		kept := map[string]int{}
		for _, o := range objects {
			kind := o.GetKind()
			if kind == "Namespace" && !d.Namespaces || kind == "CustomResourceDefinition" && !d.CRDs {
				kept[kind]++
				continue
			}
			if kind == "Namespace" {
				continue // after the inventory object in it
			}
			p.add(Step{Verb: Delete, Provider: i.Label(), Object: o})
		}
		for _, kind := range []string{"CustomResourceDefinition", "Namespace"} {
			if n := kept[kind]; n > 0 {
				p.Notes = append(p.Notes, fmt.Sprintf("The deletion of provider %s retains %d %s.", i.Label(), n, plural(kind, n)))
			}
		}
		p.add(Step{Verb: Delete, Provider: i.Label(), Object: i.Object(), Why: "deleted last, so that the command can be repeated"})
		for _, o := range objects {
			if o.GetKind() == "Namespace" && d.Namespaces {
				p.add(Step{Verb: Delete, Provider: i.Label(), Object: o})
			}
		}
	}
	return p
}

func plural(kind string, n int) string {
	if n == 1 {
		return kind
	}
	return kind + "s"
}
