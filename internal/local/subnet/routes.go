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

// Route is a destination in the kernel's routing table with its interface. The container backend shows the interface as
// the user of the range.
type Route struct {
	Destination netip.Prefix
	Interface   string
}

// ParseRoutes parses the kernel's IPv4 routing table in the format of /proc/net/route. It returns the destinations
// without the default route, and the gateways of all routes. The container backend excludes both from the ranges of new
// networks.
func ParseRoutes(table io.Reader) (routes []Route, gateways []netip.Addr, err error) {
	lines := bufio.NewScanner(table)
	lines.Scan() // the header
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 8 {
			continue
		}
		destination, badDestination := parseAddress(f[1])
		gateway, badGateway := parseAddress(f[2])
		mask, badMask := parseAddress(f[7])
		if err := errors.Join(badDestination, badGateway, badMask); err != nil {
			return nil, nil, err
		}
		if mask != [4]byte{} {
			ones := bits.LeadingZeros32(^binary.BigEndian.Uint32(mask[:]))
			routes = append(routes, Route{netip.PrefixFrom(netip.AddrFrom4(destination), ones).Masked(), f[0]})
		}
		if gateway != [4]byte{} {
			gateways = append(gateways, netip.AddrFrom4(gateway))
		}
	}
	return routes, gateways, lines.Err()
}

// parseAddress decodes an address that the kernel prints as a little-endian number.
func parseAddress(s string) ([4]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 {
		return [4]byte{}, fmt.Errorf("route table: %q is not an address", s)
	}
	return [4]byte{b[3], b[2], b[1], b[0]}, nil
}
