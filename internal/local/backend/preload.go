package backend

import (
	"context"
	"io"
	"os"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonNotLoaded is the reason of faults about archives that could not be loaded into a machine.
const reasonNotLoaded = "ImagesNotLoaded"

// ImageLoader loads images into machines.
type ImageLoader interface {
	// Run runs a shell program in a machine and returns its output.
	Run(ctx context.Context, ref Ref, program string, input []byte) (string, error)
	// LoadImages imports the images of an archive into the container runtime of the machine.
	LoadImages(ctx context.Context, ref Ref, archive io.Reader) (string, error)
}

// WrapPreloading returns the backend with machines that get the image archives of their cluster before their bootstrap
// script runs. The provider (package local) wraps the container backend with it. The archives are deleted with the
// cluster's network.
func WrapPreloading(inner Backend, archives ImageArchives, loader ImageLoader) Backend {
	out := inner
	out.Scripts = preloadingScripts{inner.Scripts, archives, loader}
	out.Networks = preloadingNetworks{inner.Networks, archives}
	return out
}

type preloadingScripts struct {
	Scripts
	archives ImageArchives
	loader   ImageLoader
}

// waitForContainerd waits until the container runtime responds, and fails if it does not.
const waitForContainerd = `n=0; until ctr version >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 100 ] || { echo containerd does not respond; exit 1; }; sleep 0.2; done`

// Bootstrap implements Scripts. Loading an archive again changes nothing.
func (s preloadingScripts) Bootstrap(ctx context.Context, ref Ref, script Script) error {
	files, err := s.archives.ForCluster(ref.ClusterKey())
	if err == nil && len(files) > 0 {
		_, err = s.loader.Run(ctx, ref, waitForContainerd, nil)
	}
	for _, file := range files {
		if err == nil {
			err = s.load(ctx, ref, file)
		}
	}
	if err != nil {
		why := "they cannot be read"
		if f := fault.As(err); f != nil { // other errors contain names of files on the host
			why = f.Message
		}
		return fault.New(fault.Transient, reasonNotLoaded,
			"The preloaded images of Cluster %s could not be loaded into %s: %s; retrying", ref.ClusterKey(), ref.Name, why).From(err)
	}
	return s.Scripts.Bootstrap(ctx, ref, script)
}

func (s preloadingScripts) load(ctx context.Context, ref Ref, file string) error {
	f, err := os.Open(file)
	if os.IsNotExist(err) { // it was replaced or removed in the meantime
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = s.loader.LoadImages(ctx, ref, f)
	return err
}

type preloadingNetworks struct {
	Networks
	archives ImageArchives
}

func (n preloadingNetworks) DeleteNetwork(ctx context.Context, ref Ref) error {
	if err := n.Networks.DeleteNetwork(ctx, ref); err != nil {
		return err
	}
	return n.archives.Delete(ref.ClusterKey())
}
