package installation

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Reasons of the faults of this package.
const (
	// ReasonInstalled says that a provider is installed already; Invalid.
	ReasonInstalled = "ProviderInstalled"
	// ReasonBuiltIn says that a provider is part of the management cluster; Invalid.
	ReasonBuiltIn = "ProviderBuiltIn"
	// ReasonContract says that providers do not fit together; Invalid.
	ReasonContract = "ContractMismatch"
	// ReasonCRDName says that a CRD cannot be found by its kind; Invalid.
	ReasonCRDName = "CRDName"
	// ReasonRequest says that what was asked for makes no sense; Invalid.
	ReasonRequest = "InvalidRequest"
)

// None in the place of a provider's name means no provider of the type.
const None = "-"

// Choice is a provider to install.
type Choice struct {
	Type      provider.Type
	Reference provider.Reference
}

// Label of the provider.
func (c Choice) Label() string { return c.Type.Label(c.Reference.Name) }

// Choose says which providers are to be installed, and what is to be said about those that are not.
//
//	named                                     installed
//	named, part of this management cluster    not installed: a note, or an error where a version was named
//	begun by an earlier command, not ended    installed, in the version that was begun
//	named, completed by that command          not installed again: a note
//	nothing named and no core provider        cluster-api, and kubeadm for bootstrap and control plane
func Choose(named map[provider.Type][]string, installed []inventory.Provider, builtin []providerset.Name) ([]Choice, []string, error) {
	first := !slices.Contains(builtin, providerset.Core) &&
		!slices.ContainsFunc(installed, func(p inventory.Provider) bool { return p.Type == provider.Core && !p.Installing })
	var out []Choice
	var notes []string
	for _, t := range provider.Types() {
		names := named[t]
		if len(names) == 0 && first {
			names = defaults(t)
		}
		for _, name := range names {
			if name == None && len(names) == 1 {
				continue
			}
			ref, err := provider.ParseReference(name)
			if err != nil {
				return nil, nil, err
			}
			c := Choice{t, ref}
			if completed(c, installed) {
				notes = append(notes, "Provider "+c.Label()+" is installed already; the command that was interrupted goes on with the others.")
				continue
			}
			if !slices.Contains(builtin, providerset.Name(c.Label())) {
				out = append(out, c)
				continue
			}
			note, err := builtIn(c)
			if err != nil {
				return nil, nil, err
			}
			notes = append(notes, note)
		}
	}
	return pending(out, installed), notes, nil
}

// completed reports whether a command that was interrupted has installed the provider already: another one has begun and not
// ended, and this one is as it was asked for.
func completed(c Choice, installed []inventory.Provider) bool {
	begun := slices.ContainsFunc(installed, func(p inventory.Provider) bool { return p.Installing })
	return begun && slices.ContainsFunc(inventory.Find(installed, c.Type, c.Reference.Name), func(p inventory.Provider) bool {
		return !p.Installing && (c.Reference.Version == "" || c.Reference.Version == p.Version) &&
			(c.Reference.Namespace == "" || c.Reference.Namespace == p.Namespace)
	})
}

// builtIn says that a provider is there already. One of which a version is named is an error: nothing would be as it was asked for.
func builtIn(c Choice) (string, error) {
	if c.Reference.Version != "" {
		return "", fault.New(fault.Invalid, ReasonBuiltIn,
			"provider %s is built into this management cluster; start it with `slipway up --without %s` to install %s in its place", c.Label(), c.Label(), c.Reference)
	}
	return "Provider " + c.Label() + " is built into this management cluster; there is nothing to install.", nil
}

// defaults are the providers of the first installation where none of the type is named.
func defaults(t provider.Type) []string {
	switch t {
	case provider.Core:
		return []string{provider.CoreName}
	case provider.Bootstrap, provider.ControlPlane:
		return []string{"kubeadm"}
	}
	return nil
}

// pending adds what an earlier command has begun, and pins what was begun to its version and namespace.
func pending(out []Choice, installed []inventory.Provider) []Choice {
	for _, p := range installed {
		if !p.Installing {
			continue
		}
		i := slices.IndexFunc(out, func(c Choice) bool { return c.Label() == p.Label() })
		if i < 0 {
			out = append(out, Choice{Type: p.Type, Reference: provider.Reference{Name: p.Name}})
			i = len(out) - 1
		}
		if out[i].Reference.Version == "" {
			out[i].Reference.Version = p.Version
		}
		if out[i].Reference.Namespace == "" {
			out[i].Reference.Namespace = p.Namespace
		}
	}
	slices.SortStableFunc(out, func(a, b Choice) int {
		types := provider.Types()
		return slices.Index(types, a.Type) - slices.Index(types, b.Type)
	})
	return out
}

// BuiltInNote says which providers a management cluster has from the start; empty: none.
func BuiltInNote(builtin []providerset.Name) string {
	if len(builtin) == 0 {
		return ""
	}
	var names []string
	for _, n := range builtin {
		names = append(names, string(n))
	}
	return "Built into this management cluster: " + strings.Join(names, ", ") + "."
}
