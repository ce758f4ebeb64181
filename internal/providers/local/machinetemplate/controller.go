package machinetemplate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Name of the controller.
const Name = "local-machinetemplate"

// ownedWithin is how long a new template is left to those who make it their own: a status that is written meanwhile makes
// their patches fail, and nobody scales by it yet.
const ownedWithin = 10 * time.Second

// podsPerNode is what the kubelet allows unless it is told otherwise.
const podsPerNode = 110

// Controller reconciles LocalMachineTemplates. It has no conditions, finalizer or pause, and so no driver.
type Controller struct {
	client   client.Client
	writer   *kube.Writer
	scope    membership.Scope
	status   infrav1.LocalMachineTemplateStatus
	backends backend.Set
	// policy is what the operator allows.
	policy policy.Configuration
	now    func() time.Time
}

// Add adds the controller to the manager. It fails if the host does not tell how much memory it has.
func Add(s loop.Setup, backends backend.Set, allowed policy.Configuration) error {
	meminfo, err := os.Open("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("reading the memory of the host: %w", err)
	}
	defer meminfo.Close()
	memory, err := totalMemory(meminfo)
	if err != nil {
		return err
	}
	c := &Controller{
		client: s.Manager.GetClient(), writer: kube.NewWriter(s.Manager.GetClient(), Name),
		scope: s.Scope(), status: statusOf(runtime.NumCPU(), memory, runtime.GOARCH),
		backends: backends, policy: allowed, now: time.Now,
	}
	return s.Builder(Name, &infrav1.LocalMachineTemplate{}).Complete(c)
}

// Reconcile implements reconcile.Reconciler.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o := &infrav1.LocalMachineTemplate{}
	if err := c.client.Get(ctx, req.NamespacedName, o); err != nil || !o.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := c.scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	if left := ownedWithin - c.now().Sub(o.CreationTimestamp.Time); left > 0 && len(o.OwnerReferences) == 0 {
		return ctrl.Result{RequeueAfter: min(left, ownedWithin)}, nil // the API server's clock may be ahead
	}
	status, err := c.statusFor(o)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.writer.ApplyStatus(ctx, o, status))
}

// statusFor returns what a node made from the template offers.
func (c *Controller) statusFor(o *infrav1.LocalMachineTemplate) (infrav1.LocalMachineTemplateStatus, error) {
	status := c.status
	b, err := c.backends.Choose(o.Spec.Template.Spec.Backend.Name(), nil)
	if err != nil {
		return status, err
	}
	terms := b.Machines.Terms(backend.Request{Object: &infrav1.LocalMachine{Spec: o.Spec.Template.Spec}, Policy: c.policy})
	if status.Capacity = terms.Capacity; status.Capacity == nil {
		status.Capacity = c.status.Capacity.DeepCopy()
		limit(status.Capacity, corev1.ResourceCPU, int64(terms.Resources.CPUs))
		limit(status.Capacity, corev1.ResourceMemory, terms.Resources.MemoryMiB<<20)
	}
	return status, nil
}

// limit lowers a resource to the most that a node may use; 0: no limit.
func limit(list corev1.ResourceList, name corev1.ResourceName, most int64) {
	if have := list[name]; most > 0 && have.CmpInt64(most) > 0 {
		list[name] = *resource.NewQuantity(most, have.Format)
	}
}

// statusOf returns what a node on this host offers; memory in bytes.
func statusOf(processors int, memory int64, architecture string) infrav1.LocalMachineTemplateStatus {
	return infrav1.LocalMachineTemplateStatus{
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(processors), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
			corev1.ResourcePods:   *resource.NewQuantity(podsPerNode, resource.DecimalSI),
		},
		NodeInfo: infrav1.NodeInfo{Architecture: infrav1.Architecture(architecture), OperatingSystem: "linux"},
	}
}

// totalMemory reads the host's memory in bytes from the format of /proc/meminfo.
func totalMemory(r io.Reader) (int64, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the memory of the host: %w", err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("reading the memory of the host: no total")
}
