package providerupgrade

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Change is the upgrade of a provider. `slipway upgrade apply` fills it in for the functions of this package.
type Change struct {
	// From is the inventory entry of the installed provider.
	From provider.Installed
	// To are the components of the target version.
	To install.LoadedProvider
	// Former are the components of the installed version; nil if they can no longer be read.
	Former *install.LoadedProvider
	// Present are the installed objects; only their kinds and names are used.
	Present []*unstructured.Unstructured
}

// StorageVersions has the storage versions of a CRD in the management cluster. [ReadStored] returns it, and
// [PlanUpgrade] migrates objects or rejects the upgrade by it.
type StorageVersions struct {
	// Current is the current storage version.
	Current string
	// All are all versions in which objects may be stored.
	All []string
}

// OtherContracts are the contracts of the providers that are not upgraded, by label. An empty contract is unknown,
// because the release of the installed version cannot be read. `slipway upgrade apply` fills it in for [CheckUpgrade].
type OtherContracts map[string]string

// Records returns the inventory entries of the changes. `slipway upgrade apply` reads their objects from the management
// cluster.
func Records(changes []Change) []provider.Installed {
	var out []provider.Installed
	for _, c := range changes {
		out = append(out, c.From)
	}
	return out
}

// CheckUpgrade rejects versions that are incompatible with each other or with the providers that are not upgraded. A
// provider with an unknown contract is accepted if the contract of the core provider does not change. `slipway upgrade
// apply` calls it before it makes the plan.
func CheckUpgrade(changes []Change, others OtherContracts, core string) error {
	var items []install.LoadedProvider
	before := core
	for _, c := range changes {
		items = append(items, c.To)
		if c.From.Label() == coreLabel {
			core = c.To.Contract
		}
	}
	if core == "" {
		return install.Check(items, core) // reports the missing core provider
	}
	var problems []string
	for label, contract := range others {
		if contract == "" && core == before {
			continue
		}
		if contract == "" {
			problems = append(problems, label+" is not upgraded and its contract is unknown")
			continue
		}
		if !slices.Contains(repository.CompatibleContracts(core), contract) {
			problems = append(problems, label+" is not upgraded and has contract "+contract)
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return fault.New(fault.Invalid, install.ReasonContract, "the core provider will have contract %s, but %s; upgrade these providers with the same command",
			core, strings.Join(problems, "; "))
	}
	return install.Check(items, core)
}

// coreLabel is the label of the core provider.
const coreLabel = "cluster-api"

// PlanUpgrade computes the plan of "slipway upgrade apply", in the order of the package documentation.
func PlanUpgrade(changes []Change, stored map[string]StorageVersions, s install.InstallOptions) (install.Plan, error) {
	var p install.Plan
	if len(changes) == 0 {
		return p, nil
	}
	add := func(steps ...install.Step) { p.Steps = append(p.Steps, steps...) }
	for _, c := range changes {
		begun := c.From
		begun.TargetVersion, begun.Applied, begun.UpdatedAt = c.To.Version, c.isApplied(), s.UpdatedAt
		add(install.Step{Verb: install.Apply, Provider: c.From.Label(), Object: begun.Object(), Why: "the upgrade to " + c.To.Version + " starts"})
	}
	for _, c := range changes {
		steps, err := migrations(c, stored)
		if err != nil {
			return install.Plan{}, err
		}
		add(steps...)
	}
	add(s.Before...)
	for _, c := range changes {
		for _, o := range c.Present {
			if o.GetKind() == "Deployment" && (!c.isApplied() || !containsObject(c.To.Objects, o)) {
				add(install.Step{Verb: install.Stop, Provider: c.From.Label(), Object: o, Why: "two versions must not run at the same time"})
			}
		}
	}
	for _, c := range changes {
		add(deleteObsolete(c)...)
		add(setReplicas(install.ComponentSteps(c.To, s.Builtin))...)
		if s.Wait {
			add(c.applied(s))
		} else {
			add(c.complete(s))
		}
	}
	if s.Wait {
		for _, c := range changes {
			add(install.WaitSteps(c.To)...)
		}
		for _, c := range changes {
			add(c.complete(s)) // last, so that the same command repeats an interrupted wait and can still reverse the upgrade
		}
	}
	return p, nil
}

// isApplied reports whether an earlier command has installed the new version, and was interrupted during the wait.
func (c Change) isApplied() bool { return c.From.Applied && c.From.TargetVersion == c.To.Version }

// applied returns the step that records the installation of the new version.
func (c Change) applied(s install.InstallOptions) install.Step {
	record := c.From
	record.TargetVersion, record.Applied, record.UpdatedAt = c.To.Version, true, s.UpdatedAt
	return install.Step{Verb: install.Apply, Provider: c.From.Label(), Object: record.Object(), Why: c.To.Version + " is installed, but not available yet"}
}

// complete returns the step that completes the upgrade of a provider.
func (c Change) complete(s install.InstallOptions) install.Step {
	record := c.To.Record()
	record.UpdatedAt = s.UpdatedAt
	return install.Step{Verb: install.Apply, Provider: c.From.Label(), Object: record.Object(), Why: "the upgrade is complete"}
}

// PlanRollback computes the plan that reverses an upgrade, or returns the reason why it cannot be reversed. The command
// executes it if the new versions do not become available.
func PlanRollback(changes []Change, s install.InstallOptions) (install.Plan, string, error) {
	var out []Change
	for _, c := range changes {
		if c.Former == nil {
			return install.Plan{}, fmt.Sprintf("the components of %s %s cannot be read", c.From.Label(), c.From.Version), nil
		}
		if why := storageVersionChange(*c.Former, c.To); why != "" {
			return install.Plan{}, why, nil
		}
		back := Change{From: c.From, To: *c.Former, Present: slices.Clone(c.Present)}
		for _, o := range c.To.Objects {
			if !containsObject(back.Present, o) {
				back.Present = append(back.Present, o)
			}
		}
		out = append(out, back)
	}
	s.Before, s.Wait = nil, false
	p, err := PlanUpgrade(out, nil, s)
	return p, "", err
}

// storageVersionChange describes a CRD whose storage version differs in the new version; empty if there is none.
func storageVersionChange(former, next install.LoadedProvider) string {
	before := map[string]string{}
	for _, o := range former.Objects {
		if crd := definition(o); crd != nil {
			before[o.GetName()] = storage(crd)
		}
	}
	for _, o := range next.Objects {
		crd := definition(o)
		if crd == nil {
			continue
		}
		if was, known := before[o.GetName()]; known && was != storage(crd) {
			return fmt.Sprintf("%s %s stores the objects of CRD %s in version %s, but %s stores them in version %s", next.Provider.Label(), next.Version, o.GetName(), storage(crd), former.Version, was)
		}
	}
	return ""
}

// migrations returns the steps for CRDs that may have objects stored in versions that the new CRD lacks.
func migrations(c Change, stored map[string]StorageVersions) ([]install.Step, error) {
	var out []install.Step
	for _, o := range c.To.Objects {
		crd, live := definition(o), stored[o.GetName()]
		if crd == nil || live.Current == "" {
			continue
		}
		if !hasVersion(crd, live.Current) {
			return nil, fault.New(fault.Invalid, reasonStoredVersion,
				"objects of CRD %s are stored in version %s, which %s %s does not have; upgrade to an intermediate version that has both", o.GetName(), live.Current, c.From.Label(), c.To.Version)
		}
		if slices.ContainsFunc(live.All, func(v string) bool { return !hasVersion(crd, v) }) {
			out = append(out, install.Step{Verb: install.Migrate, Provider: c.From.Label(), Object: o, Why: "the new CRD does not have all stored versions"})
		}
	}
	return out, nil
}

// deleteObsolete returns steps that delete the objects missing in the new version. Namespaces, CRDs and volumes are
// retained, as when a provider is deleted.
func deleteObsolete(c Change) []install.Step {
	var out []install.Step
	ordered := repository.InstallOrder(c.Present)
	slices.Reverse(ordered)
	for _, o := range ordered {
		if slices.Contains([]string{"Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume"}, o.GetKind()) || containsObject(c.To.Objects, o) {
			continue
		}
		out = append(out, install.Step{Verb: install.Delete, Provider: c.From.Label(), Object: o, Why: c.To.Version + " does not include it"})
	}
	return out
}

// setReplicas sets the replicas of Deployments that do not specify them, because the Deployments were stopped.
func setReplicas(steps []install.Step) []install.Step {
	for i, s := range steps {
		if s.Verb != install.Apply || s.Object.GetKind() != "Deployment" {
			continue
		}
		if _, set, err := unstructured.NestedFieldNoCopy(s.Object.Object, "spec", "replicas"); set || err != nil {
			continue
		}
		o := s.Object.DeepCopy()
		if err := unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas"); err == nil {
			steps[i].Object = o
		}
	}
	return steps
}

// containsObject reports whether the objects include one of the same kind and name, in any version.
func containsObject(objects []*unstructured.Unstructured, o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool {
		return other.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() && other.GetName() == o.GetName() && other.GetNamespace() == o.GetNamespace()
	})
}

// definition converts a CRD; it returns nil for other objects.
func definition(o *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := decode(o, crd); err != nil {
		return nil // the API server will report the error
	}
	return crd
}

func storage(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

func hasVersion(crd *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}
