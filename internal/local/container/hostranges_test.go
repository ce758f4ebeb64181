package container

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// officeHost is a host of a company that uses 172.16.0.0/12: its network is 172.30.4.0/24, everything else is behind its gateway.
func officeHost(t *testing.T) KernelHost {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("net/route", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"+
		"eth0\t00000000\t01041EAC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"+
		"eth0\t00041EAC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"+
		"eth1\t00000B0A\t01001CAC\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n")
	return KernelHost{
		Proc:      dir,
		Resolvers: []string{write("resolv", "nameserver 172.20.5.53\nnameserver 172.30.4.53\nnameserver 127.0.0.53\n"), filepath.Join(dir, "absent")},
		Hosts:     write("hosts", "127.0.0.1 localhost\n::1 localhost\n172.21.0.7 git git.example.com # company\n"),
		Times:     []string{write("timesyncd", "[Time]\nNTP=172.22.0.9 time.example.com\n"), write("chrony", "pool 172.23.0.9 iburst\n# server 172.31.0.1\n")},
		Lookup: func(_ context.Context, network, name string) ([]netip.Addr, error) {
			if address, ok := map[string]string{"time.example.com": "172.24.0.9", "store.example.com": "172.25.0.9"}[name]; ok && network == "ip4" {
				return []netip.Addr{netip.MustParseAddr(address)}, nil
			}
			return nil, errors.New("no such host")
		},
	}
}

func TestProcessors(t *testing.T) {
	dir := t.TempDir()
	if n := (KernelHost{Proc: dir}).Processors(); n != 0 {
		t.Errorf("nothing is known; got %d", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "cpuinfo"), []byte("processor\t: 0\nmodel name\t: x # 1\n\nprocessor\t: 1\nmodel name\t: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := (KernelHost{Proc: dir}).Processors(); n != 2 {
		t.Errorf("got %d, want 2", n)
	}
}

// What lies behind the default route and is named by the host or its operator is not free: security S3.
func TestNamedHostsAreTaken(t *testing.T) {
	taken, err := officeHost(t).Ranges(t.Context(), []policy.ReachableHost{
		{Host: "store.example.com", By: "snapshots"}, {Host: "nowhere.example.com", By: "x"}, {Host: "172.26.0.9/32", By: "range"},
		{Host: "172.27.1.0/24", By: "small"}, {Host: "2001:db8::1", By: "IPv6"}, {Host: "", By: "nothing"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for p, by := range map[string]string{
		"172.30.4.0/24":  "a route of this host through eth0",
		"10.11.0.0/16":   "a route of this host through eth1",
		"172.28.0.0/16":  "a gateway of this host",
		"172.20.0.0/16":  "a name server of this host",
		"172.21.0.0/16":  "a host in the hosts file of this host",
		"172.22.0.0/16":  "a time server of this host",
		"172.23.64.0/18": "a time server of this host",
		"172.24.0.0/16":  "a time server of this host",
		"172.25.0.0/16":  "snapshots",
		"172.26.0.0/18":  "range",
		"172.27.0.0/18":  "small",
	} {
		if got := backend.RangeConflict(netip.MustParsePrefix(p), taken); !strings.Contains(got, by+" uses") {
			t.Errorf("%s: got %q, want %s", p, got, by)
		}
	}
	for reason, p := range map[string]string{
		"only the range that is named, which is no single host": "172.27.64.0/18",
		"a name server within the host's network adds nothing":  "172.30.128.0/17",
		"a comment names nothing":                               "172.31.0.0/16",
	} {
		if got := backend.RangeConflict(netip.MustParsePrefix(p), taken); got != "" {
			t.Errorf("%s: %s", reason, got)
		}
	}
}
