package providerupgrade

import (
	"context"

	"k8s.io/apimachinery/pkg/version"

	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Offer is what the providers can be upgraded to, with one contract of the core.
type Offer struct {
	Contract string `json:"contract"`
	// Providers that are installed.
	Providers []Candidate `json:"providers"`
	// Upgrades reports whether there is a newer version of any of them.
	Upgrades bool `json:"upgrades"`
}

// Candidate is a provider and the version that it can be upgraded to.
type Candidate struct {
	inventory.Provider
	// NextVersion is empty where no newer version has the contract.
	NextVersion string `json:"nextVersion,omitempty"`
	// Unknown is why its releases cannot be read; empty: they were read.
	Unknown string `json:"unknown,omitempty"`
}

// Latest reads the latest version of a provider that goes together with a contract; empty: there is none.
type Latest func(ctx context.Context, p inventory.Provider, contract string) (string, error)

// Offers reads what the providers can be upgraded to: with the contract of the core, and with each later one that this build has. A provider
// whose releases cannot be read has no offer, and does not keep the others from theirs.
func Offers(ctx context.Context, installed []inventory.Provider, contract string, latest Latest) ([]Offer, error) {
	var out []Offer
	for _, c := range contractsFrom(contract) {
		offer := Offer{Contract: c}
		complete := true
		for _, p := range installed {
			next, err := latest(ctx, p, c)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				complete = complete && (p.Type != provider.Core || c == contract)
				offer.Providers = append(offer.Providers, Candidate{Provider: p, Unknown: fault.UserMessage(err)})
				continue
			}
			complete = complete && (next != "" || p.Type != provider.Core || c == contract)
			if next != "" && newer(next, p.Version) <= 0 {
				next = ""
			}
			offer.Providers = append(offer.Providers, Candidate{Provider: p, NextVersion: next})
			offer.Upgrades = offer.Upgrades || next != ""
		}
		if complete {
			out = append(out, offer)
		}
	}
	return out, nil
}

// contractsFrom are the contract of the core and those after it, up to the one of this build.
func contractsFrom(contract string) []string {
	out := []string{contract}
	for _, c := range []string{"v1beta1", repository.Contract} {
		if version.CompareKubeAwareVersionStrings(c, contract) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// newer compares two versions of a provider: greater than zero where a is the newer one.
func newer(a, b string) int {
	x, err := repository.ParseVersion(a)
	if err != nil {
		return -1
	}
	y, err := repository.ParseVersion(b)
	if err != nil {
		return 1 // whatever is there, it is no version
	}
	return x.Compare(y)
}
