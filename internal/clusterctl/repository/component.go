package repository

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// ReasonComponents is the reason when a components file cannot be used; Invalid.
const ReasonComponents = "InvalidComponents"

// ComponentOptions configure how the objects are built. `slipway generate provider` and package install fill it in.
type ComponentOptions struct {
	// TargetNamespace is the namespace of the objects; empty for the Namespace in the file.
	TargetNamespace string
	// Raw leaves variables unreplaced. The file must be valid YAML nevertheless.
	Raw bool
	// Lookup returns the value of a variable.
	Lookup Lookup
	// AlterImage overrides the image of a component; nil for no overrides.
	AlterImage func(component, image string) (string, error)
	// Processor processes the template; nil means [Envsubst].
	Processor Processor
}

func (o ComponentOptions) processor() Processor {
	if o.Processor == nil {
		return Envsubst{}
	}
	return o.Processor
}

// Components are the objects of a provider version.
type Components struct {
	Provider        provider.Provider
	Version         string
	TargetNamespace string
	// Variables are the variables in the file.
	Variables []Variable
	// Images are the images of all containers, sorted.
	Images []string
	// Objects are in the order in which they are printed; see also [InstallOrder].
	Objects []*unstructured.Unstructured
}

// LoadComponents builds the components of a version from a repository. `slipway generate provider` and package install
// call it.
func LoadComponents(ctx context.Context, s *Source, version string, o ComponentOptions) (*Components, error) {
	data, err := s.Components(ctx, version)
	if err != nil {
		return nil, err
	}
	return newComponents(s.Provider(), version, data, o)
}

// newComponents builds the components of a version from the text of its components file, by the rules in the package
// documentation. "slipway init", "upgrade apply" and "generate provider" use the result.
func newComponents(p provider.Provider, version string, data []byte, o ComponentOptions) (*Components, error) {
	c := &Components{Provider: p, Version: version}
	var err error
	if c.Variables, err = o.processor().Variables(data); err != nil {
		return nil, c.annotateError(err)
	}
	if !o.Raw {
		if data, err = o.processor().Process(data, o.Lookup); err != nil {
			return nil, c.annotateError(err)
		}
	}
	if c.Objects, err = manifest.Objects(data); err != nil {
		return nil, c.invalidYAMLError(err)
	}
	if len(c.Objects) == 0 {
		return nil, c.annotateError(fault.New(fault.Invalid, ReasonComponents, "the file has no objects; check the release"))
	}
	if err := c.images(o.AlterImage); err != nil {
		return nil, err
	}
	if err := c.namespace(o.TargetNamespace); err != nil {
		return nil, c.annotateError(err)
	}
	c.label()
	c.sort()
	return c, nil
}

// annotateError adds the provider and version to an error.
func (c *Components) annotateError(err error) error {
	known := fault.As(err)
	if known == nil {
		return err
	}
	return fault.New(known.Kind, known.Reason, "provider %s %s: %s", c.Provider.Label(), c.Version, known.Message).From(known.Cause)
}

// documentNumber matches the start of an error of [manifest.Objects], which names the document but not its content.
var documentNumber = regexp.MustCompile(`^document \d+`)

// invalidYAMLError returns the fault for invalid YAML. With variables it omits the parser's error, which may quote
// their values.
func (c *Components) invalidYAMLError(err error) error {
	of := "the components of " + c.Provider.Label() + " " + c.Version
	if len(c.Variables) == 0 {
		return fault.New(fault.Invalid, ReasonComponents, "%s are not a valid manifest: %v; check the release", of, err).From(err)
	}
	return fault.New(fault.Invalid, ReasonComponents, "%s of %s is not a valid manifest after variable substitution; check the values of: %s",
		cmp.Or(documentNumber.FindString(err.Error()), "a document"), of, names(c.Variables))
}

func names(variables []Variable) string {
	var out []string
	for _, v := range variables {
		out = append(out, v.Name)
	}
	return strings.Join(out, ", ")
}

// YAML encodes the objects as a multi-document YAML stream.
func (c *Components) YAML() ([]byte, error) { return manifest.YAML(c.Objects) }

// namespace moves all objects to the target namespace, and adds a Namespace if the file has none.
func (c *Components) namespace(target string) error {
	var found []*unstructured.Unstructured
	for _, o := range c.Objects {
		if isNamespace(o) {
			found = append(found, o)
		}
	}
	if len(found) > 1 {
		return fault.New(fault.Invalid, ReasonComponents, "the file has more than one Namespace: %s and %s; a provider is installed in only one: correct the file, or override it", found[0].GetName(), found[1].GetName())
	}
	if target == "" && len(found) > 0 {
		target = found[0].GetName()
	}
	if target == "" {
		return fault.New(fault.Invalid, ReasonComponents, "the file has no Namespace; set the namespace of the provider with --target-namespace")
	}
	if problems := validation.IsDNS1123Label(target); len(problems) > 0 {
		return fault.New(fault.Invalid, ReasonComponents, "%q is not a valid namespace name: %s", target, strings.Join(problems, "; "))
	}
	if len(found) == 0 {
		c.Objects = append(c.Objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": target},
		}})
	}
	c.TargetNamespace = target
	own := ownScopes(c.Objects)
	for _, o := range c.Objects {
		if err := moveToNamespace(o, target, own); err != nil {
			return err
		}
	}
	return nil
}

// label adds the labels of the provider to all objects.
func (c *Components) label() {
	for _, o := range c.Objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[provider.ComponentLabel], labels[provider.NameLabel] = "", c.Provider.Label()
		o.SetLabels(labels)
	}
}

// sort moves the Namespace to the front, followed by the cert-manager objects.
func (c *Components) sort() {
	rank := func(o *unstructured.Unstructured) int {
		switch {
		case isNamespace(o):
			return 0
		case o.GroupVersionKind().Group == certManagerGroup:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(c.Objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
}
