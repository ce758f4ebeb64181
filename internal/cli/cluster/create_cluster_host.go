package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	dockerclient "github.com/moby/moby/client"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// The least that each part of a cluster needs without the Pods of its users, in MiB. With less, the kernel or the
// kubelet ends processes before the cluster is ready.
const (
	workerMemory, workerDisk             = 200, 300
	controlPlaneMemory, controlPlaneDisk = 700, 700
	hostedMemory, hostedDisk             = 250, 100
)

// hostRoom is what a host has for further clusters. 0 and nil mean that a value is unknown. readHostRoom fills it.
type hostRoom struct {
	// MemoryMiB is the available memory, TotalMiB all memory.
	MemoryMiB, TotalMiB int64
	// DiskMiB is the free space of the disk with DockerRoot.
	DiskMiB    int64
	DockerRoot string
	Images     []nodeimage.Image
}

// clusterNeeds are the nodes of a cluster on this host.
type clusterNeeds struct {
	Version                string
	Workers, ControlPlanes int64
	// DefaultImages means that nodes run the images of `slipway image build`.
	DefaultImages bool
	// LimitMiB is the sum of the memory that the nodes may use by the variables of the cluster.
	LimitMiB int64
}

// checkHost returns an error if the host of the management cluster lacks what the nodes need at least, before anything
// is written. The host is known only to commands on the same host. apply calls it when the values of all variables are
// known.
func (f *createClusterFlags) checkHost(ctx context.Context, c *management.Connection, values []clusterv1.ClusterVariable, warn func(string)) error {
	if f.skipChecks || !f.prefix.IsValid() || c.DataDir == "" {
		return nil
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil || state.Run == nil || state.Run.Nodes == nil {
		return err
	}
	needs := clusterNeeds{Version: f.version, Workers: int64(f.workers), ControlPlanes: int64(f.controlPlanes), LimitMiB: memoryLimits(values, f.workers, f.controlPlanes)}
	needs.DefaultImages = slices.Contains(classes.Names(), f.ref.Name) && f.ref.Namespace == "" && textOf(values, imageVariable) == ""
	room := readHostRoom(ctx, *state.Run.Nodes)
	for _, text := range needs.warnings(room) {
		warn("Warning: " + text)
	}
	problems := append(needs.missingImages(room), needs.shortages(room)...)
	if len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "HostUnsuitable", "this host cannot run the cluster: %s. --skip-checks creates it nevertheless", strings.Join(problems, "; "))
}

