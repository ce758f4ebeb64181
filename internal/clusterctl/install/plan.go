package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// skipCRDName is the annotation of the clusterctl contract on a CRD whose name is not checked.
const skipCRDName = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check"

// LoadedProvider is a provider to install: its objects, and the contract of its version. [ProviderLoader] returns it.
// [Install] and package providerupgrade plan its steps.
type LoadedProvider struct {
	*repository.Components
	Contract string
}

// Record returns the inventory entry of the provider. Package providerupgrade writes it at the end of an upgrade.
func (i LoadedProvider) Record() provider.Installed {
	return provider.Installed{Namespace: i.TargetNamespace, Name: i.Provider.Name, Type: i.Provider.Type, Version: i.Version}
}

// ClusterState is the state of the management cluster. [ReadCluster] fills it in, and [Install] checks the new
// providers against it.
type ClusterState struct {
	Installed []provider.Installed
	// Contract is the contract of the installed or built-in core provider; empty if there is none.
	Contract string
}

// InstallOptions are the options of an installation. `slipway init` and `slipway upgrade apply` fill them in.
type InstallOptions struct {
	// SkipChecks disables the compatibility checks.
	SkipChecks bool
	// Wait waits until all Deployments are available.
	Wait bool
	// Builtin means that Slipway itself satisfies the cert-manager objects.
	Builtin bool
	// Before are steps, for example for cert-manager, that are inserted before the first provider.
	Before []Step
	// UpdatedAt is the timestamp for the inventory objects.
	UpdatedAt string
}

// Install plans the installation of providers for "slipway init":
//
//	the CRD of the inventory, namespaces, incomplete inventory objects
//	the prerequisites: cert-manager
//	for each provider: its objects in order, its certificates
//	optionally: wait until Deployments are available
//	for each provider: complete its inventory object; without a wait, right after its objects
func Install(items []LoadedProvider, state ClusterState, s InstallOptions) (Plan, error) {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b LoadedProvider) int { return provider.Compare(a.Provider, b.Provider) })
	if err := checkInstalled(items, state.Installed); err != nil {
		return Plan{}, err
	}
	if !s.SkipChecks {
		if err := Check(items, state.Contract); err != nil {
			return Plan{}, err
		}
	}
	var p Plan
	if len(items) == 0 {
		return p, nil
	}
	p.add(Step{Verb: Apply, Object: provider.InventoryCRD()}, Step{Verb: Serve, Object: provider.InventoryCRD()})
	for _, i := range items {
		for _, o := range i.Objects {
			if o.GetKind() == "Namespace" {
				p.add(Step{Verb: Apply, Provider: i.Provider.Label(), Object: o})
			}
		}
		begun := i.Record()
		begun.Installing, begun.UpdatedAt = true, s.UpdatedAt
		p.add(Step{Verb: Apply, Provider: i.Provider.Label(), Object: begun.Object(), Why: "the installation starts"})
	}
	p.add(s.Before...)
	for _, i := range items {
		p.add(ComponentSteps(i, s.Builtin)...)
		if !s.Wait {
			p.add(i.complete(s))
		}
	}
	if s.Wait {
		for _, i := range items {
			p.add(WaitSteps(i)...)
		}
		for _, i := range items {
			p.add(i.complete(s)) // last, so that the same command repeats an interrupted wait
		}
	}
	return p, nil
}

// complete returns the step that completes the installation of a provider.
func (i LoadedProvider) complete(s InstallOptions) Step {
	done := i.Record()
	done.UpdatedAt = s.UpdatedAt
	return Step{Verb: Apply, Provider: i.Provider.Label(), Object: done.Object(), Why: "the installation is complete"}
}

// ComponentSteps returns the steps for the objects of a provider, without its Namespace. Plans of upgrades (package
// providerupgrade) contain them as well.
func ComponentSteps(i LoadedProvider, builtin bool) []Step {
	var out, serve []Step
	flush := func() { out, serve = append(out, serve...), nil }
	certify := Step{Verb: certify, Provider: i.Provider.Label()}
	certificates := false
	for _, o := range repository.InstallOrder(i.Objects) {
		if o.GetKind() == "Namespace" {
			continue
		}
		if o.GetKind() != "CustomResourceDefinition" {
			flush()
		}
		isCertificate := usesCertManager(o)
		if certificates && !isCertificate && out[len(out)-1].Verb == Apply && usesCertManager(out[len(out)-1].Object) && builtin {
			out = append(out, certify) // before the Pods that use the Secrets
		}
		certificates = certificates || isCertificate
		out = append(out, Step{Verb: Apply, Provider: i.Provider.Label(), Object: o})
		if o.GetKind() == "CustomResourceDefinition" {
			serve = append(serve, Step{Verb: Serve, Provider: i.Provider.Label(), Object: o})
		}
	}
	flush()
	if certificates && builtin {
		out = append(out, certify) // also injects the CA into the webhook configurations
	}
	return out
}

