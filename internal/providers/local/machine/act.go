package machine

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/firstboot"
)

func (c *Controller) act(ctx context.Context, s Snapshot, a loop.Action) error {
	switch a := a.(type) {
	case Create:
		notes, err := c.machines.Create(ctx, spec(s, a))
		for _, n := range notes {
			c.note(s.Object, n)
		}
		return err
	case SetProviderID:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) {
			o.(*infrav1.LocalMachine).Spec.ProviderID = a.ID
			controllerutil.AddFinalizer(o, infrav1.LocalMachineFinalizer)
		})
	case Bootstrap:
		return c.bootstrap(ctx, s, a)
	case DeleteContainer:
		return c.machines.Delete(ctx, s.ref())
	case Boot, Join, SetReady, Leave:
		return c.simulate(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "the local machine controller does not know how to %s", a)
}

// spec returns the machine to make.
func spec(s Snapshot, a Create) backend.MachineSpec {
	m := backend.MachineSpec{
		Owner:     backend.Owner{Cluster: s.clusterName(), Object: client.ObjectKeyFromObject(s.Object), UID: s.Object.UID},
		Name:      a.Name,
		Hostname:  backend.Hostname(s.Object.Name),
		Image:     a.Image,
		Ranges:    ranges(s),
		Resources: s.resources(),
		Maximum:   s.Policy.Maxima.Nodes,
	}
	if s.Network != nil { // its status says only under which name another management cluster may have made the network
		m.Network = backend.Ref{Object: client.ObjectKeyFromObject(s.Network), Name: s.Network.Status.Network.Name}
	}
	if s.Room != nil {
		m.Mounts = s.Room.Mounts
	}
	return m
}

// ranges returns the ranges of Pods and Services: a node has no default route, and needs one for what is outside of its
// network.
func ranges(s Snapshot) []netip.Prefix {
	if s.Cluster == nil {
		return nil
	}
	var out []netip.Prefix
	n := s.Cluster.Spec.ClusterNetwork
	for _, text := range append(append([]string{}, n.Pods.CIDRBlocks...), n.Services.CIDRBlocks...) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() {
			out = append(out, p.Masked())
		}
	}
	return out
}

// bootstrap reads the bootstrap data and hands it to the machine. It is never kept in a snapshot, a log or a label.
func (c *Controller) bootstrap(ctx context.Context, s Snapshot, a Bootstrap) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.Object.Namespace, Name: a.Secret}
	err := c.secrets.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return fault.New(fault.Transient, "BootstrapSecretAbsent", "Secret %s with the bootstrap data does not exist", a.Secret)
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	value, ok := secret.Data["value"]
	if !ok {
		return fault.New(fault.Invalid, "BootstrapSecretInvalid", "Secret %s with the bootstrap data has no key \"value\"", a.Secret)
	}
	node := firstboot.Node{
		Name: a.Name, Hostname: s.Host.Hostname, ProviderID: backend.ProviderID(a.Name), Address: s.Host.Address,
	}
	script, err := firstboot.Render(firstboot.Data{Value: value, Format: string(secret.Data["format"])}, node, timeout(s))
	if err != nil {
		return err
	}
	return c.machines.Bootstrap(ctx, s.ref(), script)
}

// defaultTimeout is the API's default, for objects that were stored without it.
const defaultTimeout = 300 * time.Second

func timeout(s Snapshot) time.Duration {
	if box := s.Object.Spec.Backend.Container; box != nil && box.BootstrapTimeoutSeconds > 0 {
		return time.Duration(box.BootstrapTimeoutSeconds) * time.Second
	}
	return defaultTimeout
}

func (s Snapshot) clusterName() string {
	if s.Cluster == nil {
		return ""
	}
	return s.Cluster.Name
}
