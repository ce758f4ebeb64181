package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/managementnode"
)

// Reasons of the faults of this command.
const (
	reasonNoNodes = "NoNodes"
	reasonNoImage = "ImageMissing"
)

// loadFlags holds the flag values. once is --once, which stores no copies for later nodes.
type loadFlags struct {
	dataDir, cluster, namespace string
	once                        bool
}

// loadCommand returns the image load command, for [Command].
func loadCommand(e term.Env) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load IMAGE|FILE...",
		Short: "Load container images from Docker or archives into nodes",
		Long: `Load container images into nodes, so that Pods start without a registry. The images are loaded into
the node of the management cluster ("slipway up --node"), or with --cluster into every running node
of a workload cluster. IMAGE is the name of an image in Docker. FILE is an archive of "docker save",
an OCI layout in a tar file, or the directory of an OCI layout as in releases.

With --cluster, a copy of each image is stored in the data directory until the cluster is deleted,
and later nodes receive it before their first Pod; --once stores no copy. If an image with the same
name is loaded again, it replaces the stored copy. After the node of the management cluster is
replaced, load the images again.`,
		Example: `  slipway image load registry.example/provider:v1.0.0
  slipway image load provider.tar --cluster demo`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args) },
	}
	term.AddDataDirFlag(cmd.Flags(), &f.dataDir)
	cmd.Flags().StringVar(&f.cluster, "cluster", "", "workload cluster whose nodes get the images (default: the node of the management cluster)")
	cmd.Flags().BoolVar(&f.once, "once", false, "with --cluster: do not store the images for nodes that are created later")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "namespace of the workload cluster")
	return cmd
}

func (f loadFlags) run(ctx context.Context, e term.Env, args []string) error {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	instance, err := datadir.ReadInstance(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Unreachable, "ManagementClusterNotRunning", "no management cluster has been started in %s; \"slipway up -d --node\" starts one", dir)
	}
	if err != nil {
		return err
	}
	engine, err := container.New(container.Config{Instance: instance, Ownership: hosttransfer.Open(dir, instance)})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	if _, err := f.nodes(ctx, engine); err != nil { // report a wrong selection of nodes before reading anything
		return err
	}
	sources, err := sourcesOf(ctx, engine, args)
	if err != nil {
		return err
	}
	for i, s := range sources {
		if sources[i], err = f.storeCopy(ctx, backend.ImageArchives{Dir: dir.Images()}, s); err != nil {
			return err
		}
	}
	nodes, err := f.nodes(ctx, engine) // including nodes that were created meanwhile
	if err != nil {
		return err
	}
	for _, s := range sources {
		for _, n := range nodes {
			_, _ = fmt.Fprintf(e.Err, "Loading %s into %s …\n", s.name, n.Name)
			if err := s.load(ctx, engine, n); err != nil {
				return errors.Join(err, s.discard())
			}
		}
	}
	later := ""
	if f.storesCopies() {
		later = " Nodes that are created later get it, too."
	}
	_, err = fmt.Fprintf(e.Err, "Loaded %d into %d.%s\n", len(args), len(nodes), later)
	return err
}

func (f loadFlags) storesCopies() bool { return f.cluster != "" && !f.once }

// storeCopy stores a copy of a source for nodes that are created later. The copy is stored before loading, so that no
// node is missed in between. Existing nodes are loaded from the copy. For later nodes, the manager loads it
// (backend.WrapPreloading).
func (f loadFlags) storeCopy(ctx context.Context, archives backend.ImageArchives, s source) (source, error) {
	if !f.storesCopies() {
		return s, nil
	}
	archive, err := s.open(ctx)
	if err != nil {
		return s, err
	}
	defer func() { _ = archive.Close() }()
	file, err := archives.Store(types.NamespacedName{Namespace: f.namespace, Name: f.cluster}, s.name, archive)
	if err != nil {
		return s, fmt.Errorf("keeping %s for later nodes: %w", s.name, err)
	}
	s.open, s.copyPath = func(context.Context) (io.ReadCloser, error) { return os.Open(file) }, file
	return s, nil
}

// discard removes a copy that could not be loaded, because other nodes may be unable to load it as well.
func (s source) discard() error {
	if s.copyPath == "" {
		return nil
	}
	return os.Remove(s.copyPath)
}

// nodes returns the nodes to load the images into.
func (f loadFlags) nodes(ctx context.Context, engine *container.Engine) ([]backend.Machine, error) {
	namespace := f.namespace
	if f.cluster == "" {
		namespace = managementnode.Namespace
	}
	nodes, err := engine.Nodes(ctx, namespace, f.cluster)
	switch {
	case err != nil:
		return nil, err
	case len(nodes) == 0 && f.cluster == "":
		return nil, fault.New(fault.Invalid, reasonNoNodes, "the management cluster has no node that runs: \"slipway up -d --node\" joins one; --cluster names a workload cluster")
	case len(nodes) == 0:
		return nil, fault.New(fault.Invalid, reasonNoNodes, "Cluster %s/%s has no node in a container that runs on this host: check the name, -n and --data-dir", namespace, f.cluster)
	}
	return nodes, nil
}

// source is an archive of images to load. sourcesOf returns one for each argument, and load opens it once for each
// node.
type source struct {
	name string
	open func(context.Context) (io.ReadCloser, error)
	// copyPath is the file of the copy for later nodes, or empty.
	copyPath string
}

// imageSource provides images.
type imageSource interface {
	HasImage(ctx context.Context, name string) (bool, error)
	SaveImages(ctx context.Context, names []string) (io.ReadCloser, error)
}

// sourcesOf returns the sources, images of Docker before files. It reports missing images before anything is loaded.
func sourcesOf(ctx context.Context, engine imageSource, args []string) ([]source, error) {
	var images, files []source
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err == nil && info.IsDir() && isLayout(arg):
			files = append(files, source{name: arg, open: func(ctx context.Context) (io.ReadCloser, error) { return archiveOf(ctx, arg), nil }})
			continue
		case err == nil && info.Mode().IsRegular():
			files = append(files, source{name: arg, open: func(context.Context) (io.ReadCloser, error) { return os.Open(arg) }})
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		found, err := engine.HasImage(ctx, arg)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fault.New(fault.Invalid, reasonNoImage, "%s is neither a file, nor the folder of an OCI layout, nor an image that Docker has: pull or build it first (docker images lists what there is)", arg)
		}
		images = append(images, source{name: arg, open: func(ctx context.Context) (io.ReadCloser, error) {
			return engine.SaveImages(ctx, []string{arg})
		}})
	}
	return append(images, files...), nil
}

func (s source) load(ctx context.Context, engine *container.Engine, n backend.Machine) error {
	archive, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	_, err = engine.LoadImages(ctx, backend.Ref{Object: n.Owner.Object, Name: n.Name}, archive)
	return err
}

// isLayout reports whether a folder is an OCI layout.
func isLayout(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "oci-layout"))
	return err == nil
}

// archiveOf reads a folder as a tar file.
func archiveOf(ctx context.Context, folder string) io.ReadCloser {
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		w := tar.NewWriter(writer)
		err := w.AddFS(os.DirFS(folder))
		if err == nil {
			err = w.Close()
		}
		_ = writer.CloseWithError(err) // nil: the end of the file
	}()
	return reader
}
