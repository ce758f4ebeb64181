package kept

import (
	"context"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// ReasonNotLoaded is the reason of faults about archives that could not be loaded into a machine.
const ReasonNotLoaded = "ImagesNotLoaded"

// Loader loads images into machines.
type Loader interface {
	// Run runs a shell program in a machine and returns its output.
	Run(ctx context.Context, ref backend.Ref, program string, input []byte) (string, error)
	// LoadImages imports the images of an archive into the container runtime of the machine.
	LoadImages(ctx context.Context, ref backend.Ref, archive io.Reader) (string, error)
}

// Wrap returns the backend with machines that get the archives of their cluster. The archives are deleted with the
// cluster's network.
func Wrap(inner backend.Backend, archives Archives, loader Loader) backend.Backend {
	out := inner
	out.Scripts = scripts{inner.Scripts, archives, loader}
	out.Networks = networks{inner.Networks, archives}
	return out
}

func clusterOf(ref backend.Ref) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Object.Namespace, Name: ref.Cluster}
}

type scripts struct {
	backend.Scripts
	archives Archives
	loader   Loader
}

// awaitRuntime waits until the container runtime responds, and fails if it does not.
const awaitRuntime = `n=0; until ctr version >/dev/null 2>&1; do n=$((n+1)); [ $n -lt 100 ] || { echo containerd does not answer; exit 1; }; sleep 0.2; done`

// Bootstrap implements backend.Scripts. Loading an archive again changes nothing.
func (s scripts) Bootstrap(ctx context.Context, ref backend.Ref, script backend.Script) error {
	files, err := s.archives.Of(clusterOf(ref))
	if err == nil && len(files) > 0 {
		_, err = s.loader.Run(ctx, ref, awaitRuntime, nil)
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
		return fault.New(fault.Transient, ReasonNotLoaded,
			"The images that are kept for the nodes of Cluster %s could not be loaded into %s: %s; retrying", clusterOf(ref), ref.Name, why).From(err)
	}
	return s.Scripts.Bootstrap(ctx, ref, script)
}

func (s scripts) load(ctx context.Context, ref backend.Ref, file string) error {
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

type networks struct {
	backend.Networks
	archives Archives
}

// DeleteNetwork implements backend.Networks.
func (n networks) DeleteNetwork(ctx context.Context, ref backend.Ref) error {
	if err := n.Networks.DeleteNetwork(ctx, ref); err != nil {
		return err
	}
	return n.archives.Forget(clusterOf(ref))
}