// WaitSteps returns the steps that wait for a provider. [Install] and package providerupgrade call it.
func WaitSteps(i LoadedProvider) []Step {
	var out []Step
	for _, o := range i.Objects {
		if o.GetKind() == "Deployment" {
			out = append(out, Step{Verb: Await, Provider: i.Provider.Label(), Object: o})
		}
	}
	return out
}

// UsesCertManager reports whether a provider needs cert-manager, or a replacement. `slipway init` calls it to decide
// whether the certificate steps are necessary.
func UsesCertManager(items []LoadedProvider) bool {
	return slices.ContainsFunc(items, func(i LoadedProvider) bool { return slices.ContainsFunc(i.Objects, usesCertManager) })
}

func usesCertManager(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == "cert-manager.io"
}

// checkInstalled returns an error if a provider is named twice, or is already installed. The items must be sorted, so
// that equal providers are adjacent.
func checkInstalled(items []LoadedProvider, installed []provider.Installed) error {
	for n, i := range items {
		if n > 0 && items[n-1].Provider.Label() == i.Provider.Label() {
			return fault.New(fault.Invalid, ReasonRequest, "provider %s is specified twice; a management cluster can have only one instance of it", i.Provider.Label())
		}
		if n > 0 && i.Provider.Type == provider.Core && items[n-1].Provider.Type == provider.Core {
			return fault.New(fault.Invalid, ReasonRequest, "two core providers are specified; a management cluster can have only one")
		}
		for _, p := range provider.FindInstalled(installed, i.Provider.Type, i.Provider.Name) {
			switch {
			case p.Installing && p.Version == i.Version && p.Namespace == i.TargetNamespace:
			case p.Installing:
				return fault.New(fault.Invalid, ReasonInstalled,
					"the installation of provider %s %s in namespace %s is incomplete; to complete it, run init without a version and a namespace for this provider, or delete the provider with `slipway delete --%s %s`",
					p.Label(), p.Version, p.Namespace, p.Type.Flag(), p.Name)
			case p.Namespace == i.TargetNamespace:
				return fault.New(fault.Invalid, ReasonInstalled, "provider %s is already installed in namespace %s with version %s; run `slipway upgrade apply` to change its version",
					p.Label(), p.Namespace, p.Version)
			default:
				return fault.New(fault.Invalid, ReasonInstalled, "provider %s is already installed in namespace %s; a management cluster can have only one instance of it", p.Label(), p.Namespace)
			}
		}
	}
	return nil
}

// Check rejects providers with incompatible contracts, and CRDs whose names do not match their kinds. core is the
// contract of the existing core provider; a core provider among the items overrides it. [Install] calls it for new
// providers, and package providerupgrade for upgrades.
func Check(items []LoadedProvider, core string) error {
	for _, i := range items {
		if i.Provider.Type == provider.Core {
			core = i.Contract
		}
	}
	if core == "" {
		return fault.New(fault.Invalid, ReasonRequest, "the management cluster has no core provider; add one with --core %s", provider.CoreName)
	}
	fits := repository.CompatibleContracts(core)
	var problems []string
	for _, i := range items {
		if !slices.Contains(fits, i.Contract) {
			problems = append(problems, i.Provider.Label()+" "+i.Version+" has contract "+i.Contract)
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.Invalid, ReasonContract, "the core provider has contract %s, which is compatible with %s, but %s; specify other versions",
			core, strings.Join(fits, " and "), strings.Join(problems, "; "))
	}
	if core != repository.Contract {
		return fault.New(fault.Invalid, ReasonContract, "the core provider has contract %s, but this version of slipway supports %s; specify another version of the core provider", core, repository.Contract)
	}
	return checkCRDNames(items)
}

func checkCRDNames(items []LoadedProvider) error {
	var problems []string
	for _, i := range items {
		for _, o := range i.Objects {
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if _, skip := o.GetAnnotations()[skipCRDName]; skip {
				continue
			}
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			if want := contract.CRDName(group, kind); want != o.GetName() {
				problems = append(problems, i.Provider.Label()+" has "+o.GetName()+" instead of "+want)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, reasonCRDName,
		"the names of CRDs do not match their kinds, so the core provider cannot find them: %s; use a version with matching names, or set the annotation %s on CRDs that no Cluster refers to",
		strings.Join(problems, "; "), skipCRDName)
}
