package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/operate/kubeconfig"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/internal/workload"
)

// rebootAnnotation marks Nodes that the command has cordoned, so that it uncordons them when it is run again after an
// interruption. Machines have it beside the annotation that prevents their remediation, and SSHHosts while the command
// has put them in maintenance. Only this file reads it. The settings of objects without it belong to a user and stay
// unchanged.
const rebootAnnotation = "infrastructure.slipway.dev/reboot"

// requestTimeout limits requests to workload clusters, whose API server may run on the host that is rebooted.
const requestTimeout = 15 * time.Second

// reboot is the reboot of one host, for "hosts reboot" (reboot.go). Every step may be repeated after an interruption.
type reboot struct {
	env        term.Env
	connection *management.Connection
	pool       *remote.Pool
	host       *infrav1.SSHHost
	// interval is the interval at which a drain or a reboot is checked.
	interval time.Duration
	// workload returns a client for the workload cluster of a Machine.
	workload func(ctx context.Context, management client.Client, m *clusterv1.Machine) (client.Client, error)
}

func (r reboot) say(message string, args ...any) {
	_, _ = fmt.Fprintf(r.env.Err, r.host.Name+": "+message+"\n", args...)
}

// runWithin reboots the host within the timeout of --wait-timeout. rebootCommand calls it.
func (r reboot) runWithin(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("rebooting host %s: %w", r.host.Name, err)
	}
	return nil
}

// run decides how the host is rebooted: as a free host, or with the Node that runs on it.
func (r reboot) run(ctx context.Context) error {
	// The reboots of the hosts before may have taken hours.
	if err := r.connection.Client.Get(ctx, client.ObjectKeyFromObject(r.host), r.host); err != nil {
		return err
	}
	connected, err := connect(ctx, r.connection, r.pool, r.host)
	if err != nil {
		return err
	}
	claim := r.host.Status.Claim
	if claim == nil {
		return r.runFree(ctx, connected)
	}
	m, err := r.machine(ctx, *claim)
	if err != nil {
		return err
	}
	if inventory.IsReleased(claim) || m == nil || !m.Status.NodeRef.IsDefined() {
		return fault.New(fault.Invalid, reasonInUse, "SSHMachine %s has the host, which is not a Node: it is being prepared or cleaned, and a reboot would make that fail; "+
			"wait until \"slipway hosts list\" shows another state, or delete its Machine", machineOf(r.host))
	}
	return r.runNode(ctx, connected, m)
}

// runFree reboots a host that no machine uses. Maintenance prevents that one claims it meanwhile.
func (r reboot) runFree(ctx context.Context, connected *remote.Host) error {
	if err := r.setMaintenance(ctx, true); err != nil {
		return err
	}
	if claim := r.host.Status.Claim; claim != nil {
		err := fault.New(fault.Conflict, reasonInUse, "SSHMachine %s has claimed the host meanwhile; run the command again when it is a Node", machineOf(r.host))
		return errors.Join(err, r.setMaintenance(ctx, false))
	}
	if err := r.restart(ctx, connected); err != nil {
		return fault.WithHint(err, "the host stays in maintenance; run the command again, or set spec.maintenance of its SSHHost to false")
	}
	if err := r.setMaintenance(ctx, false); err != nil {
		return err
	}
	r.say("rebooted")
	return nil
}

// setMaintenance puts the host in maintenance, or ends the maintenance that the command has begun, also before an
// interruption. It reads the host again. A host that a user has put in maintenance stays in it.
func (r reboot) setMaintenance(ctx context.Context, begin bool) error {
	if err := r.connection.Client.Get(ctx, client.ObjectKeyFromObject(r.host), r.host); err != nil {
		return err
	}
	_, isOwn := r.host.Annotations[rebootAnnotation]
	if inMaintenance := ptr.Deref(r.host.Spec.Maintenance, false); begin && inMaintenance || !begin && !isOwn {
		return nil
	}
	err := kube.NewWriter(r.connection.Client, writer).PatchOwned(ctx, r.host, func(o client.Object) {
		h, ok := o.(*infrav1.SSHHost)
		if !ok {
			return
		}
		h.Annotations = maps.Clone(h.Annotations)
		if !begin {
			h.Spec.Maintenance = nil
			delete(h.Annotations, rebootAnnotation)
			return
		}
		if h.Annotations == nil {
			h.Annotations = map[string]string{}
		}
		h.Annotations[rebootAnnotation], h.Spec.Maintenance = "maintenance", ptr.To(true)
	})
	if err != nil {
		return err
	}
	return r.connection.Client.Get(ctx, client.ObjectKeyFromObject(r.host), r.host)
}

