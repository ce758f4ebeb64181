package providerupgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of faults.
const (
	// reasonNotInstalled is the reason when a provider is not installed; Gone.
	reasonNotInstalled = "ProviderNotInstalled"
	// reasonVersion is the reason when a provider cannot be upgraded to the requested version; Invalid.
	reasonVersion = "UnsupportedUpgrade"
	// reasonStoredVersion is the reason when an upgrade would make stored objects unreadable; Invalid.
	reasonStoredVersion = "StoredVersion"
)

// maxMinorSkew is the maximum number of minor versions in one upgrade of the core providers, as Cluster API supports
// it.
const maxMinorSkew = 3

// Target is an installed provider with its target version. [ChooseUpgrades] returns it, and `slipway upgrade apply`
// loads the version.
type Target struct {
	From provider.Installed
	To   string
}

// UpgradeRequest selects the providers to upgrade: all providers, to a contract, or the named ones. `slipway upgrade
// apply` fills it in from its flags.
type UpgradeRequest struct {
	Contract string
	Named    map[provider.Type][]string
}

// ChooseUpgrades returns the providers that "slipway upgrade apply" upgrades, with notes about those that are not
// upgraded. Unfinished upgrades of an earlier command are included.
func ChooseUpgrades(ctx context.Context, r UpgradeRequest, cluster install.ManagementCluster, latest LatestVersionFunc) ([]Target, []string, error) {
	installed := cluster.Installed
	if (r.Contract == "") == (len(r.Named) == 0) {
		return nil, nil, fault.New(fault.Invalid, install.ReasonRequest,
			"specify either a contract, for example --contract %s, or providers, for example --infrastructure NAME:VERSION; `slipway upgrade plan` lists the available upgrades", repository.Contract)
	}
	for _, p := range installed {
		if p.Installing {
			return nil, nil, fault.New(fault.Invalid, install.ReasonInstalled,
				"the installation of provider %s is incomplete; run `slipway init` again to complete it, then upgrade", p.Label())
		}
	}
	var out []Target
	var notes []string
	var err error
	if r.Contract != "" {
		out, notes, err = targetsForContract(ctx, r.Contract, installed, latest)
	} else {
		out, err = targetsForNames(ctx, r.Named, cluster, latest)
	}
	if err != nil {
		return nil, nil, err
	}
	out = pending(out, installed)
	out = slices.DeleteFunc(out, func(t Target) bool {
		same := t.To == t.From.Version && t.From.TargetVersion == ""
		if same {
			notes = append(notes, fmt.Sprintf("Provider %s already has version %s.", t.From.Label(), t.To))
		}
		return same
	})
	for _, t := range out {
		if err := checkVersions(t); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b Target) int { return provider.CompareInstalled(a.From, b.From) })
	return out, notes, nil
}

// targetsForContract selects the newest versions of all providers. A provider whose releases cannot be read is not
// upgraded; a note explains why.
func targetsForContract(ctx context.Context, contract string, installed []provider.Installed, latest LatestVersionFunc) (out []Target, notes []string, err error) {
	if contract != repository.Contract {
		return nil, nil, fault.New(fault.Invalid, install.ReasonContract, "this version of slipway upgrades only to contract %s; --contract %s requires an older version of slipway", repository.Contract, contract)
	}
	var lacking []string
	for _, p := range installed {
		version, err := latest(ctx, p, contract)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("Provider %s remains at version %s, because its releases cannot be read: %s.", p.Label(), p.Version, fault.UserMessage(err)))
			continue
		}
		if version == "" {
			lacking = append(lacking, p.Label())
			continue
		}
		if compareVersions(version, p.Version) < 0 {
			version = p.Version // a pre-release is installed
		}
		out = append(out, Target{p, version})
	}
	if len(lacking) > 0 {
		return nil, nil, fault.New(fault.Invalid, install.ReasonContract, "no release is compatible with contract %s for these providers: %s; specify the providers to upgrade, or delete these", contract, strings.Join(lacking, ", "))
	}
	return out, notes, nil
}

