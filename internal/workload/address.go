package workload

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/policy"
)

// checkAddress validates the server URL. The addresses of a host name are checked when a connection is opened; see
// guardedDial.
func checkAddress(cluster *clientcmdapi.Cluster, allowed policy.Configuration) error {
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return kubeconfigRefused("server of the kubeconfig must be an https:// URL of a host without user, query and fragment: correct or replace it")
	}
	literal, err := netip.ParseAddr(server.Hostname())
	switch {
	case err == nil:
		if why := allowed.DeniedWorkload(literal.WithZone("")); why != "" {
			return kubeconfigRefused("%s", why)
		}
	case cluster.ProxyURL != "" && len(allowed.Workloads.Ranges) > 0:
		return kubeconfigRefused("the kubeconfig names a host that its proxy would resolve, so that it cannot be compared with workloads.ranges: use an IP address")
	}
	return nil
}

// guardedDial connects only to addresses that the operator's policy allows. It checks them after the name was resolved,
// so that DNS rebinding cannot bypass the check.
func guardedDial(allowed policy.Configuration) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if why := allowed.DeniedWorkload(at.Addr().WithZone("")); why != "" {
			return kubeconfigRefused("%s", why)
		}
		return nil
	}
	return dialer.DialContext
}

// noProxy disables the proxy of the environment, which would connect to unchecked addresses.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }
