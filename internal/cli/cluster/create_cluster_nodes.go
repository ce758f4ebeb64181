package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/policy"
)

// imageVariable and resourceVariables are the variables of Slipway's ClusterClasses (config/classes) that define nodes
// in containers.
const imageVariable, controlPlaneResources = "nodeImage", "controlPlaneResources"

func resourceVariables() []string { return []string{"nodeResources", controlPlaneResources} }

// nodeHost is the known state of the host of the nodes.
type nodeHost struct {
	allowed    policy.Configuration
	processors int
	// hasImage reports whether the host has an image. It returns true if this cannot be determined.
	hasImage func(image string) bool
}

// checkNodes rejects nodes that the host of the management cluster cannot run, before "create cluster" writes anything.
// For management clusters on other hosts, the Machine reports such problems. objects calls it for classes with nodes in
// containers.
func (f *createClusterFlags) checkNodes(ctx context.Context, c *management.Connection, values []clusterv1.ClusterVariable) error {
	if c == nil || c.DataDir == "" || !slices.Contains(classes.Names(), f.ref.Name) {
		return nil
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil || state.Run == nil || state.Run.Nodes == nil {
		return err
	}
	allowed := state.Run.Nodes
	h := nodeHost{}
	if allowed.RunsHere() && !f.skipChecks {
		h.processors = container.ThisHost().Processors()
	}
	h.allowed.Nodes = policy.Nodes{Images: allowed.Images, CPUs: allowed.CPUs, MemoryMiB: allowed.MemoryMiB, Processes: allowed.Processes}
	h.hasImage = func(image string) bool {
		engine, err := container.New(container.Config{Instance: state.Run.Instance, Address: allowed.Docker})
		if err != nil || f.skipChecks {
			return true
		}
		defer func() { _ = engine.Close() }()
		found, err := engine.HasImage(ctx, image)
		return found || err != nil
	}
	if refused := h.denialReason(values); refused != "" {
		return usage("%s", refused)
	}
	return nil
}

// denialReason returns the reason why the host cannot run nodes with these variables, or an empty string if none is
// known.
func (h nodeHost) denialReason(values []clusterv1.ClusterVariable) string {
	for _, v := range values {
		switch {
		case v.Name == imageVariable:
			var image string
			if json.Unmarshal(v.Value.Raw, &image) != nil || image == "" {
				continue
			}
			if denied := h.allowed.DeniedImage(image); denied != "" {
				return fmt.Sprintf("--set %s: %s", v.Name, denied)
			}
			if !h.hasImage(image) {
				return fmt.Sprintf("--set %s: image %s is not on this host: `slipway image list` shows those that are, `slipway image build` makes one", v.Name, image)
			}
		case slices.Contains(resourceVariables(), v.Name):
			var asked localv1.ContainerResources
			if json.Unmarshal(v.Value.Raw, &asked) != nil {
				continue
			}
			if denied := h.allowed.DeniedResources(asked.CPUs, asked.MemoryMiB, asked.Processes); denied != "" {
				return fmt.Sprintf("--set %s: %s", v.Name, denied)
			}
			if h.processors > 0 && int(asked.CPUs) > h.processors {
				return fmt.Sprintf("--set %s.cpus=%d: this host has %d processors", v.Name, asked.CPUs, h.processors)
			}
		}
	}
	return ""
}
