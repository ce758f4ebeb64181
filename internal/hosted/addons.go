package hosted

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
)

// inspectAddons requests a read of the state of the add-ons. This file decides when kube-proxy and CoreDNS of the
// workload cluster are read, for the condition AddonsAvailable; [planAddons] applies them.
type inspectAddons struct{}

func (inspectAddons) String() string { return "read the state of the add-ons of the workload cluster" }

// Maximum age of a reading. Add-ons are also read without a change, because the watch on a workload cluster
// can be missing or denied. After frequent changes, they are read at most once per changedMaxAge.
const (
	healthyMaxAge   = 2 * time.Minute
	unhealthyMaxAge = 20 * time.Second
	changedMaxAge   = time.Second
)

// planInspection requests a read of the add-ons if the last reading is too old, or outdated by a change. It is the last
// step of [decide].
func planInspection(s snapshot) (p reconciler.Plan) {
	if !hasAddons(s.Capabilities, s.Plane) {
		return p
	}
	lasts := unhealthyMaxAge
	switch {
	case s.Addons.Outdated:
		lasts = changedMaxAge
	case s.Addons.State == (addons.State{}) && s.Addons.Err == "":
		lasts = healthyMaxAge
	}
	if left := s.Addons.At.Add(lasts).Sub(s.Now); !s.Addons.At.IsZero() && left > 0 {
		p.RecheckIn(left)
		return p
	}
	p.Reads = append(p.Reads, inspectAddons{})
	return p
}

// hasAddons reports whether this controller applies add-ons to the workload cluster.
func hasAddons(t backend.Capabilities, plane *hostedv1.HostedControlPlane) bool {
	spec := plane.Spec.Addons
	return t.Addons && (!spec.CoreDNS.Disabled || !spec.KubeProxy.Disabled)
}

// inspectAddons reads the state of the add-ons and stores the reading. A failed read becomes a condition and not an
// error, because it must not delay other steps. readRequested calls it for [inspectAddons].
func (c *controller) inspectAddons(ctx context.Context, s snapshot) (addons.Reading, error) {
	a, changes := addons.Reading{At: s.Now}, c.addons.Begin(nameOf(s.Plane))
	config, err := access(s)
	if err == nil {
		c.limitCalls(config, s.Cluster)
		a.State, err = c.inspect(ctx, config, addonsOf(s))
	}
	if err != nil {
		if fault.KindOf(err) == fault.Bug || ctx.Err() != nil {
			return a, err
		}
		a.Err = "The add-ons of the workload cluster cannot be read, retrying"
	}
	c.addons.Set(nameOf(s.Plane), a, changes)
	return a, nil
}

// watchAddons enqueues the control plane when its add-ons change, if the workload cluster is connected. observe calls
// it.
func (c *controller) watchAddons(ctx context.Context, s snapshot) error {
	if c.workloads == nil || !s.Process.Ready || !hasAddons(s.Capabilities, s.Plane) {
		return nil
	}
	name, request := nameOf(s.Plane), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.Plane)}
	for _, kind := range []client.Object{&appsv1.DaemonSet{}, &appsv1.Deployment{}} {
		err := c.workloads.Watch(ctx, client.ObjectKeyFromObject(s.Cluster), workload.WatchRequest{
			Controller: Name, Kind: kind, Changed: addons.AffectsState,
			Map: func(context.Context, client.Object) []reconcile.Request {
				c.addons.Changed(name)
				return []reconcile.Request{request}
			},
		})
		if fault.KindOf(err) == fault.Unreachable { // requestsForConnection enqueues when a connection exists
			return nil
		}
		if err != nil {
			return fmt.Errorf("watching the add-ons of the workload cluster: %w", err)
		}
	}
	return nil
}

// requestsForConnection enqueues the control plane when its workload cluster is connected or disconnected. [Add]
// registers it.
func (c *controller) requestsForConnection(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	o := &clusterv1.Cluster{}
	if c.client.Get(ctx, cluster, o, client.UnsafeDisableDeepCopy) != nil { // the Cluster was deleted
		return nil
	}
	requests := requestsForCluster(ctx, o)
	if len(requests) == 0 {
		return nil
	}
	plane := &hostedv1.HostedControlPlane{}
	if c.client.Get(ctx, requests[0].NamespacedName, plane, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	if b, err := c.backendOf(plane); err != nil || !hasAddons(b.ControlPlanes.Capabilities(c.policy), plane) {
		return nil
	}
	return requests
}
