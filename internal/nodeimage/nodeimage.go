package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// DefaultVersion is the default Kubernetes version: the one that Slipway is compiled with. A test compares it with
// go.mod. Commands that build images and bundles use it, too.
const DefaultVersion = "v1.36.3"

// repository is the prefix of every image in a node. There is no such registry; images with this prefix are preloaded.
const repository = "slipway.dev"

// Labels of a node image. Package internal/local/backend reads labelVersion, so existing images require that they do
// not change.
const (
	labelVersion = "dev.slipway.node.kubernetes"
	labelRole    = "dev.slipway.node.role"
	labelKey     = "dev.slipway.node.key"
)

// Roles of a node image, the values of labelRole.
const (
	roleWorker       = "worker"
	roleControlPlane = "control-plane"
)

// workerRef returns the name of the image for worker nodes of a Kubernetes version such as "v1.36.3". Package
// internal/local/backend computes the same name for the machines that it creates.
func workerRef(version string) string { return repository + "/node:" + version }

// controlPlaneRef returns the name of the image for nodes on which kubeadm runs a control plane. Workers can use it,
// too.
func controlPlaneRef(version string) string { return repository + "/node-control-plane:" + version }

// Options of a build. The zero value of every field but Docker has a default. Commands and package bundle fill them in.
type Options struct {
	// KubernetesVersion is the version of kubelet, kubeadm and the rest. Default: DefaultVersion.
	KubernetesVersion string
	// ControlPlane adds the images of a control plane: kube-apiserver, kube-controller-manager, kube-scheduler, etcd.
	ControlPlane bool
	// Refresh installs the latest packages of Debian; otherwise the cached packages are used.
	Refresh bool
	// CacheDir contains the cached results of steps. Default: slipway/nodeimage in the user's cache directory.
	CacheDir string
	// Progress receives a line for each step with its name and duration. Default: no output.
	Progress io.Writer
	// Docker is the engine that gets the image. Required.
	Docker Docker
}

// Image is a node image in the engine. Commands display it and compare it with the version of a Cluster.
type Image struct {
	// Ref is the name, ID is the engine's ID.
	Ref, ID string
	// KubernetesVersion, such as "v1.36.3".
	KubernetesVersion string
	// ControlPlane is set if kubeadm can run a control plane on it.
	ControlPlane bool
	// Size in bytes.
	Size int64
	// Created is when it was built.
	Created time.Time
}

// Docker contains the methods of the engine that this package calls; *client.Client implements it.
type Docker interface {
	Ping(context.Context, client.PingOptions) (client.PingResult, error)
	ImageList(context.Context, client.ImageListOptions) (client.ImageListResult, error)
	ImageInspect(context.Context, string, ...client.ImageInspectOption) (client.ImageInspectResult, error)
	ImageLoad(context.Context, io.Reader, ...client.ImageLoadOption) (client.ImageLoadResult, error)
	ImageRemove(context.Context, string, client.ImageRemoveOptions) (client.ImageRemoveResult, error)
	ContainerCreate(context.Context, client.ContainerCreateOptions) (client.ContainerCreateResult, error)
	ContainerStart(context.Context, string, client.ContainerStartOptions) (client.ContainerStartResult, error)
	ContainerWait(context.Context, string, client.ContainerWaitOptions) client.ContainerWaitResult
	ContainerLogs(context.Context, string, client.ContainerLogsOptions) (client.ContainerLogsResult, error)
	ContainerCommit(context.Context, string, client.ContainerCommitOptions) (client.ContainerCommitResult, error)
	ContainerRemove(context.Context, string, client.ContainerRemoveOptions) (client.ContainerRemoveResult, error)
	CopyToContainer(context.Context, string, client.CopyToContainerOptions) (client.CopyToContainerResult, error)
}

var _ Docker = (*client.Client)(nil)

// List returns the node images of an engine, newest version first, for `slipway image list` and for commands that check
// whether an image exists. An engine that does not respond is a fault of kind Unreachable.
func List(ctx context.Context, docker Docker) ([]Image, error) {
	found, err := docker.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("label", labelVersion)})
	if err != nil {
		return nil, fmt.Errorf("listing node images: %w", unreachable(err))
	}
	var out []Image
	for _, s := range found.Items {
		for _, tag := range s.RepoTags {
			if !strings.HasPrefix(tag, repository+"/node:") && !strings.HasPrefix(tag, repository+"/node-control-plane:") {
				continue
			}
			out = append(out, Image{Ref: tag, ID: s.ID, KubernetesVersion: s.Labels[labelVersion],
				ControlPlane: s.Labels[labelRole] == roleControlPlane, Size: s.Size, Created: time.Unix(s.Created, 0).UTC()})
		}
	}
	sort.Slice(out, func(i, j int) bool { return isNewer(out[i], out[j]) })
	return out, nil
}

func isNewer(a, b Image) bool {
	older, newer := version.IsOlder(a.KubernetesVersion, b.KubernetesVersion), version.IsOlder(b.KubernetesVersion, a.KubernetesVersion)
	return newer || !older && a.Ref < b.Ref
}

// complete returns the options with defaults, or a fault of kind Invalid.
func (o Options) complete() (Options, error) {
	if o.Docker == nil {
		return o, fault.New(fault.Bug, "NoDocker", "nodeimage: no Docker client was given")
	}
	return o.withDefaults()
}

// withDefaults is complete for builds without Docker.
func (o Options) withDefaults() (Options, error) {
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = DefaultVersion
	}
	if v, err := version.Parse(o.KubernetesVersion); err != nil || !version.Valid(o.KubernetesVersion) || v.Major != 1 {
		return o, fault.New(fault.Invalid, "InvalidVersion", "%q is not a Kubernetes version; write it like %s", o.KubernetesVersion, DefaultVersion)
	}
	if o.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("finding the cache directory: %w", err)
		}
		o.CacheDir = filepath.Join(dir, "slipway", "nodeimage")
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o, nil
}

func (o Options) ref() string {
	if o.ControlPlane {
		return controlPlaneRef(o.KubernetesVersion)
	}
	return workerRef(o.KubernetesVersion)
}

func (o Options) role() string {
	if o.ControlPlane {
		return roleControlPlane
	}
	return roleWorker
}

// unreachable returns a fault with advice if the engine could not be reached, else err.
func unreachable(err error) error {
	if client.IsErrConnectionFailed(err) || errors.Is(err, os.ErrPermission) {
		return fault.New(fault.Unreachable, "DockerUnreachable",
			"Docker does not respond; install it (apt-get install docker.io), start it, and check that you may use it (docker info)").From(err)
	}
	return err
}
