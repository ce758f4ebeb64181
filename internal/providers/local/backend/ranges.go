package backend

import (
	"fmt"
	"net/netip"
)

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
