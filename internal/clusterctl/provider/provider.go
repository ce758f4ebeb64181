package provider

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Type is the type of a provider, as in the field type of configuration files and inventory objects. The values, flags,
// labels and file names in this file are defined by the clusterctl contract.
type Type string

// The provider types.
const (
	Core             Type = "CoreProvider"
	Bootstrap        Type = "BootstrapProvider"
	ControlPlane     Type = "ControlPlaneProvider"
	Infrastructure   Type = "InfrastructureProvider"
	ipam             Type = "IPAMProvider"
	runtimeExtension Type = "RuntimeExtensionProvider"
	Addon            Type = "AddonProvider"
)

// CoreName is the name of the only core provider. Package install rejects a management cluster without this provider.
const CoreName = "cluster-api"

// Labels of provider objects.
const (
	// ComponentLabel marks every installed object of a provider; its value is empty.
	ComponentLabel = "clusterctl.cluster.x-k8s.io"
	// NameLabel has the label of the provider as its value; see [Type.Label].
	NameLabel = "cluster.x-k8s.io/provider"
)

// Types returns all types in the order in which providers are installed and listed. Packages install and lint use this
// order, too.
func Types() []Type {
	return []Type{Core, Bootstrap, ControlPlane, Infrastructure, ipam, runtimeExtension, Addon}
}

// Flag returns the name of the flag for providers of this type, which is also the prefix of their components file. The
// commands define a flag for each type with it.
func (t Type) Flag() string {
	switch t {
	case Core:
		return "core"
	case Bootstrap:
		return "bootstrap"
	case ControlPlane:
		return "control-plane"
	case Infrastructure:
		return "infrastructure"
	case ipam:
		return "ipam"
	case runtimeExtension:
		return "runtime-extension"
	case Addon:
		return "addon"
	}
	return ""
}

// ComponentsFile returns the default name of the components file of providers of this type.
func (t Type) ComponentsFile() string { return t.Flag() + "-components.yaml" }

// Label returns the value of NameLabel for the provider of this type and name. It is also the name of the provider's
// folder in local repositories, and of its inventory object.
func (t Type) Label(name string) string {
	if t == Core {
		return name
	}
	return t.Flag() + "-" + name
}

// Provider is a provider and the location of its releases.
type Provider struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// URL is the URL of the components file of one version, or of "latest".
	URL string `json:"url"`
}

// Label returns the label of the provider; see [Type.Label].
func (p Provider) Label() string { return p.Type.Label(p.Name) }

// Compare orders providers by type, then by name. Package install installs them in this order.
func Compare(a, b Provider) int {
	types := Types()
	return cmp.Or(slices.Index(types, a.Type)-slices.Index(types, b.Type), strings.Compare(a.Name, b.Name))
}

// Validate returns an error if the provider is invalid. The fault is Invalid. The parser of the configuration file and
// `slipway provider lint` call it.
func (p Provider) Validate() error {
	switch {
	case p.Name == "":
		return invalid("a provider has no name; set name")
	case !slices.Contains(Types(), p.Type):
		return invalid("provider %s has the type %q; use one of: %s", p.Name, p.Type, typeNames())
	case (p.Name == CoreName) != (p.Type == Core):
		return invalid("the name %s is reserved for the type %s, but provider %s has the type %s", CoreName, Core, p.Name, p.Type)
	}
	if problems := validation.IsDNS1123Label(p.Name); len(problems) > 0 {
		return invalid("%q is not a valid provider name: %s", p.Name, strings.Join(problems, "; "))
	}
	if problems := validation.IsValidLabelValue(p.Label()); len(problems) > 0 {
		return invalid("%q is not a valid provider name: its label %q is not a valid label value: %s", p.Name, p.Label(), strings.Join(problems, "; "))
	}
	if p.URL == "" {
		return invalid("provider %s has no url; set url to its components file", p.Name)
	}
	if _, err := url.Parse(p.URL); err != nil {
		return invalid("the url of provider %s is invalid; correct it", p.Name)
	}
	return nil
}

func typeNames() string {
	var names []string
	for _, t := range Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

func invalid(message string, args ...any) error {
	return fault.New(fault.Invalid, "InvalidProvider", message, args...)
}
