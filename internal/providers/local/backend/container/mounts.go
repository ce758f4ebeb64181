package container

import (
	"context"
	"net/url"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/hostpath"
)

// ResolveMount returns the path of the host that a mount would show, without symbolic links. The error is a fault of kind
// Invalid for a path that does not exist, and for one that no node may have even if it is allowed: besides what is refused on
// any host and the folders that are reserved, that is Docker's own folder and socket.
func (e *Engine) ResolveMount(ctx context.Context, hostPath string) (string, error) {
	guard, err := e.guard(ctx)
	if err != nil {
		return "", err
	}
	return resolve(guard, hostPath)
}

func resolve(g hostpath.Guard, hostPath string) (string, error) {
	resolved, err := g.Resolve(hostPath)
	if err != nil {
		return "", fault.New(fault.Invalid, ReasonMountRefused, "Path %q cannot be mounted: %s", hostPath, err.Error())
	}
	return resolved, nil
}

// guard knows what is Docker's own.
func (e *Engine) guard(ctx context.Context) (hostpath.Guard, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	info, err := e.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return hostpath.Guard{}, e.fault("asking Docker for its folder", err)
	}
	g := hostpath.Guard{Reserved: append([]string{}, e.paths.Reserved...)}
	if info.Info.DockerRootDir != "" {
		g.Reserved = append(g.Reserved, info.Info.DockerRootDir)
	}
	if at, err := url.Parse(e.api.DaemonHost()); err == nil && at.Scheme == "unix" {
		g.Reserved = append(g.Reserved, at.Path)
	}
	return g, nil
}

// recheckMounts makes sure that the paths of mounts, which were allowed as they were when they were resolved, still lead
// to the same places. It is asked right before the container is made and right after it has started: Docker follows
// links when it mounts, and who may write to a folder that one node mounts could put a link in the place of a folder in
// it. Nothing of a tenant's runs in the container yet, so that one which shows something else can be taken away.
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
			return fault.New(fault.Invalid, ReasonMountRefused,
				"Path %q has become a link to %s while a node was about to mount it: remove the link", m.HostPath, now)
		}
	}
	return nil
}
