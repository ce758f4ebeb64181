package manager

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// portTaken says which flag chooses another address, where the manager could not listen on one because another process does.
func portTaken(err error, cfg manager.Config) error {
	var failed *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &failed) || failed.Addr == nil {
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
				port, listener.remedy).From(err)
		}
	}
	return err
}
