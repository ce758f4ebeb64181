package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// reasonAddressAnswers means that another machine has the virtual IP address; the kind is Invalid.
	reasonAddressAnswers = "VirtualIPInUse"
	// reasonMemberAnswers means that a host that could not be informed responds in the network; the kind is Invalid.
	reasonMemberAnswers = "VirtualIPMemberUnreachable"
	// reasonNotHoldable means that the host cannot hold the address; the kind is Invalid.
	reasonNotHoldable = "VirtualIPNotPossible"
	// priorityOfMember and priorityOfLeaving are the priorities of hosts without a ready API server. A ready one adds 50.
	priorityOfMember, priorityOfLeaving = 100, 10
)

// VirtualIP is the configuration of one of the hosts that can hold the virtual IP address of a control plane. The
// SSHCluster controller fills it in.
type VirtualIP struct {
	// ClaimID is the claim in the record of the host.
	ClaimID string
	// Address is the virtual IP address, NodeAddress the address of the node on the host.
	Address, NodeAddress netip.Addr
	// Peers are the addresses of the other hosts that can hold the address.
	Peers []netip.Addr
	// Initial is set on the host that creates the cluster: it holds the address before its API server has started.
	Initial bool
	// Leaving is set on a host that will be released: it gives the address to a host that is not.
	Leaving bool
}

// VirtualIPConditions are conditions under which a host may begin to hold a virtual IP address.
type VirtualIPConditions struct {
	// Unused requires that no machine responds at the address.
	Unused bool
	// Silent are addresses of other hosts that must not respond: they were not informed about this host, so that both could
	// hold the address.
	Silent []netip.Addr
}

// VirtualIPState is the state of a host that can hold a virtual IP address. The SSHCluster controller reads it.
type VirtualIPState struct {
	// Digest is the digest of the configuration on the host, empty if there is none.
	Digest string
	// Running is set if keepalived runs, Holds if the host has the address.
	Running, Holds bool
}

