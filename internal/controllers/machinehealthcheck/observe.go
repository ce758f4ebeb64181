package machinehealthcheck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a MachineHealthCheck. observe fills it in each reconciliation.
type snapshot struct {
	Now   time.Time
	Check *clusterv1.MachineHealthCheck
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Others are the other health checks of the cluster that are not paused, sorted by name.
	Others []clusterv1.MachineHealthCheck
	// Targets are the selected Machines, sorted by name.
	Targets []target
	// Disconnected explains why the workload cluster cannot be read although its control plane is initialized. It
	// is empty if the cluster was read.
	Disconnected string
	// RetryAfter is the retry delay for a workload cluster that is connected but did not respond, or zero.
	RetryAfter time.Duration
	// Template is the template of remediation requests. It is Missing if there is no reference.
	Template contract.RemediationTemplateView
}

// target is one Machine and its observed state. The checks and act read it.
type target struct {
	Machine *clusterv1.Machine
	// Node is the Node of the Machine, or nil if it does not exist.
	Node *corev1.Node
	// NodeRead is true if the Node was read from the workload cluster, whether it exists or not.
	NodeRead bool
	// Setbacks is the number of consecutive requests to replace a Machine of the owner because its infrastructure did
	// not become ready in time (setbacks.go). Each doubles the startup timeout.
	Setbacks int
	// Remediator is the provider object that has to replace the Machine, such as "FooMachinePool p". If it is
	// empty, the Machine's owner does.
	Remediator string
	// Request is the request for external remediation of the Machine, or nil.
	Request *contract.Object
	// Claims are the types of the conditions that this controller owns or has to adopt.
	Claims []string
}

// observe reads the snapshot of a MachineHealthCheck. Package reconciler calls it at the beginning of each
// reconciliation.
func (c *controller) observe(ctx context.Context, check *clusterv1.MachineHealthCheck) (snapshot, error) {
	s := snapshot{Now: c.now(), Check: check}
	steps := []func(context.Context, *snapshot) error{
		c.readCluster, c.readOthers, c.readMachines, c.readRemediators, c.readTemplate, c.readRequests, c.readNodes,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	s.Cluster, err = kube.GetCluster(ctx, c.client, clusterKey(s.Check))
	return err
}

func (c *controller) readOthers(ctx context.Context, s *snapshot) error {
	list := &clusterv1.MachineHealthCheckList{}
	if err := c.client.List(ctx, list, inCluster(client.ObjectKey{Namespace: s.Check.Namespace, Name: s.Check.Spec.ClusterName})...); err != nil {
		return fmt.Errorf("listing MachineHealthChecks: %w", err)
	}
	for _, other := range list.Items {
		_, paused := other.Annotations[clusterv1.PausedAnnotation]
		if other.Name != s.Check.Name && !paused && other.DeletionTimestamp.IsZero() {
			s.Others = append(s.Others, other)
		}
	}
	slices.SortFunc(s.Others, func(a, b clusterv1.MachineHealthCheck) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (c *controller) readMachines(ctx context.Context, s *snapshot) error {
	list := &clusterv1.MachineList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Check.Namespace), client.MatchingFields{ofCluster: s.Check.Spec.ClusterName})
	if err != nil {
		return fmt.Errorf("listing Machines of Cluster %s: %w", s.Check.Spec.ClusterName, err)
	}
	for i := range list.Items {
		if m := &list.Items[i]; selects(s.Check, m) {
			s.Targets = append(s.Targets, target{Machine: m, Claims: claims(m)})
		}
	}
	slices.SortFunc(s.Targets, func(a, b target) int { return cmp.Compare(a.Machine.Name, b.Machine.Name) })
	for i := range s.Targets { // ready Machines first, because the call resets the count of their owner
		if isProvisioned(s.Targets[i].Machine) {
			c.setbacks.before(s.Targets[i].Machine)
		}
	}
	for i := range s.Targets {
		s.Targets[i].Setbacks = c.setbacks.before(s.Targets[i].Machine)
	}
	return nil
}

// readRemediators reads which infrastructure objects have to replace the Machines of MachinePools, because a
// MachinePool does not replace Machines itself.
func (c *controller) readRemediators(ctx context.Context, s *snapshot) error {
	known := map[string]string{}
	for i := range s.Targets {
		owner := metav1.GetControllerOfNoCopy(s.Targets[i].Machine)
		if owner == nil || owner.Kind != "MachinePool" {
			continue
		}
		if _, ok := known[owner.Name]; !ok {
			pool := &clusterv1.MachinePool{}
			err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Check.Namespace, Name: owner.Name}, pool, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading MachinePool %s: %w", owner.Name, err)
			}
			if ref := pool.Spec.Template.Spec.InfrastructureRef; ref.IsDefined() {
				known[owner.Name] = ref.Kind + " " + ref.Name
			}
		}
		s.Targets[i].Remediator = known[owner.Name]
	}
	return nil
}

