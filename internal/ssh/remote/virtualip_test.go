package remote_test

import (
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

func virtualIP(change func(*remote.VirtualIP)) remote.VirtualIP {
	v := remote.VirtualIP{ClaimID: claim, Address: netip.MustParseAddr("192.0.2.10"), NodeAddress: netip.MustParseAddr("192.0.2.11")}
	if change != nil {
		change(&v)
	}
	return v
}

// network stands for the programs of a host that need its network: lines of a shell.
const hostNetwork = `
keepalived() { :; }
socat() { :; }
sleep() { :; }
restorecon() { :; }
systemctl() {
	echo "$*" >>$node/systemctl
	case $1 in
	is-active) [ -e $node/active ] ;;
	start) touch $node/active ;;
	esac
}
ip() {
	case "$*" in
	"-o addr show") echo "2: eth0    inet 192.0.2.11/24 brd 192.0.2.255 scope global eth0" ;;
	"route get 192.0.2.10") echo "192.0.2.10 dev eth0 src 192.0.2.11 uid 0" ;;
	"route get 192.0.2.11") echo "local 192.0.2.11 dev lo src 192.0.2.11 uid 0" ;;
	"route get 192.0.2.255") echo "broadcast 192.0.2.255 dev eth0 src 192.0.2.11 uid 0" ;;
	"route get 192.0.2.1") echo "192.0.2.1 dev eth0 src 192.0.2.11 uid 0" ;;
	"route get 198.51.100."*) echo "$3 via 192.0.2.1 dev eth0 src 192.0.2.11 uid 0" ;;
	"route show table all") echo "default via 192.0.2.1 dev eth0" ;;
	"neigh show to 192.0.2.1"[02]" dev eth0") echo "$4 lladdr 02:42:ac:11:00:02 $SEEN" ;;
	"neigh show to"*) echo "$4 FAILED" ;;
	esac
}
`

func withNetwork(t *testing.T, seen string) (*sshtest.Server, *remote.Host) {
	t.Helper()
	s := sshtest.Start(t)
	library, scripts := readScripts(t, "virtual-ip", "virtual-ip-state")
	network := hostNetwork
	if seen == "" { // no machine responds
		network = strings.Replace(network, "lladdr 02:42:ac:11:00:02 $SEEN", "FAILED", 1)
	}
	s.RunLocally(library, strings.ReplaceAll(network, "$SEEN", seen), scripts)
	s.WriteFile("/etc/slipway/machine.json", "{\n  \"claimID\": \""+claim+"\"\n}\n")
	return s, connect(t, newPool(t, remote.Limits{}), s.Target())
}

func TestVirtualIPIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		seen   string
		change func(*remote.VirtualIP)
		only   remote.VirtualIPConditions
		want   string // a part of the message
	}{
		"good":            {"nothing responds", "", nil, remote.VirtualIPConditions{Unused: true}, ""},
		"in use":          {"another machine responds", "REACHABLE", nil, remote.VirtualIPConditions{Unused: true}, "in use by another machine"},
		"held":            {"one of the hosts holds it", "STALE", nil, remote.VirtualIPConditions{}, ""},
		"member responds": {"it could not be informed", "REACHABLE", nil, remote.VirtualIPConditions{Silent: []netip.Addr{netip.MustParseAddr("192.0.2.12")}}, "responds in the network but not to SSH"},
		"member is dead":  {"it holds nothing", "", nil, remote.VirtualIPConditions{Silent: []netip.Addr{netip.MustParseAddr("192.0.2.12")}}, ""},
		"gateway":         {"of the host", "", func(v *remote.VirtualIP) { v.Address = netip.MustParseAddr("192.0.2.1") }, remote.VirtualIPConditions{}, "is the address of a gateway"},
		"its own":         {"of the node", "", func(v *remote.VirtualIP) { v.Address = v.NodeAddress }, remote.VirtualIPConditions{}, "is an address of the host already"},
		"broadcast":       {"of the subnet", "", func(v *remote.VirtualIP) { v.Address = netip.MustParseAddr("192.0.2.255") }, remote.VirtualIPConditions{}, "is not the address of a host in the subnet"},
		"another subnet":  {"no machine would find it", "", func(v *remote.VirtualIP) { v.Address = netip.MustParseAddr("198.51.100.9") }, remote.VirtualIPConditions{}, "is not the address of a host in the subnet"},
		"unknown node":    {"the SSHHost is wrong", "", func(v *remote.VirtualIP) { v.NodeAddress = netip.MustParseAddr("192.0.2.99") }, remote.VirtualIPConditions{}, "correct spec.nodeAddress"},
		"versions":        {"one address of each", "", func(v *remote.VirtualIP) { v.Address = netip.MustParseAddr("2001:db8::1") }, remote.VirtualIPConditions{}, "different IP versions"},
		"no address":      {"of a peer", "", func(v *remote.VirtualIP) { v.Peers = []netip.Addr{{}} }, remote.VirtualIPConditions{}, "is not the address of a host"},
		"zone":            {"a text in an address", "", func(v *remote.VirtualIP) { v.Address = netip.MustParseAddr("fe80::1%a}b") }, remote.VirtualIPConditions{}, "is not the address of a host"},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := withNetwork(t, tc.seen)
			err := h.ConfigureVirtualIP(t.Context(), virtualIP(tc.change), tc.only)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.want)):
				t.Errorf("%s: %v", tc.reason, err)
			}
			if _, err := os.Stat(s.Path("/etc/slipway/keepalived/keepalived.conf")); (err == nil) != (tc.want == "") {
				t.Errorf("the file of a host that refused: %v", err)
			}
		})
	}
}