// runNode reboots the host of a Node.
func (r reboot) runNode(ctx context.Context, connected *remote.Host, m *clusterv1.Machine) error {
	c, err := r.workload(ctx, r.connection.Client, m)
	if err != nil {
		return err
	}
	if err := r.preventRemediation(ctx, m, true); err != nil {
		return err
	}
	name := m.Status.NodeRef.Name
	if err := r.cordon(ctx, c, name); err != nil {
		return err
	}
	if err := r.runCordoned(ctx, connected, c, m); err != nil {
		return fault.WithHint(err, fmt.Sprintf("Node %s stays cordoned; run the command again to continue, or give up with \"kubectl uncordon %s\" in its cluster and \"slipway kubectl annotate machine -n %s %s %s- %s-\"",
			name, name, m.Namespace, m.Name, clusterv1.MachineSkipRemediationAnnotation, rebootAnnotation))
	}
	if err := r.preventRemediation(ctx, m, false); err != nil {
		return err
	}
	r.say("rebooted, Node %s is Ready", name)
	return nil
}

// runCordoned drains and reboots the host of a cordoned Node, and uncordons the Node when it is Ready again.
func (r reboot) runCordoned(ctx context.Context, connected *remote.Host, c client.Client, m *clusterv1.Machine) error {
	name := m.Status.NodeRef.Name
	if err := r.drain(ctx, c, m); err != nil {
		return err
	}
	before, err := r.state(ctx, c, name)
	if err != nil {
		return err
	}
	if err := r.restart(ctx, connected); err != nil {
		return err
	}
	if err := r.waitReady(ctx, c, name, before); err != nil {
		return err
	}
	return r.retry(ctx, "the API server to uncordon Node "+name, func() error { return uncordon(ctx, c, name) })
}

// machine returns the Machine of a claim, or nil. The provider ID of a Machine contains the ID of its claim, in the
// form that package ssh/machines writes.
func (r reboot) machine(ctx context.Context, claim infrav1.SSHHostClaim) (*clusterv1.Machine, error) {
	machines := &clusterv1.MachineList{}
	if err := r.connection.Client.List(ctx, machines, client.InNamespace(claim.Namespace)); err != nil {
		return nil, err
	}
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Spec.ProviderID == inventory.ProviderID(claim.ClaimID) {
			return m, nil
		}
	}
	return nil, nil
}

// workloadClient returns a client with the kubeconfig of a cluster. rebootCommand sets it as [reboot.workload]; tests
// replace it.
func workloadClient(ctx context.Context, management client.Client, m *clusterv1.Machine) (client.Client, error) {
	data, err := kubeconfig.ReadKubeconfig(ctx, management, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName})
	if err != nil {
		return nil, err
	}
	config, err := workload.ParseKubeconfig(data, policy.Configuration{})
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	return client.New(config, client.Options{})
}

// preventRemediation prevents that a MachineHealthCheck replaces the Machine because its Node does not respond, or ends
// that. An annotation that another user has set stays.
func (r reboot) preventRemediation(ctx context.Context, m *clusterv1.Machine, prevent bool) error {
	if err := r.connection.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, skips := m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	_, own := m.Annotations[rebootAnnotation]
	if prevent && skips || !prevent && !own {
		return nil
	}
	return kube.NewWriter(r.connection.Client, writer).PatchOwned(ctx, m, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		for _, key := range []string{clusterv1.MachineSkipRemediationAnnotation, rebootAnnotation} {
			if annotations[key] = ""; !prevent {
				delete(annotations, key)
			}
		}
		o.SetAnnotations(annotations)
	})
}

// cordon cordons a Node. One that a user has cordoned before stays cordoned in the end.
func (r reboot) cordon(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return nil
	}
	return kube.NewWriter(c, writer).PatchOwned(ctx, node, func(o client.Object) {
		if n, ok := o.(*corev1.Node); ok {
			n.Spec.Unschedulable = true
			n.Annotations = maps.Clone(n.Annotations)
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			n.Annotations[rebootAnnotation] = "cordoned"
		}
	})
}

// uncordon uncordons a Node that the command has cordoned.
func uncordon(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	if _, own := node.Annotations[rebootAnnotation]; !own {
		return nil
	}
	return kube.NewWriter(c, writer).PatchOwned(ctx, node, func(o client.Object) {
		if n, ok := o.(*corev1.Node); ok {
			n.Spec.Unschedulable = false
			n.Annotations = maps.Clone(n.Annotations)
			delete(n.Annotations, rebootAnnotation)
		}
	})
}

