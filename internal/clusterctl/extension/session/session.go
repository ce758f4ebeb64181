// Package session is `slipway extension run`: an extension of this machine that a management cluster calls while its
// author watches.
//
//	management cluster ──TLS──▶ proxy (shows, records) ──TLS──▶ the author's process
//
// Does: starts the process, the proxy in front of it, registers the proxy, waits for discovery, and takes everything
// back when it ends. Where files are watched, it starts the process again when they change, with the same registration.
//
// Owns: what packages local, proxy and register own, for the time of one session.
//
// Never: leaves a registration behind, unless it is killed; the next session of the same name takes that over.
//
// Read first: [Run].
package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/extension/local"
	"github.com/slipwayhq/slipway/internal/clusterctl/extension/proxy"
	"github.com/slipwayhq/slipway/internal/clusterctl/extension/register"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

const (
	// discoverWithin is how long the management cluster may take to discover the extension.
	discoverWithin = time.Minute
	// withdrawWithin is how long taking the registration back may take.
	withdrawWithin = 10 * time.Second
)

// Options say what to run and what to tell.
type Options struct {
	// Process is the author's command.
	Process local.Options
	// Local says how to register it; URL and CA are filled in.
	Local register.Local
	// Host by which the management cluster reaches this machine; empty: 127.0.0.1.
	Host string
	// Observe is told of every call.
	Observe func(recording.Call)
	// Tell is told what happens.
	Tell func(string)
	// Discovered is told what the management cluster has discovered, each time.
	Discovered func(*runtimev1.ExtensionConfig)
	// Changed, where set, receives when the extension has to be started again, such as from package files.
	Changed <-chan struct{}
	// Now is the clock.
	Now func() time.Time
}

// Run runs the extension until ctx ends, which is no error, or the process does, which is one unless files are watched.
func Run(ctx context.Context, c client.WithWatch, o Options) (err error) {
	o.Tell("Starting the extension …")
	process, err := local.Start(ctx, o.Process)
	if err != nil {
		return err
	}
	s := &session{Options: o, client: c, process: process}
	defer func() { s.process.Stop() }()
	s.front, err = proxy.Start(proxy.Options{
		Listen: listenAt(o.Host), Host: o.Host, Upstream: process.URL, Client: process.Client, Observe: o.Observe, Now: o.Now,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.front.Close()) }()
	o.Local.URL, o.Local.CA = s.front.URL, s.front.CA
	o.Tell(fmt.Sprintf("Registering it as %q …", o.Local.Name))
	config, err := register.Register(ctx, c, o.Local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withdraw(ctx, c, config, o.Tell)) }()
	if config, err = await(ctx, c, config, o.Tell); err != nil {
		return err
	}
	o.Discovered(config)
	return s.follow(ctx)
}

// session is what runs.
type session struct {
	Options
	client  client.WithWatch
	front   *proxy.Proxy
	process *local.Extension
}

// follow returns when the session ends.
func (s *session) follow(ctx context.Context) error {
	ended := s.process.Done()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			if s.Changed == nil {
				return fault.New(fault.Invalid, "ExtensionEnded", "the extension ended: %s", s.process.Ending())
			}
			s.Tell("The extension ended: " + s.process.Ending() + "; it is started again when a file changes.")
			ended = nil
		case <-s.Changed:
			s.restart(ctx)
			ended = s.process.Done()
		}
	}
}

// restart starts the extension with its changed files. The one before takes calls until the new one answers, and stays where that
// cannot be started.
func (s *session) restart(ctx context.Context) {
	s.Tell("Files changed: starting the extension again …")
	next, err := local.Start(ctx, s.Process)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		s.Tell("It cannot be started: " + fault.UserMessage(err) + "; calls go to the one before.")
		return
	}
	s.front.SwitchTo(next.URL, next.Client)
	s.process.Stop()
	s.process = next
	ctx, cancel := context.WithTimeout(ctx, discoverWithin)
	defer cancel()
	config, err := register.Refresh(ctx, s.client, s.Local.Name, s.Now().Format(time.RFC3339Nano))
	if err != nil {
		s.Tell("Not discovered yet: " + fault.UserMessage(err))
		return
	}
	s.Discovered(config)
}

// listenAt is loopback, unless callers come from elsewhere.
func listenAt(host string) string {
	if host == "" || host == "localhost" {
		return "127.0.0.1:0"
	}
	if ip := net.ParseIP(host); ip != nil {
		return net.JoinHostPort(host, "0")
	}
	return ":0"
}

func await(ctx context.Context, c client.WithWatch, config *runtimev1.ExtensionConfig, tell func(string)) (*runtimev1.ExtensionConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverWithin)
	defer cancel()
	return register.Await(ctx, c, config, func(reason string) { tell("Not discovered yet: " + reason) })
}

func withdraw(ctx context.Context, c client.Client, config *runtimev1.ExtensionConfig, tell func(string)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := register.Withdraw(ctx, c, config); err != nil {
		return fmt.Errorf("removing the registration; \"slipway extension delete %s\" does it: %w", config.Name, err)
	}
	tell(fmt.Sprintf("The registration %q is removed.", config.Name))
	return nil
}
