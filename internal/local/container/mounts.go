package container

import (
	"context"
	"net/url"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// ResolveMount returns the host path of a mount without symbolic links. [Engine.CheckQuota] calls it for each mount of
// a new machine; the controller then compares the result with the operator's policy. The error is a fault of kind
// Invalid if the path does not exist or may not be mounted even if the operator allows it: paths refused on any host,
// reserved directories, and Docker's own directory and socket.
func (e *Engine) ResolveMount(ctx context.Context, hostPath string) (string, error) {
	guard, err := e.guard(ctx)
	if err != nil {
		return "", err
	}
	return resolve(guard, hostPath)
}

func resolve(g pathGuard, hostPath string) (string, error) {
	resolved, err := g.Resolve(hostPath)
	if err != nil {
		return "", fault.New(fault.Invalid, reasonMountRefused, "Path %q cannot be mounted: %s", hostPath, err.Error())
	}
	return resolved, nil
}

// guard returns the guard of mounts, which also protects Docker's directory and socket.
func (e *Engine) guard(ctx context.Context) (pathGuard, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	info, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return pathGuard{}, e.fault("reading the data directory of Docker", err)
	}
	g := pathGuard{Reserved: append([]string{}, e.paths.Reserved...)}
	if info.Info.DockerRootDir != "" {
		g.Reserved = append(g.Reserved, info.Info.DockerRootDir)
	}
	if at, err := url.Parse(e.api.DaemonHost()); err == nil && at.Scheme == "unix" {
		g.Reserved = append(g.Reserved, at.Path)
	}
	return g, nil
}

// recheckMounts checks that the mount paths, which were allowed after they had been resolved, still lead to the same
// places. It runs right before the container is created and right after it has started, because Docker follows links
// when it mounts, and a user who can write to a directory that one node mounts could replace a directory in it with a
// link. At that time no tenant's process runs in the container yet, so a container with a wrong mount can still be
// removed. [Engine.Create] calls it.
func (e *Engine) recheckMounts(ctx context.Context, mounts []backend.Mount) error {
	if len(mounts) == 0 {
		return nil
	}
	guard, err := e.guard(ctx)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		now, err := resolve(guard, m.HostPath)
		if err != nil {
			return err
		}
		if now != m.HostPath {
			return fault.New(fault.Invalid, reasonMountRefused,
				"Path %q became a link to %s before a node mounted it: remove the link", m.HostPath, now)
		}
	}
	return nil
}