// readHostRoom reads what this host has. Docker may be unreachable for this user, although the manager reaches it.
func readHostRoom(ctx context.Context, nodes datadir.NodeLimits) hostRoom {
	room := hostRoom{}
	if nodes.RunsHere() {
		room.MemoryMiB, room.TotalMiB = container.ThisHost().MemoryMiB()
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	docker, err := nodesDocker(nodes)
	if err != nil {
		return room
	}
	defer func() { _ = docker.Close() }()
	if images, err := nodeimage.List(ctx, docker); err == nil {
		room.Images = append([]nodeimage.Image{}, images...)
	}
	info, err := docker.Info(ctx, dockerclient.InfoOptions{})
	if err != nil || info.Info.DockerRootDir == "" || !nodes.RunsHere() || slices.ContainsFunc(info.Info.DriverStatus, isContainerdStore) {
		return room
	}
	if space, err := datadir.SpaceOf(datadir.Dir(info.Info.DockerRootDir)); err == nil {
		room.DiskMiB, room.DockerRoot = max(1, space.Free>>20), info.Info.DockerRootDir
	}
	return room
}

// dockerTimeout is the timeout of requests to Docker. "upgrade cluster" uses it, too (upgrade_cluster_images.go).
const dockerTimeout = 10 * time.Second

// nodesDocker returns a client of the Docker that runs the nodes: the Docker of the manager, or else of the
// environment. "upgrade cluster" uses it, too.
func nodesDocker(nodes datadir.NodeLimits) (*dockerclient.Client, error) {
	options := []dockerclient.Opt{dockerclient.FromEnv}
	if nodes.Docker != "" {
		options = append(options, dockerclient.WithHost(nodes.Docker))
	}
	return dockerclient.New(options...)
}

// hasImage reports whether there is a node image with a version of Kubernetes, for control planes or for workers.
// "upgrade cluster" uses it, too.
func hasImage(images []nodeimage.Image, version string, controlPlane bool) bool {
	return slices.ContainsFunc(images, func(i nodeimage.Image) bool {
		return i.KubernetesVersion == version && i.ControlPlane == controlPlane
	})
}

// imageBuildCommand returns the command that builds a node image. "upgrade cluster" uses it, too.
func imageBuildCommand(version string, controlPlane bool) string {
	command := "slipway image build --kubernetes-version " + version
	if controlPlane {
		command += " --control-plane"
	}
	return command
}

// isContainerdStore reports whether images and layers are in containerd's directory, which Docker does not name.
func isContainerdStore(status [2]string) bool {
	return strings.HasPrefix(status[1], "io.containerd.snapshotter")
}

// missingImages returns a problem for each role of nodes without an image.
func (n clusterNeeds) missingImages(room hostRoom) []string {
	if !n.DefaultImages || room.Images == nil {
		return nil
	}
	var out []string
	for _, role := range []struct {
		nodes        int64
		controlPlane bool
		name         string
	}{{n.ControlPlanes, true, "control plane nodes"}, {n.Workers, false, "workers"}} {
		if role.nodes > 0 && !hasImage(room.Images, n.Version, role.controlPlane) {
			out = append(out, fmt.Sprintf("it has no node image for %s with Kubernetes %s; build it with `%s`", role.name, n.Version, imageBuildCommand(n.Version, role.controlPlane)))
		}
	}
	return out
}

// shortages returns a problem for each resource of which the host has less than the nodes need at least.
func (n clusterNeeds) shortages(room hostRoom) []string {
	memory, disk := n.least()
	var out []string
	if room.TotalMiB > 0 && room.TotalMiB < memory {
		out = append(out, fmt.Sprintf("%s at least %d MiB of memory, and it has %d MiB; create fewer nodes", n.nodesNeed(), memory, room.TotalMiB))
	}
	if room.DiskMiB > 0 && room.DiskMiB < disk {
		out = append(out, fmt.Sprintf("%s at least %d MiB of disk, and %d MiB are free on the disk of %s; free some, for example with `docker image prune`, or create fewer nodes", n.nodesNeed(), disk, room.DiskMiB, room.DockerRoot))
	}
	return out
}

// least returns the memory and the disk, in MiB, that the nodes need at least.
func (n clusterNeeds) least() (memory, disk int64) {
	memory, disk = n.Workers*workerMemory+n.ControlPlanes*controlPlaneMemory, n.Workers*workerDisk+n.ControlPlanes*controlPlaneDisk
	if n.ControlPlanes == 0 {
		memory, disk = memory+hostedMemory, disk+hostedDisk
	}
	return memory, disk
}

func (n clusterNeeds) nodesNeed() string {
	switch nodes := n.Workers + n.ControlPlanes; nodes {
	case 0:
		return "its control plane needs"
	case 1:
		return "1 node needs"
	default:
		return fmt.Sprintf("%d nodes need", nodes)
	}
}

// warnings returns what may go wrong: not all used memory of a host is in use (caches of file systems), and nodes
// rarely use all that they may use.
func (n clusterNeeds) warnings(room hostRoom) (out []string) {
	if memory, _ := n.least(); room.MemoryMiB > 0 && room.MemoryMiB < memory {
		out = append(out, fmt.Sprintf("%s at least %d MiB of memory, and %d MiB are available on this host", n.nodesNeed(), memory, room.MemoryMiB))
	}
	if room.TotalMiB > 0 && n.LimitMiB > room.TotalMiB {
		out = append(out, fmt.Sprintf("the nodes may use %d MiB of memory together, and this host has %d MiB: Pods can end for lack of memory", n.LimitMiB, room.TotalMiB))
	}
	return out
}

// memoryLimits returns the sum of the memory that variables allow the nodes, in MiB. Nodes without a variable are left
// out.
func memoryLimits(values []clusterv1.ClusterVariable, workers, controlPlanes int32) int64 {
	sum := int64(0)
	for _, v := range values {
		var asked localv1.ContainerResources
		if !slices.Contains(resourceVariables(), v.Name) || json.Unmarshal(v.Value.Raw, &asked) != nil {
			continue
		}
		nodes := workers
		if v.Name == controlPlaneResources {
			nodes = controlPlanes
		}
		sum += asked.MemoryMiB * int64(nodes)
	}
	return sum
}

// textOf returns the value of a variable that is a string, or an empty string.
func textOf(values []clusterv1.ClusterVariable, name string) string {
	text := ""
	for _, v := range values {
		if v.Name == name && json.Unmarshal(v.Value.Raw, &text) != nil {
			return ""
		}
	}
	return text
}
