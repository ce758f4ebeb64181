package manager

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/up"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

const loopback = "127.0.0.1"

// Embedded runs the controllers beside the management cluster of `slipway up`: the same as the verb, with webhooks on
// loopback and no endpoints of its own.
func Embedded(ctx context.Context, h up.Host) error {
	if err := manager.Install(ctx, h.Root); err != nil {
		return fmt.Errorf("preparing the management cluster: %w", err)
	}
	port, err := webhookPort(h.Manager.Host)
	if err != nil {
		return err
	}
	gates, err := embeddedGates(h.FeatureGates)
	if err != nil {
		return err
	}
	cfg := manager.Config{
		Gates: gates, REST: h.Manager, Ready: h.Ready, Concurrency: controllers(),
		Log:       logger(env.Env{Err: os.Stderr}, false, slog.LevelInfo),
		Endpoints: manager.Endpoints{Health: "0", Diagnostics: "0"},
		Webhook:   manager.Webhook{Local: true, Host: loopback, Port: port},
		Host:      manager.Host{DataDir: string(h.Dir), Instance: h.Instance, Executable: h.Executable},
	}
	ctrl.SetLogger(cfg.Log)
	return manager.Run(ctx, cfg)
}

// embeddedGates are the feature gates of `slipway up`: an extension that is broken hurts nobody but itself, so that what
// newcomers try first works without a flag (docs/divergences.md, RT-02).
func embeddedGates(changes string) (featuregate.FeatureGate, error) {
	gates, err := manager.NewGates()
	if err != nil {
		return nil, err
	}
	if err := gates.Set(string(manager.GateRuntimeSDK) + "=true"); err != nil {
		return nil, err
	}
	if err := gates.Set(changes); err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFeatureGates", "--feature-gates=%s: %v", changes, err)
	}
	return gates, nil
}

// webhookPort is the port after the API server's where that is free, so that it is the same at the next start and
// nothing has to be written anew; else any.
func webhookPort(server string) (int, error) {
	_, text, err := net.SplitHostPort(strings.TrimPrefix(server, "https://"))
	if err != nil {
		return 0, fmt.Errorf("address of the management cluster: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("address of the management cluster: %w", err)
	}
	for _, candidate := range []int{port + 1, 0} {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(candidate)))
		if err != nil {
			continue
		}
		free := listener.Addr().(*net.TCPAddr).Port
		return free, listener.Close()
	}
	return 0, fmt.Errorf("no free port for webhooks on %s", loopback)
}
