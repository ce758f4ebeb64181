package manager

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// portTaken says which flag chooses another address, where the manager could not listen on one because another process does.
func portTaken(err error, cfg manager.Config) error {
	failed := listening(err)
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

// listening is the error of an attempt to listen that ended the manager, also where that what did not end in time is reported with it; nil: there is none.
func listening(err error) *net.OpError {
	var failed *net.OpError
	if errors.As(err, &failed) {
		return failed
	}
	var all utilerrors.Aggregate // which errors.As does not look into
	if !errors.As(err, &all) {
		return nil
	}
	for _, one := range all.Errors() {
		if failed := listening(one); failed != nil {
			return failed
		}
	}
	return nil
}

// checkPorts fails where a port that the manager serves at is taken, before it has written anything.
func checkPorts(ctx context.Context, cfg manager.Config) error {
	for _, address := range []string{cfg.Endpoints.Health, cfg.Endpoints.Diagnostics, cfg.Endpoints.Profiler, net.JoinHostPort(cfg.Webhook.Host, strconv.Itoa(cfg.Webhook.Port))} {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "0" {
			continue // it serves none there, or the manager says what is wrong with it
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return portTaken(err, cfg)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	return nil
}
