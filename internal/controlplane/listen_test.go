package controlplane

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
	"github.com/slipwayhq/slipway/internal/fault"
)

func TestListenLoopback(t *testing.T) {
	l, err := listenLoopback(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	tests := map[string]struct {
		address, reason, says string
	}{
		"taken":        {l.Addr().String(), reasonPortTaken, "--listen 127.0.0.1:PORT"},
		"all":          {"0.0.0.0:6440", "ListenAddress", "loopback"},
		"a name":       {"localhost:6440", "ListenAddress", "loopback"},
		"without port": {"127.0.0.1", "ListenAddress", "ADDRESS:PORT"},
	}
	for name, test := range tests {
		_, err := listenLoopback(t.Context(), test.address)
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid || f.Reason != test.reason || !strings.Contains(f.Message, test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A control plane may start before its network's bridge exists.
func TestListenFreeNeedsNoInterface(t *testing.T) {
	l, err := listeners.Freebind(t.Context(), "192.0.2.1:0") // an address for documentation, on no machine
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// kube-apiserver announces the port of its listener to Pods, so the listener beside the endpoint has the same; control
// planes with one port do not get in each other's way.
func TestListenBesideHasThePortOfTheEndpoint(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).AddrPort().Port()
	used := map[string]bool{}
	for _, endpoint := range []string{"172.31.0.1", "172.30.0.1", "172.31.0.1", "fd00::1"} {
		l, err := listenOnLoopback(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(endpoint), port))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		got := l.Addr().(*net.TCPAddr).AddrPort()
		if got.Port() != port || !got.Addr().Unmap().IsLoopback() || used[got.String()] {
			t.Errorf("beside %s: %s, want port %d on a loopback address of its own", endpoint, got, port)
		}
		used[got.String()] = true
	}
}

// An address that cannot be opened is named, and nothing stays open.
func TestListenElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.8:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test ends
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, address := range []string{"192.0.2.1", "127.0.0.8"} {
		own, err := listenLoopback(t.Context(), "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		_, err = listenElsewhere(t.Context(), own, []string{"127.0.0.7", address})
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "cannot be opened at "+address) {
			t.Errorf("%s: %v", address, err)
		}
		for _, at := range []string{"127.0.0.7", "127.0.0.1"} {
			if conn, err := net.DialTimeout("tcp", net.JoinHostPort(at, port), time.Second); err == nil {
				_ = conn.Close()
				t.Errorf("%s: %s is still open", address, at)
			}
		}
	}
}
