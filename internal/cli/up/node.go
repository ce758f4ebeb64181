package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/managementnode"
)

// nodeReadyTimeout is how long the start waits for the node. After that, the start continues and the node is retried in
// the background.
const nodeReadyTimeout = 5 * time.Minute

// nodeFlag is the --node flag of `slipway up`. Its last value is stored in the data directory.
type nodeFlag struct {
	given, enabled bool
}

func (n *nodeFlag) bind(flags *pflag.FlagSet) {
	flags.Var(n, "node", "join one node in a container, so that Deployments of other providers can run; stays set until --node=false (requires Docker and the image of \"slipway image build\")")
	flags.Lookup("node").NoOptDefVal = "true"
}

// Set implements pflag.Value.
func (n *nodeFlag) Set(text string) (err error) {
	n.enabled, err = strconv.ParseBool(text)
	n.given = true
	return err
}

// Type implements pflag.Value.
func (n *nodeFlag) Type() string { return "bool" }

// String implements pflag.Value.
func (n *nodeFlag) String() string { return strconv.FormatBool(n.enabled) }

// args returns the flag for the background process of `slipway up -d` (detach.go). A flag that the user did not set
// must not be passed on, because the last value applies then.
func (n nodeFlag) args() []string {
	if !n.given {
		return nil
	}
	return []string{"--node=" + n.String()}
}

// node is the node of the management cluster in one run. nodeFlag.reserve creates it; nil means that there is no node.
type node struct {
	engine      *container.Engine
	reservation managementnode.Reservation
}

// reserve determines whether there is a node, and its addresses; nil: there is none. It removes a node that is no
// longer wanted. service.run calls it before the API server starts, because [node.nodes] is a part of its settings.
func (n nodeFlag) reserve(ctx context.Context, s service, h *datadir.Handle) (*node, error) {
	kept, err := h.HasNode()
	if err != nil {
		return nil, err
	}
	if n.given && !n.enabled && !kept || !n.given && !kept {
		return nil, nil
	}
	engine, err := container.New(container.Config{Instance: h.Instance, Ownership: hosttransfer.Open(s.dir, h.Instance), Reserved: []string{string(s.dir)}, Named: s.policy.ReachableHosts()})
	if err != nil {
		return nil, err
	}
	if n.given && !n.enabled {
		defer func() { _ = engine.Close() }()
		if err := managementnode.Remove(ctx, engine, h.Instance); err != nil {
			return nil, err
		}
		return nil, h.RecordNode(false)
	}
	place, err := managementnode.Reserve(ctx, engine, h.Instance, s.policy)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &node{engine: engine, reservation: place}, h.RecordNode(true)
}

// nodes returns the settings of the API server for the node. service.run passes them to the start of the API server; n
// may be nil.
func (n *node) nodes() *controlplane.Nodes {
	if n == nil {
		return nil
	}
	return &controlplane.Nodes{Endpoint: n.reservation.Endpoint, PodCIDR: n.reservation.PodCIDR}
}

// start maintains the node until ctx is done; the channel is closed when the node is Ready.
func (n *node) start(ctx context.Context, e term.Env, k *managerRunner) (<-chan struct{}, error) {
	ca, err := os.ReadFile(filepath.Join(k.service.dir.PKI(), "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the authority of the management cluster: %w", err)
	}
	keep, err := managementnode.New(managementnode.Config{
		Reservation: n.reservation, Host: n.engine, Root: k.root, CA: ca, Now: e.Now, Changed: k.nodeChanged,
	})
	if err != nil {
		return nil, err
	}
	go func() {
		defer func() { _ = n.engine.Close() }()
		keep.Run(ctx)
	}()
	return keep.Ready(), nil
}

// startNode maintains the node of the management cluster, if there is one, and deletes the Node object of a removed
// one. [managerRunner.run] calls it before it starts the manager. The channel is nil if there is no node.
func (k *managerRunner) startNode(ctx context.Context, e term.Env) (<-chan struct{}, error) {
	switch {
	case k.clusterNode != nil:
		return k.clusterNode.start(ctx, e, k)
	case k.service.node.given:
		return nil, deleteNode(ctx, k.root)
	}
	return nil, nil
}

// nodeChanged records the status of the node for other processes. Package managementnode calls it with every change.
func (k *managerRunner) nodeChanged(s managementnode.Status) {
	err := k.write(func(r *datadir.Run) {
		r.Node = &datadir.Node{Name: managementnode.Name, Container: s.Container, Ready: s.Ready, Message: s.Message}
	})
	if err != nil {
		k.reporter.step("The status of the node could not be recorded: " + err.Error())
	}
}

// awaitNode waits for the node. If it is not ready in time, it prints a message and the start continues.
// [managerRunner.run] calls it with the channel of startNode when the manager is ready.
func (k *managerRunner) awaitNode(ctx context.Context, ready <-chan struct{}) {
	if ready == nil {
		return
	}
	k.reporter.step("Joining node " + managementnode.Name + " …")
	timer := time.NewTimer(nodeReadyTimeout)
	defer timer.Stop()
	select {
	case <-ready:
	case <-ctx.Done():
	case <-timer.C:
		k.mu.Lock()
		defer k.mu.Unlock()
		why := ""
		if k.state.Node != nil {
			why = ": " + k.state.Node.Message
		}
		k.reporter.step("Node " + managementnode.Name + " is not ready yet" + why + "; retrying. \"slipway status\" shows its state")
	}
}

// deleteNode deletes the Node object of a container that was removed with --node=false.
func deleteNode(ctx context.Context, root *rest.Config) error {
	c, err := client.New(root, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: managementnode.Name}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(n), n); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kube.NewWriter(c, "up").DeleteAnyway(ctx, n)
}
