package backend

import (
	"fmt"
	"net/netip"

	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// ChooseRange returns a range for the network of the spec, or why none can be had. It is the range that was asked for, else one that is
// free. Ranges that the engine refused although nothing seems to use them are named in refused.
func ChooseRange(spec NetworkSpec, taken []Taken, refused []netip.Prefix) (chosen netip.Prefix, why string) {
	if chosen = spec.Subnet; chosen.IsValid() {
		if why := Conflict(chosen, taken); why != "" {
			return netip.Prefix{}, why
		}
	} else {
		want := subnet.Request{Wanted: spec.Ranges, Allowed: spec.Policy.Networks.Ranges, Widest: spec.Policy.Networks.WidestPrefix, Taken: refused}
		for _, t := range taken {
			want.Taken = append(want.Taken, t.Range)
		}
		var ok bool
		if chosen, ok = subnet.Choose(want); !ok {
			return netip.Prefix{}, "No range for a network is free on this host: remove networks that are not needed (docker network prune), or ask the operator to extend networks.ranges"
		}
	}
	return chosen, ExceededAddresses(spec.Policy.Maxima, spec.Owner.Object.Namespace, chosen, taken)
}

// ExceededAddresses returns why the networks of a namespace may not have the addresses of one more range, empty if they may.
func ExceededAddresses(m policy.Maxima, namespace string, p netip.Prefix, taken []Taken) string {
	var own, all int64
	for _, t := range taken {
		if t.Owner.Object.Name == "" {
			continue
		}
		all += policy.Addresses(t.Range)
		if t.Owner.Object.Namespace == namespace {
			own += policy.Addresses(t.Range)
		}
	}
	return m.ExceededRange(namespace, p, own, all)
}

// Conflict returns what uses addresses of a range already, as a sentence for people, empty if nothing does.
func Conflict(p netip.Prefix, taken []Taken) string {
	for _, t := range taken {
		if t.Range.Overlaps(p) {
			return fmt.Sprintf("Range %s is not free on this host: %s uses %s of it. Create the cluster with another range", p, t.By, common(p, t.Range))
		}
	}
	return ""
}

// common is what two ranges that overlap share: the narrower one.
func common(p, q netip.Prefix) netip.Prefix {
	if p.Bits() > q.Bits() {
		return p
	}
	return q
}

// CountNetworks counts the networks of this instance, in a namespace and in all.
func CountNetworks(taken []Taken, namespace string) (own, all int) {
	for _, t := range taken {
		if t.Owner.Object.Name == "" {
			continue
		}
		all++
		if t.Owner.Object.Namespace == namespace {
			own++
		}
	}
	return own, all
}
