package subnet

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"strings"
)

// chosenBits is the length of a prefix that is chosen without knowing what goes into it: 16384 addresses.
const chosenBits = 18

// widest is the shortest prefix that is chosen to hold given ranges; a wider one would take too much from the host.
const widest = 12

// Choose returns a range for a new network that overlaps none of taken. It is the smallest that holds all wanted
// ranges (those of Pods and Services) besides its nodes, where there is a private one; else the lowest free /18 of
// 172.16.0.0/12. It returns false when everything is taken.
func Choose(taken, wanted []netip.Prefix) (netip.Prefix, bool) {
	if p, ok := covering(wanted); ok {
		if _, collides := overlap(p, taken); !collides {
			return p, true
		}
	}
	pool := netip.MustParsePrefix("172.16.0.0/12")
	for p := netip.PrefixFrom(pool.Addr(), chosenBits); pool.Contains(p.Addr()); p = next(p) {
		if _, collides := overlap(p, taken); !collides {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// covering returns the smallest private prefix that holds all ranges and leaves its nodes' part free.
func covering(ranges []netip.Prefix) (netip.Prefix, bool) {
	if len(ranges) == 0 {
		return netip.Prefix{}, false
	}
	p := ranges[0].Masked()
	for _, r := range ranges {
		if !r.Addr().Is4() {
			return netip.Prefix{}, false
		}
		for !within(r, p) {
			p = wider(p)
		}
	}
	for p.Bits() > smallest {
		p = wider(p)
	}
	for ; p.Bits() >= widest && private(p); p = wider(p) {
		if _, collides := overlap(netip.PrefixFrom(p.Addr(), nodeBits), ranges); !collides {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

func wider(p netip.Prefix) netip.Prefix { return netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked() }

func next(p netip.Prefix) netip.Prefix {
	a := p.Addr().As4()
	n := binary.BigEndian.Uint32(a[:]) + 1<<(32-p.Bits())
	binary.BigEndian.PutUint32(a[:], n)
	return netip.PrefixFrom(netip.AddrFrom4(a), p.Bits())
}

func private(p netip.Prefix) bool {
	for _, block := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"} {
		if within(p, netip.MustParsePrefix(block)) {
			return true
		}
	}
	return false
}

// ParseRoutes reads the kernel's IPv4 routing table in the format of /proc/net/route and returns its destinations,
// without the default route.
func ParseRoutes(r io.Reader) ([]netip.Prefix, error) {
	var out []netip.Prefix
	lines := bufio.NewScanner(r)
	lines.Scan() // the heading
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			continue
		}
		destination, err := word(f[1])
		if err != nil {
			return nil, err
		}
		mask, err := word(f[7])
		if err != nil {
			return nil, err
		}
		if mask == [4]byte{} {
			continue
		}
		ones := bits.LeadingZeros32(^binary.BigEndian.Uint32(mask[:]))
		out = append(out, netip.PrefixFrom(netip.AddrFrom4(destination), ones))
	}
	return out, lines.Err()
}

// word decodes an address that the kernel prints as a little-endian number.
func word(s string) ([4]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 {
		return [4]byte{}, fmt.Errorf("route table: %q is not an address", s)
	}
	return [4]byte{b[3], b[2], b[1], b[0]}, nil
}
