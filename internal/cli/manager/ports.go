package manager

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// portTaken adds the flag that changes the address to an error about a port that another process uses. The manager
// command passes the error of a start to it.
func portTaken(err error, cfg manager.Config) error {
	failed := listenError(err)
	if failed == nil || failed.Addr == nil || !errors.Is(failed, syscall.EADDRINUSE) {
		return err
	}
	_, port, _ := net.SplitHostPort(failed.Addr.String())
	for _, listener := range []struct{ address, remedy string }{
		{cfg.Endpoints.Health, "--health-addr (0: none)"},
		{cfg.Endpoints.Diagnostics, "--diagnostics-address (0: none)"},
		{cfg.Endpoints.Profiler, "--profiler-address"},
		{":" + strconv.Itoa(cfg.Webhook.Port), "--webhook-port"},
	} {
		if _, its, splitErr := net.SplitHostPort(listener.address); splitErr == nil && its == port {
			return fault.New(fault.Invalid, "PortTaken", "port %s is taken by another process, such as another manager on this machine; choose another one with %s",
				port, listener.remedy).From(failed)
		}
	}
	return err
}

// listenError returns the listen error that stopped the manager, even if it is combined with errors about components
// that did not stop in time; nil: there is none.
func listenError(err error) *net.OpError {
	var failed *net.OpError
	if errors.As(err, &failed) {
		return failed
	}
	var all utilerrors.Aggregate // errors.As does not unwrap aggregates
	if !errors.As(err, &all) {
		return nil
	}
	for _, one := range all.Errors() {
		if failed := listenError(one); failed != nil {
			return failed
		}
	}
	return nil
}

// checkPorts fails before anything is written if the manager cannot listen: a port is in use, or the address does not
// belong to this machine. The manager command calls it before it opens the data directory.
func checkPorts(ctx context.Context, cfg manager.Config) error {
	var taken []string
	for _, served := range []struct{ address, flag string }{
		{cfg.Endpoints.Health, "--health-addr"}, {cfg.Endpoints.Diagnostics, "--diagnostics-address"}, {cfg.Endpoints.Profiler, "--profiler-address"},
		{net.JoinHostPort(cfg.Webhook.Host, strconv.Itoa(cfg.Webhook.Port)), "--webhook-host"},
	} {
		host, port, err := net.SplitHostPort(served.address)
		if err != nil || port == "0" {
			continue // not served, or the manager reports the invalid address
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", served.address)
		var unknown *net.DNSError
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			taken = append(taken, fault.UserMessage(portTaken(err, cfg)))
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &unknown):
			return fault.New(fault.Invalid, "NotThisMachine", "%s: %s is not an address of this machine; use one of its addresses, such as 127.0.0.1", served.flag, host).From(err)
		case err == nil:
			_ = l.Close()
		}
	}
	if len(taken) > 0 {
		return fault.New(fault.Invalid, "PortTaken", "%s", strings.Join(taken, "; "))
	}
	return nil
}
