package providerupgrade

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/component"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Change is a provider that gets another version.
type Change struct {
	// From is the record of what is installed.
	From inventory.Provider
	// To are the components of the version that it is to have.
	To installation.Item
	// Former are the components of the version that it had; nil: they cannot be read any more.
	Former *installation.Item
	// Present are the objects that are installed; only their kinds and names count.
	Present []*unstructured.Unstructured
}

// Stored says in which versions a CRD of the management cluster stores objects.
type Stored struct {
	// Now is the version of what is written.
	Now string
	// Ever are the versions in which there may be objects.
	Ever []string
}

// Others are the contracts of the providers that stay as they are, by label. An empty one is unknown, because the release of the installed
// version cannot be read.
type Others map[string]string

// Records of the providers of the changes.
func Records(changes []Change) []inventory.Provider {
	var out []inventory.Provider
	for _, c := range changes {
		out = append(out, c.From)
	}
	return out
}

// Check refuses versions that do not go together with each other, or with the providers that stay. A provider of an unknown contract may stay
// where the core keeps its own.
func Check(changes []Change, others Others, core string) error {
	var items []installation.Item
	before := core
	for _, c := range changes {
		items = append(items, c.To)
		if c.From.Label() == coreLabel {
			core = c.To.Contract
		}
	}
	if core == "" {
		return installation.Check(items, core) // which says that there is none
	}
	var problems []string
	for label, contract := range others {
		if contract == "" && core == before {
			continue
		}
		if contract == "" {
			problems = append(problems, label+" stays and its contract is unknown")
			continue
		}
		if !slices.Contains(repository.CompatibleContracts(core), contract) {
			problems = append(problems, label+" stays and has the contract "+contract)
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return fault.New(fault.Invalid, installation.ReasonContract, "the core has the contract %s afterwards, but %s; upgrade these providers with the same command",
			core, strings.Join(problems, "; "))
	}
	return installation.Check(items, core)
}

// coreLabel is the label of the core.
const coreLabel = "cluster-api"

// Plan makes the plan of an upgrade.
func Plan(changes []Change, stored map[string]Stored, s installation.Settings) (installation.Plan, error) {
	var p installation.Plan
	if len(changes) == 0 {
		return p, nil
	}
	add := func(steps ...installation.Step) { p.Steps = append(p.Steps, steps...) }
	for _, c := range changes {
		begun := c.From
		begun.Next, begun.Applied, begun.UpdatedAt = c.To.Version, c.isApplied(), s.UpdatedAt
		add(installation.Step{Verb: installation.Apply, Provider: c.From.Label(), Object: begun.Object(), Why: "the upgrade to " + c.To.Version + " begins"})
	}
	for _, c := range changes {
		steps, err := migrations(c, stored)
		if err != nil {
			return installation.Plan{}, err
		}
		add(steps...)
	}
	add(s.Before...)
	for _, c := range changes {
		for _, o := range c.Present {
			if o.GetKind() == "Deployment" && (!c.isApplied() || !has(c.To.Objects, o)) {
				add(installation.Step{Verb: installation.Stop, Provider: c.From.Label(), Object: o, Why: "no two versions run at once"})
			}
		}
	}
	for _, c := range changes {
		add(surplus(c)...)
		add(running(installation.Components(c.To, s.Builtin))...)
		if s.Wait {
			add(c.applied(s))
		} else {
			add(c.complete(s))
		}
	}
	if s.Wait {
		for _, c := range changes {
			add(installation.Waits(c.To)...)
		}
		for _, c := range changes {
			add(c.complete(s)) // so that a wait that was interrupted is repeated by the same command, which knows the way back
		}
	}
	return p, nil
}

// isApplied reports whether an earlier command has installed the new version, and was interrupted while it waited.
func (c Change) isApplied() bool { return c.From.Applied && c.From.Next == c.To.Version }

// applied is the step that notes that the components of the new version are installed.
func (c Change) applied(s installation.Settings) installation.Step {
	record := c.From
	record.Next, record.Applied, record.UpdatedAt = c.To.Version, true, s.UpdatedAt
	return installation.Step{Verb: installation.Apply, Provider: c.From.Label(), Object: record.Object(), Why: c.To.Version + " is installed and has to become available"}
}

// complete is the step that ends the upgrade of a provider.
func (c Change) complete(s installation.Settings) installation.Step {
	record := c.To.Record()
	record.UpdatedAt = s.UpdatedAt
	return installation.Step{Verb: installation.Apply, Provider: c.From.Label(), Object: record.Object(), Why: "the upgrade is complete"}
}

// Back makes the plan that undoes an upgrade, from the versions that it was to. Where it cannot be undone, it says why instead.
func Back(changes []Change, s installation.Settings) (installation.Plan, string, error) {
	var out []Change
	for _, c := range changes {
		if c.Former == nil {
			return installation.Plan{}, fmt.Sprintf("the components of %s %s cannot be read", c.From.Label(), c.From.Version), nil
		}
		if why := storesOtherwise(*c.Former, c.To); why != "" {
			return installation.Plan{}, why, nil
		}
		back := Change{From: c.From, To: *c.Former, Present: slices.Clone(c.Present)}
		for _, o := range c.To.Objects {
			if !has(back.Present, o) {
				back.Present = append(back.Present, o)
			}
		}
		out = append(out, back)
	}
	s.Before, s.Wait = nil, false
	p, err := Plan(out, nil, s)
	return p, "", err
}

// storesOtherwise says which CRD of the new version stores objects in a version that the former one does not store; empty: none.
func storesOtherwise(former, next installation.Item) string {
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
			return fmt.Sprintf("%s %s stores the objects of %s in %s, and %s in %s", next.Provider.Label(), next.Version, o.GetName(), storage(crd), former.Version, was)
		}
	}
	return ""
}