func targetsForNames(ctx context.Context, named map[provider.Type][]string, cluster install.ManagementCluster, latest LatestVersionFunc) ([]Target, error) {
	var out []Target
	for _, t := range provider.Types() {
		for _, name := range named[t] {
			ref, err := provider.ParseReference(name)
			if err != nil {
				return nil, err
			}
			target, err := targetForName(ctx, t, ref, cluster, latest)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(out, func(other Target) bool { return other.From.Label() == target.From.Label() }) {
				return nil, fault.New(fault.Invalid, install.ReasonRequest, "provider %s is specified twice", target.From.Label())
			}
			out = append(out, target)
		}
	}
	return out, nil
}

// targetForName selects a provider by its name. Package install rejects a second instance, so the first is the only
// one.
func targetForName(ctx context.Context, t provider.Type, ref provider.Reference, cluster install.ManagementCluster, latest LatestVersionFunc) (Target, error) {
	label := t.Label(ref.Name)
	if slices.Contains(cluster.Builtin, providerset.Name(label)) {
		return Target{}, fault.New(fault.Invalid, install.ReasonBuiltIn,
			"provider %s is built into this management cluster; upgrade it with the slipway binary: run `slipway down`, then `slipway up` of the new version", label)
	}
	found := slices.DeleteFunc(provider.FindInstalled(cluster.Installed, t, ref.Name), func(p provider.Installed) bool {
		return ref.Namespace != "" && p.Namespace != ref.Namespace
	})
	if len(found) == 0 {
		return Target{}, fault.New(fault.Gone, reasonNotInstalled, "provider %s is not installed; install it with `slipway init --%s %s`", label, t.Flag(), ref)
	}
	if ref.Version != "" {
		return Target{found[0], ref.Version}, nil
	}
	version, err := latest(ctx, found[0], repository.Contract)
	if err == nil && version == "" {
		err = fault.New(fault.Invalid, install.ReasonContract, "provider %s has no release that is compatible with contract %s; specify a version", label, repository.Contract)
	}
	return Target{found[0], version}, err
}

// pending adds the unfinished upgrades of an earlier command.
func pending(out []Target, installed []provider.Installed) []Target {
	for _, p := range installed {
		if p.TargetVersion != "" && !slices.ContainsFunc(out, func(t Target) bool { return t.From.Label() == p.Label() }) {
			out = append(out, Target{p, p.TargetVersion})
		}
	}
	return out
}

// checkVersions rejects upgrades that the core releases do not support: a downgrade, and an upgrade over more than
// three minor versions.
func checkVersions(t Target) error {
	to, err := version.ParseSemantic(t.To)
	if err != nil {
		return fault.New(fault.Invalid, reasonVersion, "version %q of provider %s is not valid; write it as v1.2.3", t.To, t.From.Label())
	}
	from, err := version.ParseSemantic(t.From.Version)
	if err != nil || !isOfCore(t.From) {
		return nil //nolint:nilerr // whatever is there, it cannot be compared
	}
	switch {
	case to.Compare(from) < 0:
		return fault.New(fault.Invalid, reasonVersion, "provider %s has version %s; a downgrade to %s is not supported", t.From.Label(), t.From.Version, t.To)
	case to.Major != from.Major, to.Minor > from.Minor+maxMinorSkew:
		return fault.New(fault.Invalid, reasonVersion, "provider %s has version %s and can be upgraded to at most v%d.%d in one step; upgrade to an intermediate version first",
			t.From.Label(), t.From.Version, from.Major, from.Minor+maxMinorSkew)
	}
	return nil
}

// isOfCore reports whether a provider is released together with the core provider.
func isOfCore(p provider.Installed) bool {
	return slices.Contains([]string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"}, p.Label())
}
