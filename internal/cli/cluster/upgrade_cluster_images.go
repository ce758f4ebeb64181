package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/nodeimage"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// missingImages returns commands that build the node images that an upgrade needs and this host lacks; "upgrade
// cluster" prints them and does not start then. It returns an empty string if there are none or if this is unknown,
// because the management cluster is on another host or Docker is unreachable. [upgradeClusterFlags.run] calls it before
// it writes the version.
func missingImages(ctx context.Context, c *management.Connection, s describe.Snapshot, plan upgrade.Plan) string {
	if c.DataDir == "" || len(imageBuildCommands(s, plan, nil)) == 0 {
		return ""
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil || state.Run == nil || state.Run.Nodes == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	docker, err := nodesDocker(*state.Run.Nodes)
	if err != nil {
		return ""
	}
	defer func() { _ = docker.Close() }()
	have, err := nodeimage.List(ctx, docker)
	if err != nil {
		return ""
	}
	return strings.Join(imageBuildCommands(s, plan, have), "; ")
}

// imageBuildCommands returns the commands that build the missing images for the steps of a plan. Nodes with custom
// images are skipped, because their users choose the images.
func imageBuildCommands(s describe.Snapshot, plan upgrade.Plan, have []nodeimage.Image) []string {
	var out []string
	for _, step := range plan.Steps {
		nodes := step.ControlPlane && step.Nodes > 0 ||
			slices.ContainsFunc(step.Workers, func(g upgrade.Group) bool { return g.HeldReason == "" && g.Nodes > 0 })
		if !nodes || hasImage(have, step.Version, step.ControlPlane) || !usesDefaultImage(s, step.ControlPlane) {
			continue
		}
		command := imageBuildCommand(step.Version, step.ControlPlane)
		if !slices.Contains(out, command) {
			out = append(out, command)
		}
	}
	return out
}

// usesDefaultImage reports whether nodes of the control plane, or workers, are containers with the default image for
// their version.
func usesDefaultImage(s describe.Snapshot, controlPlane bool) bool {
	plane := map[describe.Ref]bool{}
	for _, m := range s.Machines {
		_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
		ref := m.Spec.InfrastructureRef
		plane[describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}] = is
	}
	for ref, o := range s.Objects {
		if o == nil || ref.Group != infrav1.GroupVersion.Group || plane[ref] != controlPlane {
			continue
		}
		var backend infrav1.LocalMachineBackend
		switch ref.Kind {
		case "LocalMachine":
			m := &infrav1.LocalMachine{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m) == nil {
				backend = m.Spec.Backend
			}
		case "LocalMachinePool":
			p := &infrav1.LocalMachinePool{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p) == nil {
				backend = p.Spec.Template.Backend
			}
		}
		if backend.Container != nil && backend.Container.Image == "" {
			return true
		}
	}
	return false
}

// missingImagesMessage returns the error message for an upgrade without the required images. [upgradeClusterFlags.run]
// passes the result of missingImages to it.
func missingImagesMessage(commands string) string {
	return fmt.Sprintf("the nodes of this upgrade would wait for images that are not on this host; make them first: %s", commands)
}