// migrations are the steps for CRDs in which there may be objects in versions that the new CRD does not have.
func migrations(c Change, stored map[string]Stored) ([]installation.Step, error) {
	var out []installation.Step
	for _, o := range c.To.Objects {
		crd, live := definition(o), stored[o.GetName()]
		if crd == nil || live.Now == "" {
			continue
		}
		if !hasVersion(crd, live.Now) {
			return nil, fault.New(fault.Invalid, ReasonStoredVersion,
				"objects of CRD %s are stored in %s, which %s %s does not have; upgrade to a version in between that has both", o.GetName(), live.Now, c.From.Label(), c.To.Version)
		}
		if slices.ContainsFunc(live.Ever, func(v string) bool { return !hasVersion(crd, v) }) {
			out = append(out, installation.Step{Verb: installation.Migrate, Provider: c.From.Label(), Object: o, Why: "the new CRD does not have all versions that were stored"})
		}
	}
	return out, nil
}

// surplus deletes what the new version does not have. Namespaces, CRDs and volumes stay, as when a provider is deleted.
func surplus(c Change) []installation.Step {
	var out []installation.Step
	ordered := component.InstallOrder(c.Present)
	slices.Reverse(ordered)
	for _, o := range ordered {
		if slices.Contains([]string{"Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume"}, o.GetKind()) || has(c.To.Objects, o) {
			continue
		}
		out = append(out, installation.Step{Verb: installation.Delete, Provider: c.From.Label(), Object: o, Why: c.To.Version + " does not have it"})
	}
	return out
}

// running sets the replicas of Deployments that do not say how many they have: they were stopped.
func running(steps []installation.Step) []installation.Step {
	for i, s := range steps {
		if s.Verb != installation.Apply || s.Object.GetKind() != "Deployment" {
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

// has reports whether an object of that kind and name is among the objects, in whatever version of its kind.
func has(objects []*unstructured.Unstructured, o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool {
		return other.GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() && other.GetName() == o.GetName() && other.GetNamespace() == o.GetNamespace()
	})
}

// definition reads a CRD; nil: the object is none.
func definition(o *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	if o.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := decode(o, crd); err != nil {
		return nil // the API server says what is wrong with it
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