func TestConfigureVirtualIP(t *testing.T) {
	s, h := withNetwork(t, "")
	read := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(s.Path(file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := virtualIP(func(v *remote.VirtualIP) { v.Initial = true })
	if err := h.ConfigureVirtualIP(t.Context(), first, remote.VirtualIPConditions{Unused: true}); err != nil {
		t.Fatal(err)
	}
	conf := read("/etc/slipway/keepalived/keepalived.conf")
	for _, part := range []string{"interface eth0", "192.0.2.10/32 dev eth0", "unicast_src_ip 192.0.2.11", "\t\t127.0.0.1\n", "check alive initial\"", "priority 100"} {
		if !strings.Contains(conf, part) {
			t.Errorf("no %q in %s", part, conf)
		}
	}
	if text := conf + read("/etc/slipway/keepalived/check") + read("/etc/systemd/system/slipway-keepalived.service"); regexp.MustCompile(`@[A-Z_]+@`).MatchString(text) {
		t.Errorf("a placeholder remains: %s", text)
	}
	digest, err := first.Digest()
	state, err2 := h.VirtualIPState(t.Context(), claim, first.Address)
	if err != nil || err2 != nil || state.Digest != digest || !state.Running || state.Holds {
		t.Errorf("%+v %v %v", state, err, err2)
	}
	later := virtualIP(func(v *remote.VirtualIP) {
		v.Peers, v.Leaving = []netip.Addr{netip.MustParseAddr("192.0.2.13"), netip.MustParseAddr("192.0.2.12")}, true
	})
	if err := h.ConfigureVirtualIP(t.Context(), later, remote.VirtualIPConditions{}); err != nil {
		t.Fatal(err)
	}
	conf = read("/etc/slipway/keepalived/keepalived.conf")
	if !strings.Contains(conf, "\t\t192.0.2.12\n\t\t192.0.2.13\n\t}") || !strings.Contains(conf, "check alive\"") || !strings.Contains(conf, "priority 10\n") || strings.Contains(conf, "127.0.0.1") {
		t.Errorf("%s", conf)
	}
	if log := read("/var/lib/slipway/node/systemctl"); strings.Count(log, "\nstart slipway-keepalived.service\n") != 1 || strings.Count(log, "\nreload slipway-keepalived.service\n") != 1 {
		t.Errorf("it is started once and then reloaded: %s", log)
	}
	for _, path := range []string{"/etc/slipway/keepalived/keepalived.conf", "/etc/slipway/keepalived/check", "/etc/slipway/keepalived/digest", "/etc/systemd/system/slipway-keepalived.service"} {
		if !strings.Contains(read("/var/lib/slipway/node/installed"), s.Path(path)+"\n") {
			t.Errorf("%s is not recorded for cleaning", path)
		}
	}
	swapped := later
	swapped.Peers = []netip.Addr{later.Peers[1], later.Peers[0]}
	a, _ := later.Digest()
	if b, _ := swapped.Digest(); a != b || a == digest {
		t.Error("the digest depends on the configuration, and not on the order of the peers")
	}
	other := virtualIP(func(v *remote.VirtualIP) { v.ClaimID = strings.Repeat("b", 26) })
	if err := h.ConfigureVirtualIP(t.Context(), other, remote.VirtualIPConditions{}); fault.As(err) == nil || fault.As(err).Reason != remote.ReasonClaimedByAnother {
		t.Errorf("the host of another claim: %v", err)
	}
	if _, err := h.VirtualIPState(t.Context(), other.ClaimID, other.Address); fault.As(err) == nil || fault.As(err).Reason != remote.ReasonClaimedByAnother {
		t.Errorf("the state for another claim: %v", err)
	}
}
