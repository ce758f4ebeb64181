package servingcerts

import (
	"context"
	"fmt"
	"reflect"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name of the controller. The flag --kubelet-serving-concurrency contains it (package providerset), so it must not
// change.
const Name = "kubelet-serving"

// pendingGracePeriod is how long a new request may wait without an event, because its Machine may not have a Node and
// addresses yet.
const pendingGracePeriod = 30 * time.Second

// Workloads connects to workload clusters. The manager passes its connections.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Watch(ctx context.Context, cluster client.ObjectKey, w workload.WatchRequest) error
	Changed(controller string, to workload.ClusterMap) source.Source
}

// controller approves CertificateSigningRequests of kubelets in workload clusters. It does not use the driver of
// package reconciler, because it has no conditions, finalizer or pausing.
type controller struct {
	client    client.Client
	workloads Workloads
	writer    *kube.Writer
	scope     watches.Scope
	events    events.EventRecorder
	now       func() time.Time
}

// Add adds the controller to the manager, which calls it at its start if the hosted control plane provider is enabled.
func Add(s reconciler.Setup, workloads Workloads) error {
	c := &controller{
		client: s.Manager.GetClient(), workloads: workloads, writer: s.Writer(Name), scope: s.Scope(),
		events: s.Manager.GetEventRecorder(kube.ManagerPrefix + Name), now: s.Clock(),
	}
	return s.Builder(Name, &hostedv1.HostedControlPlane{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMember), builder.WithPredicates(changesAddresses())).
		WatchesRawSource(workloads.Changed(Name, c.ofCluster)).
		Complete(c)
}

// changesAddresses filters for changes that affect decisions.
func changesAddresses() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*clusterv1.Machine).Status, e.ObjectNew.(*clusterv1.Machine).Status
			return before.NodeRef != after.NodeRef || !reflect.DeepEqual(before.Addresses, after.Addresses)
		},
	}
}

// ofMember enqueues the control plane of the Cluster of a Machine.
func (c *controller) ofMember(ctx context.Context, o client.Object) []reconcile.Request {
	return c.ofCluster(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*clusterv1.Machine).Spec.ClusterName})
}

// ofCluster enqueues the control plane of a Cluster.
func (c *controller) ofCluster(ctx context.Context, key client.ObjectKey) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	if err := c.client.Get(ctx, key, cluster); err != nil {
		return nil
	}
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != "HostedControlPlane" || ref.APIGroup != hostedv1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: ref.Name}}}
}

// Reconcile implements reconcile.Reconciler for a HostedControlPlane: it watches the CertificateSigningRequests of its
// workload cluster and approves those that [decide] permits.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	plane := &hostedv1.HostedControlPlane{}
	if err := c.client.Get(ctx, req.NamespacedName, plane); err != nil || !plane.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if plane.Spec.Backend.Simulated != nil || plane.Spec.Security.Effective().KubeletServingCertificates == "" {
		return ctrl.Result{}, nil
	}
	if included, err := c.scope.Includes(ctx, plane); err != nil || !included {
		return ctrl.Result{}, err
	}
	cluster, err := c.clusterOf(ctx, plane)
	if err != nil || cluster == nil {
		return ctrl.Result{}, err
	}
	result, err := c.approve(ctx, plane, cluster)
	if fault.KindOf(err) == fault.Unreachable { // ofCluster enqueues when a connection exists
		err = nil
	}
	return result, err
}

// clusterOf returns the Cluster that refers to the control plane, or nil.
func (c *controller) clusterOf(ctx context.Context, plane *hostedv1.HostedControlPlane) (*clusterv1.Cluster, error) {
	key := client.ObjectKey{Namespace: plane.Namespace, Name: watches.ClusterOf(plane)}
	if key.Name == "" {
		return nil, nil
	}
	cluster := &clusterv1.Cluster{}
	if err := c.client.Get(ctx, key, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if ref := cluster.Spec.ControlPlaneRef; ref.Name != plane.Name || ref.APIGroup != hostedv1.GroupVersion.Group {
		return nil, nil
	}
	return cluster, nil
}

// approve approves permitted requests and records an Event for others.
func (c *controller) approve(ctx context.Context, plane *hostedv1.HostedControlPlane, cluster *clusterv1.Cluster) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(cluster)
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(plane)}
	if err := c.workloads.Watch(ctx, key, workload.WatchRequest{
		Controller: Name, Kind: &certificatesv1.CertificateSigningRequest{},
		Map:     func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{request} },
		Changed: func(client.Object, client.Object) bool { return false }, // only new requests need a decision
	}); err != nil {
		return ctrl.Result{}, err
	}
	workload, err := c.workloads.Client(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	s, err := c.observe(ctx, workload, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	var next time.Duration
	writer := c.writer.WithClient(workload)
	for _, v := range decide(s) {
		if v.Why == "" {
			err := writer.Approve(ctx, v.Request, "MachineKnown", fmt.Sprintf("Its names and addresses are those of Machine %s", v.Machine))
			if err != nil {
				return ctrl.Result{}, err
			}
			continue
		}
		if left := pendingGracePeriod - c.now().Sub(v.Request.CreationTimestamp.Time); left > 0 {
			if left = min(left, pendingGracePeriod); next == 0 || left < next {
				next = left
			}
			continue
		}
		c.events.Eventf(plane, nil, corev1.EventTypeWarning, "KubeletCertificateNotApproved", "Approve",
			"The serving certificate %s is not approved: %s", v.Request.Name, v.Why)
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// observe lists the requests of the workload cluster and the Machines of the Cluster.
func (c *controller) observe(ctx context.Context, workload client.Client, cluster *clusterv1.Cluster) (snapshot, error) {
	s := snapshot{Reserved: reserved(cluster)}
	var requests certificatesv1.CertificateSigningRequestList
	if err := workload.List(ctx, &requests); err != nil {
		return s, fmt.Errorf("listing the CertificateSigningRequests of the workload cluster: %w", err)
	}
	s.Requests = requests.Items
	var machines clusterv1.MachineList
	err := c.client.List(ctx, &machines, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name})
	if err != nil {
		return s, fmt.Errorf("listing Machines of Cluster %s: %w", cluster.Name, err)
	}
	s.Machines = machines.Items
	return s, nil
}

// reserved returns the names of the API server.
func reserved(cluster *clusterv1.Cluster) []string {
	domain := cluster.Spec.ClusterNetwork.ServiceDomain
	if domain == "" {
		domain = "cluster.local"
	}
	return []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + domain,
		cluster.Spec.ControlPlaneEndpoint.Host,
	}
}
