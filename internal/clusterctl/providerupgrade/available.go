package providerupgrade

import (
	"context"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Upgrades lists the available upgrades for one contract of the core provider, also in the structured output of
// "slipway upgrade plan". [AvailableUpgrades] returns it.
type Upgrades struct {
	Contract string `json:"contract"`
	// Providers are the installed providers.
	Providers []Candidate `json:"providers"`
	// Upgrades reports whether a newer version of any provider is available.
	Upgrades bool `json:"upgrades"`
}

// Candidate is a provider with its available upgrade.
type Candidate struct {
	provider.Installed
	// NextVersion is empty if no newer version has the contract.
	NextVersion string `json:"nextVersion,omitempty"`
	// Unknown is the reason why the releases of the provider cannot be read; empty if they were read.
	Unknown string `json:"unknown,omitempty"`
}

// LatestVersionFunc returns the latest version of a provider that is compatible with a contract; empty if there is
// none. The Latest method of install.ProviderLoader implements it.
type LatestVersionFunc func(ctx context.Context, p provider.Installed, contract string) (string, error)

// AvailableUpgrades returns, for "slipway upgrade plan", the available upgrades for the current contract of the core
// provider and for each later one that this build supports. If the releases of a provider cannot be read, the upgrades
// of the others are still listed.
func AvailableUpgrades(ctx context.Context, installed []provider.Installed, contract string, latest LatestVersionFunc) ([]Upgrades, error) {
	var out []Upgrades
	for _, c := range contractsFrom(contract) {
		offer := Upgrades{Contract: c}
		complete := true
		for _, p := range installed {
			next, err := latest(ctx, p, c)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				complete = complete && (p.Type != provider.Core || c == contract)
				offer.Providers = append(offer.Providers, Candidate{Installed: p, Unknown: fault.UserMessage(err)})
				continue
			}
			complete = complete && (next != "" || p.Type != provider.Core || c == contract)
			if next != "" && compareVersions(next, p.Version) <= 0 {
				next = ""
			}
			offer.Providers = append(offer.Providers, Candidate{Installed: p, NextVersion: next})
			offer.Upgrades = offer.Upgrades || next != ""
		}
		if complete {
			out = append(out, offer)
		}
	}
	return out, nil
}

// contractsFrom returns the given contract and all later ones that this build supports.
func contractsFrom(contract string) []string {
	out := []string{contract}
	for _, c := range []string{"v1beta1", repository.Contract} {
		if apiversion.CompareKubeAwareVersionStrings(c, contract) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// compareVersions compares two versions of a provider. The result is positive if a is newer.
func compareVersions(a, b string) int {
	x, err := version.ParseSemantic(a)
	if err != nil {
		return -1
	}
	y, err := version.ParseSemantic(b)
	if err != nil {
		return 1 // the installed version is not a valid version
	}
	return x.Compare(y)
}