// drain evicts the Pods of a Node by the rules of its Machine.
func (r reboot) drain(ctx context.Context, c client.Client, m *clusterv1.Machine) error {
	name := m.Status.NodeRef.Name
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	rules, err := r.drainRules(ctx, m)
	if err != nil {
		return err
	}
	r.say("draining Node %s", name)
	last := ""
	return r.poll(ctx, "the drain of Node "+name, func() (bool, error) {
		view, err := drain.ReadView(ctx, c, node, rules)
		if err != nil {
			return false, ignoreOutage(err)
		}
		plan := drain.Decide(view.At(r.env.Now()))
		if plan.Done() {
			return true, nil
		}
		results := drain.Evict(ctx, c, plan.Evict)
		if text := strings.Join(drain.Describe(plan, results), "; "); text != last {
			r.say("%s", text)
			last = text
		}
		return false, nil
	})
}

// drainRules returns the drain rules of the Machine, as the Machine controller reads them for a deletion.
func (r reboot) drainRules(ctx context.Context, m *clusterv1.Machine) ([]drain.Rule, error) {
	list := &clusterv1.MachineDrainRuleList{}
	if err := r.connection.Client.List(ctx, list, client.InNamespace(m.Namespace)); err != nil {
		return nil, err
	}
	cluster := &clusterv1.Cluster{}
	if err := r.connection.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, cluster); err != nil {
		return nil, err
	}
	return drain.RulesFor(list.Items, m, cluster)
}

// restart reboots the host and waits until it is up again.
func (r reboot) restart(ctx context.Context, connected *remote.Host) error {
	before, err := connected.BootID(ctx)
	if err != nil {
		return err
	}
	r.say("rebooting")
	if err := connected.Reboot(ctx); err != nil {
		return err
	}
	return r.poll(ctx, "the host to be up again", func() (bool, error) {
		after, err := connected.BootID(ctx)
		if err != nil && fault.KindOf(err) != fault.Unreachable {
			return false, err
		}
		return err == nil && after != before, nil
	})
}

// nodeState is what the kubelet of a Node has reported.
type nodeState struct {
	ready     bool
	heartbeat time.Time
	bootID    string
}

// state reads the state of a Node before and after the reboot, for waitReady.
func (r reboot) state(ctx context.Context, c client.Client, name string) (nodeState, error) {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nodeState{}, err
	}
	out := nodeState{bootID: node.Status.NodeInfo.BootID}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			out.ready, out.heartbeat = condition.Status == corev1.ConditionTrue, condition.LastHeartbeatTime.Time
		}
	}
	return out, nil
}

// waitReady waits until the kubelet has reported Ready after the reboot, and the Pods of a control plane are Ready.
// Only times of the kubelet are compared, because the clock of this machine may differ.
func (r reboot) waitReady(ctx context.Context, c client.Client, name string, before nodeState) error {
	return r.poll(ctx, "Node "+name+" to be Ready", func() (bool, error) {
		now, err := r.state(ctx, c, name)
		if err != nil {
			return false, ignoreOutage(client.IgnoreNotFound(err))
		}
		if !now.ready || !now.heartbeat.After(before.heartbeat) && now.bootID == before.bootID {
			return false, nil
		}
		ready, err := controlPlaneReady(ctx, c, name)
		return ready, ignoreOutage(err)
	})
}

// controlPlaneReady reports whether the Pods of a control plane on a Node are Ready, so that the next host of it can be
// rebooted. The label of these Pods comes from kubeadm.
func controlPlaneReady(ctx context.Context, c client.Client, name string) (bool, error) {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace("kube-system"), client.MatchingLabels{"tier": "control-plane"}); err != nil {
		return false, err
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != name {
			continue
		}
		ready := false
		for _, condition := range p.Status.Conditions {
			ready = ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}
		if !ready {
			return false, nil
		}
	}
	return true, nil
}

// ignoreOutage returns nil for the error of an API server that does not respond or fails, which may run on the host.
func ignoreOutage(err error) error {
	var response apierrors.APIStatus
	if errors.As(err, &response) && response.Status().Code < http.StatusInternalServerError && response.Status().Code != http.StatusTooManyRequests {
		return err
	}
	return nil
}

// retry calls f until it succeeds.
func (r reboot) retry(ctx context.Context, what string, f func() error) error {
	return r.poll(ctx, what, func() (bool, error) {
		err := f()
		return err == nil, ignoreOutage(err)
	})
}

// poll calls f until it returns true or an error.
func (r reboot) poll(ctx context.Context, what string, f func() (bool, error)) error {
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		done, err := f()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Unreachable, "Timeout", "waited too long for %s; run the command again to continue", what).From(ctx.Err())
		case <-ticker.C:
		}
	}
}
