package subnet

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"strings"
)

// Route is a destination in the kernel's routing table with its interface.
type Route struct {
	Destination netip.Prefix
	Interface   string
}

// ParseRoutes parses the kernel's IPv4 routing table in the format of /proc/net/route and returns its destinations
// without the default route.
func ParseRoutes(r io.Reader) ([]Route, error) {
	var out []Route
	err := eachRoute(r, func(through string, destination, _, mask [4]byte) {
		if mask != [4]byte{} {
			ones := bits.LeadingZeros32(^binary.BigEndian.Uint32(mask[:]))
			out = append(out, Route{netip.PrefixFrom(netip.AddrFrom4(destination), ones).Masked(), through})
		}
	})
	return out, err
}

// ParseGateways parses the same table and returns the gateways of its routes, including the default route.
func ParseGateways(r io.Reader) ([]netip.Addr, error) {
	var out []netip.Addr
	err := eachRoute(r, func(_ string, _, gateway, _ [4]byte) {
		if gateway != [4]byte{} {
			out = append(out, netip.AddrFrom4(gateway))
		}
	})
	return out, err
}

// eachRoute calls visit for each row of the table.
func eachRoute(r io.Reader, visit func(through string, destination, gateway, mask [4]byte)) error {
	lines := bufio.NewScanner(r)
	lines.Scan() // the header
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			continue
		}
		destination, err := parseAddress(f[1])
		gateway, badGateway := parseAddress(f[2])
		mask, badMask := parseAddress(f[7])
		if err = errors.Join(err, badGateway, badMask); err != nil {
			return err
		}
		visit(f[0], destination, gateway, mask)
	}
	return lines.Err()
}

// parseAddress decodes an address that the kernel prints as a little-endian number.
func parseAddress(s string) ([4]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 {
		return [4]byte{}, fmt.Errorf("route table: %q is not an address", s)
	}
	return [4]byte{b[3], b[2], b[1], b[0]}, nil
}
