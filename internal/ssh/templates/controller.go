package templates

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// Name of the controller.
const Name = "ssh-machinetemplate"

// ownedWithin is the time for which the status of a new template is not written while it has no owner. A status update
// in between would cause conflicts for controllers that adopt the template, and no autoscaler uses it yet.
const ownedWithin = 10 * time.Second

// controller reconciles SSHMachineTemplates. It does not use the driver of package reconciler, because the templates have no
// conditions and no finalizer and cannot be paused.
type controller struct {
	client client.Client
	writer *kube.Writer
	scope  watches.Scope
	now    func() time.Time
}

// Add adds the controller to the manager.
func Add(s reconciler.Setup) error {
	c := &controller{client: s.Manager.GetClient(), writer: kube.NewWriter(s.Manager.GetClient(), Name), scope: s.Scope(), now: s.Clock()}
	newList := func() client.ObjectList { return &infrav1.SSHMachineTemplateList{} }
	return s.Builder(Name, &infrav1.SSHMachineTemplate{}).
		Watches(&infrav1.SSHHost{}, handler.EnqueueRequestsFromMapFunc(inventory.EnqueueAll(c.client, newList)), builder.WithPredicates(inventory.OfferChanged())).
		Complete(c)
}

func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &infrav1.SSHMachineTemplate{}
	if err := c.client.Get(ctx, req.NamespacedName, o); err != nil || !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := c.scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	if left := ownedWithin - c.now().Sub(o.CreationTimestamp.Time); left > 0 && len(o.OwnerReferences) == 0 {
		return ctrl.Result{RequeueAfter: min(left, ownedWithin)}, nil // the API server's clock may be ahead
	}
	request, hosts, err := inventory.Read(ctx, c.client, o.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	request.Selector = o.Spec.Template.Spec.HostSelector
	status := capacityOf(request, hosts, o.Spec.Template.Spec.FailureDomain)
	if status.Capacity == nil && o.Status.Capacity == nil {
		return ctrl.Result{RequeueAfter: inventory.LabelsInterval}, nil
	}
	return ctrl.Result{RequeueAfter: inventory.LabelsInterval}, client.IgnoreNotFound(c.writer.ApplyStatus(ctx, o, status))
}

// capacityOf returns the least capacity of the hosts that match, because any of them may become the node. The architecture
// is reported only if all have the same.
func capacityOf(r inventory.Request, hosts []*infrav1.SSHHost, failureDomain string) infrav1.SSHMachineTemplateStatus {
	var out infrav1.SSHMachineTemplateStatus
	for _, h := range r.Matching(hosts) {
		f := h.Status.Facts
		if f.CPUs == 0 || f.MemoryMiB == 0 || failureDomain != "" && failureDomain != h.Spec.FailureDomain {
			continue
		}
		capacity := infrastructure.NodeCapacity(int64(f.CPUs), f.MemoryMiB<<20, f.DiskMiB<<20)
		infrastructure.SubtractReserved(capacity)
		architecture := knownArchitecture(f.Architecture)
		if out.Capacity == nil {
			out.Capacity, out.NodeInfo = capacity, infrav1.NodeInfo{Architecture: architecture, OperatingSystem: "linux"}
			continue
		}
		out.Capacity = least(out.Capacity, capacity)
		if out.NodeInfo.Architecture != architecture {
			out.NodeInfo.Architecture = ""
		}
	}
	return out
}

// knownArchitecture returns an architecture that the API accepts, empty for others, which a host could report.
func knownArchitecture(name string) infrav1.Architecture {
	switch name {
	case "amd64", "arm64", "s390x", "ppc64le":
		return infrav1.Architecture(name)
	}
	return ""
}

// least returns the lower quantity of each resource that is in both lists.
func least(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range a {
		other, ok := b[name]
		switch {
		case !ok:
		case other.Cmp(quantity) < 0:
			out[name] = other
		default:
			out[name] = quantity
		}
	}
	return out
}