// claims returns the conditions of the Machine that this controller has applied and still owns.
func claims(m *clusterv1.Machine) []string {
	var out []string
	for _, t := range conditionTypes() {
		if kube.OwnsCondition(m, Name, t) || wasSetUpstream(m, t) {
			out = append(out, t)
		}
	}
	return out
}

// wasSetUpstream reports whether another implementation has set a condition that this controller sets now. A condition
// with another reason belongs to another client.
func wasSetUpstream(m *clusterv1.Machine, conditionType string) bool {
	have := condition.Set(m.Status.Conditions).Get(conditionType)
	return have != nil && (conditionType == clusterv1.MachineHealthCheckSucceededCondition || startedHere(*have)) &&
		kube.IsOwnedUpstream(m, conditionType)
}

func (c *controller) readTemplate(ctx context.Context, s *snapshot) error {
	if !external(s.Check) {
		return nil
	}
	o, err := c.refs.GetReferenced(ctx, s.Check, templateRef(s.Check))
	s.Template = contract.RemediationTemplate(o)
	return err
}

func (c *controller) readRequests(ctx context.Context, s *snapshot) error {
	if !external(s.Check) {
		return nil
	}
	ref := templateRef(s.Check)
	ref.Kind = contract.RequestKind(ref.Kind)
	for i := range s.Targets {
		t := &s.Targets[i]
		ref.Name = t.Machine.Name
		o, err := c.refs.GetReferenced(ctx, s.Check, ref)
		if err != nil {
			return err
		}
		switch o.Presence() {
		case contract.Unreadable: // the kind is not installed, so there are no requests
			s.Template.Problem = cmp.Or(s.Template.Problem, o.Problem)
			return nil
		case contract.Found:
			t.Request = &o
		}
	}
	return nil
}

// workloadUnreadable reports whether the Nodes of the workload cluster could not be read although the control plane is
// initialized. [report] calls it.
func (s snapshot) workloadUnreadable() bool { return s.Disconnected != "" || s.RetryAfter > 0 }

// outage returns a message if the cluster's infrastructure was provisioned but is not ready now, as its provider
// reports. Machines created as replacements would have the same problem. The message is empty if the infrastructure
// is ready or not provisioned yet, or if the Cluster has none. decide waits while there is one, and [report] shows the
// message.
func (s snapshot) outage() string {
	if !s.Cluster.Spec.InfrastructureRef.IsDefined() || !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) ||
		condition.Set(s.Cluster.Status.Conditions).IsTrue(clusterv1.ClusterInfrastructureReadyCondition) {
		return ""
	}
	return fmt.Sprintf("Waiting for the infrastructure of Cluster %s to be ready (condition InfrastructureReady); until it is, no Machine is judged or remediated",
		s.Cluster.Name)
}

// readNodes reads the Nodes of the targets. An unreachable workload cluster is recorded in the snapshot and is not
// an error. A new connection enqueues the health checks that wait for it. If a connected cluster did not respond,
// the health check is requeued after a delay.
func (c *controller) readNodes(ctx context.Context, s *snapshot) error {
	if s.Cluster == nil || !ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return nil
	}
	err := c.readNodeObjects(ctx, s)
	if fault.KindOf(err) != fault.Unreachable {
		return err
	}
	if s.RetryAfter = workload.RetryAfter(err); s.RetryAfter == 0 {
		s.Disconnected = fault.UserMessage(workload.ErrNotConnected)
	}
	return nil
}

func (c *controller) readNodeObjects(ctx context.Context, s *snapshot) error {
	key := clusterKey(s.Check)
	if c.workloads.Health(key).ConsecutiveFailures > 0 { // the cache may be stale
		return workload.ErrNotConnected
	}
	if err := c.watchNodes(ctx, key); err != nil {
		return err
	}
	workload, err := c.workloads.Client(ctx, key)
	if err != nil {
		return err
	}
	for i := range s.Targets {
		t := &s.Targets[i]
		t.NodeRead = true
		name := t.Machine.Status.NodeRef.Name
		if name == "" {
			continue
		}
		node := &corev1.Node{}
		err := workload.Get(ctx, client.ObjectKey{Name: name}, node)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading Node %s: %w", name, err)
		}
		t.Node = node
	}
	return nil
}

// external reports whether an external controller, instead of the Machine's owner, performs the remediation.
func external(check *clusterv1.MachineHealthCheck) bool {
	return check.Spec.Remediation.TemplateRef.IsDefined()
}

func clusterKey(check *clusterv1.MachineHealthCheck) client.ObjectKey {
	return client.ObjectKey{Namespace: check.Namespace, Name: check.Spec.ClusterName}
}
