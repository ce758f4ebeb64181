package install

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Reasons of faults.
const (
	// ReasonInstalled is the reason when a provider is already installed; Invalid.
	ReasonInstalled = "ProviderInstalled"
	// ReasonBuiltIn is the reason when a provider is built into the management cluster; Invalid.
	ReasonBuiltIn = "ProviderBuiltIn"
	// ReasonContract is the reason when providers have incompatible contracts; Invalid.
	ReasonContract = "ContractMismatch"
	// reasonCRDName is the reason when the name of a CRD does not match its kind; Invalid.
	reasonCRDName = "CRDName"
	// ReasonRequest is the reason when a request is inconsistent; Invalid.
	ReasonRequest = "InvalidRequest"
)

// noProvider, as the name of a provider, means no provider of the type.
const noProvider = "-"

// Choice is a provider to install. [Choose] returns it, and [ProviderLoader.Load] loads it.
type Choice struct {
	Type      provider.Type
	Reference provider.Reference
}

// Label returns the label of the provider.
func (c Choice) Label() string { return c.Type.Label(c.Reference.Name) }

// Choose returns the providers that "slipway init" (or "init list-images") installs, and notes about those that are not
// installed.
//
//	named                                             installed
//	named, built into this management cluster         not installed: a note, or an error if a version was named
//	installation started earlier and not finished     installed, in the version that was started
//	named, but already installed by that command      not installed again: a note
//	none named of a type, and no core provider yet    cluster-api, and kubeadm for bootstrap and control plane
//	"-" named                                         none of the type
func Choose(named map[provider.Type][]string, installed []provider.Installed, builtin []providerset.Name) ([]Choice, []string, error) {
	first := !slices.Contains(builtin, providerset.Core) &&
		!slices.ContainsFunc(installed, func(p provider.Installed) bool { return p.Type == provider.Core && !p.Installing })
	var out []Choice
	var notes []string
	for _, t := range provider.Types() {
		names := named[t]
		if len(names) == 0 && first {
			names = defaults(t)
		}
		for _, name := range names {
			if name == noProvider && len(names) == 1 {
				continue
			}
			ref, err := provider.ParseReference(name)
			if err != nil {
				return nil, nil, err
			}
			c := Choice{t, ref}
			if isCompletedRequest(c, installed) {
				notes = append(notes, "Provider "+c.Label()+" is already installed; the interrupted command continues with the other providers.")
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

// isCompletedRequest reports whether an interrupted command has already installed the requested provider: the
// installation of another provider has started and not finished.
func isCompletedRequest(c Choice, installed []provider.Installed) bool {
	begun := slices.ContainsFunc(installed, func(p provider.Installed) bool { return p.Installing })
	return begun && slices.ContainsFunc(provider.FindInstalled(installed, c.Type, c.Reference.Name), func(p provider.Installed) bool {
		return !p.Installing && (c.Reference.Version == "" || c.Reference.Version == p.Version) &&
			(c.Reference.Namespace == "" || c.Reference.Namespace == p.Namespace)
	})
}

// builtIn returns the note for a built-in provider. Naming a version is an error, because this version would not be
// installed.
func builtIn(c Choice) (string, error) {
	if c.Reference.Version != "" {
		return "", fault.New(fault.Invalid, ReasonBuiltIn,
			"provider %s is built into this management cluster; start it with `slipway up --without %s` to install %s instead", c.Label(), c.Label(), c.Reference)
	}
	return "Provider " + c.Label() + " is built into this management cluster; there is nothing to install.", nil
}

// defaults returns the providers of the first installation if none of the type is named.
func defaults(t provider.Type) []string {
	switch t {
	case provider.Core:
		return []string{provider.CoreName}
	case provider.Bootstrap, provider.ControlPlane:
		return []string{"kubeadm"}
	}
	return nil
}

// pending adds the unfinished installations of an earlier command, with their version and namespace.
func pending(out []Choice, installed []provider.Installed) []Choice {
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

// BuiltInNote lists the built-in providers of a management cluster; empty if there are none. `slipway init` and
// `slipway upgrade plan` print it.
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
