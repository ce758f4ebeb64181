package extensiontools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

const (
	// discoverWithin is the timeout for the discovery.
	discoverWithin = time.Minute
	// withdrawWithin is the timeout for the deletion of the registration.
	withdrawWithin = 10 * time.Second
)

// SessionOptions are the options of a session ([RunSession]). `slipway extension run` fills them in.
type SessionOptions struct {
	// Process is the developer's command.
	Process LocalOptions
	// Local is the registration; URL and CA are filled in.
	Local LocalRegistration
	// Host is the address of this machine for the management cluster; empty means 127.0.0.1.
	Host string
	// Observe is called with every call of the extension.
	Observe func(recording.Call)
	// Progress is called with progress messages.
	Progress func(string)
	// Discovered is called after each discovery.
	Discovered func(*runtimev1.ExtensionConfig)
	// Changed, if set, receives a value when the extension must be restarted, for example from [FileChanges].
	Changed <-chan struct{}
	// Now is the clock.
	Now func() time.Time
}

// RunSession runs the extension of a developer for a management cluster until ctx ends, and returns nil then. It is
// `slipway extension run` and `slipway extension record`. If the process exits, it returns an error, unless files are
// watched.
func RunSession(ctx context.Context, c client.WithWatch, o SessionOptions) (err error) {
	o.Progress("Starting the extension …")
	process, err := StartLocal(ctx, o.Process)
	if err != nil {
		return err
	}
	s := &session{SessionOptions: o, client: c, process: process}
	defer func() { s.process.Stop() }()
	s.front, err = startProxy(proxyOptions{
		Listen: listenAt(o.Host), Host: o.Host, Upstream: process.URL, Client: process.Client, Observe: o.Observe, Now: o.Now,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.front.Close()) }()
	o.Local.URL, o.Local.CA = s.front.URL, s.front.CA
	o.Progress(fmt.Sprintf("Registering it as %q …", o.Local.Name))
	config, err := register(ctx, c, o.Local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unregister(ctx, c, config, o.Progress)) }()
	if config, err = awaitDiscovery(ctx, c, config, o.Progress); err != nil {
		return err
	}
	o.Discovered(config)
	return s.follow(ctx)
}

// session is a running session.
type session struct {
	SessionOptions
	client  client.WithWatch
	front   *proxy
	process *LocalExtension
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
				return fault.New(fault.Invalid, "ExtensionEnded", "the extension exited: %s", s.process.ExitStatus())
			}
			s.process.Stop() // now, because the ID of its process group can be reused later
			s.Progress("The extension exited: " + s.process.ExitStatus() + "; it is restarted when a file changes.")
			ended = nil
		case <-s.Changed:
			if s.restart(ctx) {
				ended = s.process.Done()
			}
		}
	}
}

// restart starts a new process for the changed files. The previous process serves calls until the new one is ready, and
// continues if the new one cannot be started. restart reports whether the new one has replaced it.
func (s *session) restart(ctx context.Context) bool {
	s.Progress("Files changed: restarting the extension …")
	next, err := StartLocal(ctx, s.Process)
	switch {
	case ctx.Err() != nil:
		if err == nil {
			next.Stop()
		}
		return false
	case err != nil:
		text := "It cannot be started: " + fault.UserMessage(err)
		if s.process.process.Running() {
			text += "; the previous process serves the calls"
		}
		s.Progress(text + ".")
		return false
	}
	s.front.SwitchTo(next.URL, next.Client)
	s.process.Stop()
	s.process = next
	ctx, cancel := context.WithTimeout(ctx, discoverWithin)
	defer cancel()
	config, err := RefreshDiscovery(ctx, s.client, s.Local.Name, s.Now().Format(time.RFC3339Nano))
	if err != nil {
		s.Progress("Not discovered yet: " + fault.UserMessage(err))
		return true
	}
	s.Discovered(config)
	return true
}

// listenAt returns the listen address: loopback, unless calls come from other hosts.
func listenAt(host string) string {
	if host == "" || host == "localhost" {
		return "127.0.0.1:0"
	}
	if ip := net.ParseIP(host); ip != nil {
		return net.JoinHostPort(host, "0")
	}
	return ":0"
}

func awaitDiscovery(ctx context.Context, c client.WithWatch, config *runtimev1.ExtensionConfig, tell func(string)) (*runtimev1.ExtensionConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverWithin)
	defer cancel()
	return waitForDiscovery(ctx, c, config, func(reason string) { tell("Not discovered yet: " + reason) })
}

func unregister(ctx context.Context, c client.Client, config *runtimev1.ExtensionConfig, tell func(string)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := deleteRegistered(ctx, c, config); err != nil {
		return fmt.Errorf("removing the registration; \"slipway extension delete %s\" does it: %w", config.Name, err)
	}
	tell(fmt.Sprintf("The registration %q is removed.", config.Name))
	return nil
}