// files returns the files for the host. The script replaces what only the host knows.
func (v VirtualIP) files() ([]nodeFile, error) {
	local, initial, priority := "127.0.0.1", "", priorityOfMember
	if v.Address.Is6() {
		local = "[::1]"
	}
	if v.Initial {
		initial = "initial"
	}
	if v.Leaving {
		priority = priorityOfLeaving
	}
	peers := slices.Clone(v.Peers)
	slices.SortFunc(peers, netip.Addr.Compare)
	var list strings.Builder
	for _, p := range slices.Compact(peers) {
		fmt.Fprintf(&list, "\t\t%s\n", p)
	}
	if len(peers) == 0 { // without any, keepalived would send to a multicast address
		fmt.Fprintf(&list, "\t\t%s\n", strings.Trim(local, "[]"))
	}
	replace := strings.NewReplacer("@NODE@", v.NodeAddress.String(), "@PEERS@", list.String(), "@LOCAL@", local, " @INITIAL@", strings.TrimRight(" "+initial, " "),
		"@PRIORITY@", strconv.Itoa(priority), "@ADDRESS@", netip.PrefixFrom(v.Address, v.Address.BitLen()).String())
	var out []nodeFile
	for name, file := range map[string]string{"keepalived.conf": "keepalived.conf", "check": "keepalived-check", "slipway-keepalived.service": "slipway-keepalived.service"} {
		text, err := nodeFiles.ReadFile("files/" + file)
		if err != nil {
			return nil, err
		}
		out = append(out, nodeFile{path: name, mode: 0o644, content: []byte(replace.Replace(string(text)))})
	}
	slices.SortFunc(out, func(a, b nodeFile) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// check validates the addresses, which become part of a configuration file.
func (v VirtualIP) check() error {
	if !claimID.MatchString(v.ClaimID) {
		return fault.New(fault.Bug, "InvalidVirtualIP", "%.40q is not a claim ID", v.ClaimID)
	}
	for _, a := range append([]netip.Addr{v.Address, v.NodeAddress}, v.Peers...) {
		if !a.IsGlobalUnicast() || a.Zone() != "" || a.Is4In6() {
			return fault.New(fault.Invalid, reasonNotHoldable, "virtual IP address %s cannot be held: %s is not the address of a host", v.Address, a)
		}
		if a.Is4() != v.Address.Is4() {
			return fault.New(fault.Invalid, reasonNotHoldable, "virtual IP address %s and address %s of a control plane host are of different IP versions", v.Address, a)
		}
	}
	return nil
}

// Digest identifies the configuration. [Host.ConfigureVirtualIP] stores it on the host, and the SSHCluster controller
// detects changes with it.
func (v VirtualIP) Digest() (string, error) {
	files, err := v.files()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%s %d\n%s", f.path, len(f.content), f.content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ConfigureVirtualIP lets the host hold the address, or changes the configuration without losing the address. The conditions
// apply to a host that begins. An address that another machine has, or that the host cannot hold, is a fault of kind
// Invalid. The SSHCluster controller calls it.
func (h *Host) ConfigureVirtualIP(ctx context.Context, v VirtualIP, only VirtualIPConditions) error {
	if err := v.check(); err != nil {
		return err
	}
	digest, err := v.Digest()
	if err != nil {
		return err
	}
	files, err := v.files()
	if err != nil {
		return err
	}
	archive, err := tarArchive(files)
	if err != nil {
		return err
	}
	parameters := []parameter{
		{"CLAIM", v.ClaimID}, {"ADDRESS", v.Address.String()}, {"NODE", v.NodeAddress.String()}, {"DIGEST", digest}, {"UNUSED", strconv.FormatBool(only.Unused)},
	}
	for _, a := range only.Silent {
		parameters = append(parameters, parameter{"SILENT", a.String()})
	}
	out, err := h.run(ctx, call{script: "virtual-ip", input: archive, parameters: parameters})
	if err = claimConflict(h.target, err); err != nil {
		return fmt.Errorf("configuring the virtual IP address: %w", err)
	}
	return refused(v, first(values(string(out), "REFUSED"), "REFUSED"))
}

// refused returns the fault for the reason why the script did not configure the address.
func refused(v VirtualIP, reason string) error {
	const another = "choose an unused address in the subnet of the control plane hosts"
	switch reason {
	case "":
		return nil
	case "Answers":
		return fault.New(fault.Invalid, reasonAddressAnswers, "virtual IP address %s is in use by another machine, which responds to it; %s", v.Address, another)
	case "MemberAnswers":
		return fault.New(fault.Invalid, reasonMemberAnswers, "another control plane host responds in the network but not to SSH, so that it cannot be informed about this host; repair the SSH server of that host, or turn it off")
	case "OwnAddress":
		return fault.New(fault.Invalid, reasonNotHoldable, "virtual IP address %s is an address of the host already; %s", v.Address, another)
	case "Gateway":
		return fault.New(fault.Invalid, reasonNotHoldable, "virtual IP address %s is the address of a gateway; %s", v.Address, another)
	case "OtherSubnet":
		return fault.New(fault.Invalid, reasonNotHoldable, "virtual IP address %s is not the address of a host in the subnet of %s; %s", v.Address, v.NodeAddress, another)
	case "NoInterface":
		return fault.New(fault.Invalid, reasonNotHoldable, "no network interface of the host has the address %s of the node; correct spec.nodeAddress of its SSHHost", v.NodeAddress)
	case "NoKeepalived":
		return fault.New(fault.Invalid, reasonNotHoldable, "the host has no keepalived or socat; build the bundle again with this version of Slipway, or install them (spec.bundle: None)")
	}
	return errUnexpected("virtual-ip")
}

// VirtualIPState returns the state of the host for a claim. The SSHCluster controller calls it.
func (h *Host) VirtualIPState(ctx context.Context, claim string, address netip.Addr) (VirtualIPState, error) {
	if !claimID.MatchString(claim) {
		return VirtualIPState{}, fault.New(fault.Bug, "InvalidVirtualIP", "%.40q is not a claim ID", claim)
	}
	out, err := h.run(ctx, call{script: "virtual-ip-state", parameters: []parameter{{"CLAIM", claim}, {"ADDRESS", address.String()}}})
	if err = claimConflict(h.target, err); err != nil {
		return VirtualIPState{}, fmt.Errorf("reading the state of the virtual IP address: %w", err)
	}
	v := values(string(out), "DIGEST", "RUNNING", "HOLDS")
	s := VirtualIPState{Running: first(v, "RUNNING") == "true", Holds: first(v, "HOLDS") == "true"}
	if d := first(v, "DIGEST"); digest.MatchString(d) {
		s.Digest = d
	}
	return s, nil
}
