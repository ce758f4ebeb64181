package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/slipwayhq/slipway/internal/controlplane/components"
	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonPortTaken is the reason of the fault for an address in use.
const reasonPortTaken = "PortTaken"

// listenLoopback opens the port of the management cluster's API server. Only loopback addresses are accepted, because
// the API of a single-user machine must not be reachable from other machines. newManagement calls it.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	if err := CheckListen(address); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.New(fault.Invalid, reasonPortTaken,
			"port %s on %s is taken by %s; stop that process, or choose another port with --listen %s:PORT", port, host, listeners.AddressHolder(address), host).From(err)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "ListenAddress", "cannot listen on %s; choose another address with --listen", address).From(err)
	}
	return l, nil
}

// CheckListen validates the listen address of a [ManagementConfig]. `slipway up` also calls it before it creates the
// data directory.
func CheckListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fault.New(fault.Invalid, "ListenAddress", "--listen %q is not ADDRESS:PORT, for example 127.0.0.1:6440", address)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fault.New(fault.Invalid, "ListenAddress", "--listen %q: the management cluster listens on a loopback address only, for example 127.0.0.1:%s", address, port)
	}
	return nil
}

// listenElsewhere opens the port of the management cluster at further addresses of this host that the operator has
// configured (management.addresses). If one cannot be opened, it closes all. newManagement calls it.
func listenElsewhere(ctx context.Context, own net.Listener, addresses []string) (net.Listener, error) {
	all, port := own, strconv.Itoa(own.Addr().(*net.TCPAddr).Port)
	for _, address := range addresses {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, port))
		if err != nil {
			_ = all.Close()
			return nil, fault.New(fault.Invalid, "ListenAddress",
				"management.addresses: port %s cannot be opened at %s (%v): name an address that this host has, and where the port is free", port, address, err).From(err)
		}
		all = listeners.Merge(all, l)
	}
	return all, nil
}

// listenEndpoint opens the endpoint of a workload cluster's control plane, whose address may not exist on this host
// yet. The error does not name the program that uses the port, because all readers of the HostedControlPlane see it.
func listenEndpoint(ctx context.Context, endpoint string) (net.Listener, error) {
	l, err := listeners.Freebind(ctx, endpoint)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fault.New(fault.Invalid, reasonPortTaken,
			"the endpoint of the control plane, %s, is taken by another program; end that program, or create the cluster with an endpoint of another port", endpoint).From(err)
	}
	return l, err
}

// localTries limits the number of loopback addresses that are tried.
const localTries = 64

// listenOnLoopback opens the port of the endpoint on a loopback address, which components of this process and
// tools on this machine use even if the address of the endpoint does not exist yet. The port must be the
// same, because kube-apiserver publishes the port of its listener as the port of the Service "kubernetes".
// The address is derived from the endpoint, because many control planes use the same port.
func listenOnLoopback(ctx context.Context, endpoint netip.AddrPort) (net.Listener, error) {
	sum := sha256.Sum256(endpoint.Addr().AsSlice())
	for i := range localTries {
		address := netip.AddrFrom4([4]byte{127, 1 + sum[0]%254, sum[1], byte(1 + (int(sum[2])+i)%254)})
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(address, endpoint.Port()).String())
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		return l, err
	}
	return nil, fault.New(fault.Transient, reasonPortTaken, "port %d is taken on every loopback address that was tried", endpoint.Port())
}

// ports contains the open ports of a workload cluster's API server, or none without an API server. Local is its address
// for programs on this machine. [RunWorkload] passes them to the components.
type ports struct {
	open  []*net.TCPListener
	local string
}

// workloadListeners opens the endpoint of a workload cluster's API server. If it is not on loopback, it also opens a
// loopback listener, which comes first. [RunWorkload] calls it before it changes its user, because a port can require
// root.
func workloadListeners(g *components.Group, cfg WorkloadConfig) (ports, error) {
	if cfg.RunMode == processconfig.RunEtcdOnly {
		return ports{}, nil
	}
	endpoint, err := cfg.Address()
	if err != nil {
		return ports{}, err
	}
	if cfg.Everywhere {
		port := strconv.Itoa(int(endpoint.Port()))
		l, err := (&net.ListenConfig{}).Listen(g.Context(), "tcp", ":"+port)
		if err != nil {
			return ports{}, fmt.Errorf("listen at all addresses: %w", err)
		}
		g.OnStop(func() { _ = l.Close() })
		return ports{open: []*net.TCPListener{l.(*net.TCPListener)}, local: net.JoinHostPort("127.0.0.1", port)}, nil
	}
	open, err := endpointListeners(g, cfg, endpoint)
	if err != nil {
		return ports{}, err
	}
	return ports{open: open, local: open[0].Addr().String()}, nil
}

func endpointListeners(g *components.Group, cfg WorkloadConfig, endpoint netip.AddrPort) ([]*net.TCPListener, error) {
	if cfg.RunMode == processconfig.RunOnLoopback {
		beside, err := listenOnLoopback(g.Context(), endpoint)
		if err != nil {
			return nil, err
		}
		g.OnStop(func() { _ = beside.Close() })
		return []*net.TCPListener{beside.(*net.TCPListener)}, nil
	}
	l, err := listenEndpoint(g.Context(), cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	g.OnStop(func() { _ = l.Close() })
	if endpoint.Addr().IsLoopback() {
		return []*net.TCPListener{l.(*net.TCPListener)}, nil
	}
	beside, err := listenOnLoopback(g.Context(), endpoint)
	if err != nil {
		return nil, err
	}
	g.OnStop(func() { _ = beside.Close() })
	return []*net.TCPListener{beside.(*net.TCPListener), l.(*net.TCPListener)}, nil
}
