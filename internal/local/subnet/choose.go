package subnet

import (
	"encoding/binary"
	"net/netip"
)

// chosenBits is the prefix length of a range that is chosen without wanted ranges: 16384 addresses.
const chosenBits = 18

// RangeRequest describes the requirements for a new range. Packages local/backend and operate/create fill it in.
type RangeRequest struct {
	// Taken are ranges that the new one must not overlap.
	Taken []netip.Prefix
	// Wanted are the Pod and Service ranges, which the new one should contain.
	Wanted []netip.Prefix
	// Allowed are the ranges that must contain the new one.
	Allowed []netip.Prefix
	// Widest is the minimum prefix length, so the maximum size, of the new one.
	Widest int
}

// Choose returns a range for a new network that overlaps no taken range. The container backend calls it for the network
// of a LocalCluster, and `slipway create cluster` for the ranges of a new Cluster. It prefers the smallest allowed
// range that contains all wanted ranges in addition to the nodes. Otherwise, it returns the lowest free range of the first
// allowed range that has one: a /18, or a smaller one if the operator or the allowed range requires it. 172.16.0.0/12 comes
// first. It returns false if nothing usable is free. The order may be changed: existing networks retain their ranges.
func Choose(r RangeRequest) (netip.Prefix, bool) {
	if p, ok := smallestCovering(r); ok {
		if _, collides := overlap(p, r.Taken); !collides {
			return p, true
		}
	}
	for _, pool := range r.pools() {
		for p := netip.PrefixFrom(pool.Addr(), max(chosenBits, pool.Bits(), r.Widest)); pool.Contains(p.Addr()); p = next(p) {
			if _, collides := overlap(p, r.Taken); !collides {
				return p, true
			}
			if next(p).Addr().Less(p.Addr()) { // the end of the address space
				break
			}
		}
	}
	return netip.Prefix{}, false
}

// pools returns the ranges to choose from: the allowed part of 172.16.0.0/12, which company networks use least, or all other allowed
// ranges if that part is empty.
func (r RangeRequest) pools() []netip.Prefix {
	favourite := netip.MustParsePrefix("172.16.0.0/12")
	var usual, others []netip.Prefix
	for _, p := range r.Allowed {
		switch {
		case !p.Addr().Is4() || p.Bits() > maxPrefixBits:
		case within(favourite, p):
			usual = append(usual, favourite)
		case within(p, favourite):
			usual = append(usual, p)
		default:
			others = append(others, p)
		}
	}
	if len(usual) > 0 {
		return usual
	}
	return others
}

// smallestCovering returns the smallest allowed prefix that contains all wanted ranges and leaves the nodes' part free.
func smallestCovering(request RangeRequest) (netip.Prefix, bool) {
	ranges := request.Wanted
	if len(ranges) == 0 {
		return netip.Prefix{}, false
	}
	p := ranges[0].Masked()
	for _, r := range ranges {
		if !r.Addr().Is4() {
			return netip.Prefix{}, false
		}
		for !within(r, p) {
			p = widen(p)
		}
	}
	for p.Bits() > maxPrefixBits {
		p = widen(p)
	}
	for ; p.Bits() >= max(request.Widest, minPrefixBits) && request.allows(p); p = widen(p) {
		if _, collides := overlap(netip.PrefixFrom(p.Addr(), nodeBits), ranges); !collides {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func widen(p netip.Prefix) netip.Prefix { return netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked() }

func next(p netip.Prefix) netip.Prefix {
	a := p.Addr().As4()
	n := binary.BigEndian.Uint32(a[:]) + 1<<(32-p.Bits())
	binary.BigEndian.PutUint32(a[:], n)
	return netip.PrefixFrom(netip.AddrFrom4(a), p.Bits())
}

func (r RangeRequest) allows(p netip.Prefix) bool {
	for _, q := range r.Allowed {
		if within(p, q) {
			return true
		}
	}
	return false
}
