package hosts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/internal/workload"
)

// pollInterval is the interval at which a drain or a reboot is checked.
const pollInterval = 2 * time.Second

func rebootCommand(e term.Env) *cobra.Command {
	var selector string
	var yes bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "reboot NAME...",
		Short: "Reboot hosts one after the other, with their nodes drained",
		Long: `Reboot hosts, for example after patches of their operating system. The hosts are rebooted one after
the other. A node is cordoned and drained first; PodDisruptionBudgets are respected. The next host
follows when the node is Ready again and was uncordoned. If a step fails, the command stops, and the
node stays cordoned.`,
		Example: "  slipway hosts reboot rack1-1\n  slipway hosts reboot --selector rack=a --yes",
		Args:    namesOrSelector(&selector),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "labels of the hosts to reboot")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().DurationVar(&timeout, "wait-timeout", 15*time.Minute, "how long to wait for each host")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		hosts, err := selectHosts(ctx, c, args, selector)
		if err != nil {
			return err
		}
		if !yes {
			if err := e.Confirm(fmt.Sprintf("reboot %d hosts, one after the other", len(hosts))); err != nil {
				return err
			}
		}
		pool := remote.NewPool(remote.Limits{})
		defer pool.Close()
		for _, h := range hosts {
			r := reboot{env: e, connection: c, pool: pool, host: h}
			if err := r.runWithin(ctx, timeout); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

// reboot is the reboot of one host.
type reboot struct {
	env        term.Env
	connection *management.Connection
	pool       *remote.Pool
	host       *infrav1.SSHHost
}

func (r reboot) say(message string, args ...any) {
	_, _ = fmt.Fprintf(r.env.Err, r.host.Name+": "+message+"\n", args...)
}

func (r reboot) runWithin(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.run(ctx); err != nil {
		return fmt.Errorf("rebooting host %s: %w", r.host.Name, err)
	}
	return nil
}

func (r reboot) run(ctx context.Context) error {
	connected, err := connect(ctx, r.connection, r.pool, r.host)
	if err != nil {
		return err
	}
	workloadClient, node, err := r.node(ctx)
	if err != nil {
		return err
	}
	cordoned := false
	if node != "" {
		if cordoned, err = r.drain(ctx, workloadClient, node); err != nil {
			return err
		}
	}
	if err := r.restart(ctx, connected); err != nil {
		return err
	}
	if node == "" {
		r.say("rebooted")
		return nil
	}
	if err := r.waitReady(ctx, workloadClient, node); err != nil {
		return err
	}
	if cordoned {
		if err := setUnschedulable(ctx, workloadClient, node, false); err != nil {
			return err
		}
	}
	r.say("rebooted, Node %s is Ready", node)
	return nil
}

// node returns a client for the workload cluster and the name of the host's Node; empty: the host is no node.
func (r reboot) node(ctx context.Context) (client.Client, string, error) {
	claim := r.host.Status.Claim
	if claim == nil {
		return nil, "", nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.connection.Client.List(ctx, machines, client.InNamespace(claim.Namespace)); err != nil {
		return nil, "", err
	}
	for _, m := range machines.Items {
		if !strings.HasSuffix(m.Spec.ProviderID, claim.ClaimID) || !m.Status.NodeRef.IsDefined() {
			continue
		}
		data, err := kubeconfig.ReadKubeconfig(ctx, r.connection.Client, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName})
		if err != nil {
			return nil, "", err
		}
		config, err := workload.ParseKubeconfig(data, policy.Configuration{})
		if err != nil {
			return nil, "", err
		}
		c, err := client.New(config, client.Options{})
		return c, m.Status.NodeRef.Name, err
	}
	return nil, "", nil
}

// drain cordons a Node and evicts its Pods. It reports whether the Node was schedulable before.
func (r reboot) drain(ctx context.Context, c client.Client, name string) (cordoned bool, err error) {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return false, err
	}
	cordoned = !node.Spec.Unschedulable
	if err := setUnschedulable(ctx, c, name, true); err != nil {
		return false, err
	}
	r.say("draining Node %s", name)
	last := ""
	return cordoned, r.poll(ctx, "the drain of Node "+name, func() (bool, error) {
		view, err := drain.ReadView(ctx, c, node, nil)
		if err != nil {
			return false, err
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

// waitReady waits until the kubelet has reported Ready after the reboot.
func (r reboot) waitReady(ctx context.Context, c client.Client, name string) error {
	up := r.env.Now()
	return r.poll(ctx, "Node "+name+" to be Ready", func() (bool, error) {
		node := &corev1.Node{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue && condition.LastHeartbeatTime.After(up), nil
			}
		}
		return false, nil
	})
}

// poll calls f until it returns true or an error.
func (r reboot) poll(ctx context.Context, what string, f func() (bool, error)) error {
	ticker := time.NewTicker(pollInterval)
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

// setUnschedulable cordons or uncordons a Node.
func setUnschedulable(ctx context.Context, c client.Client, name string, value bool) error {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	return kube.NewWriter(c, writer).PatchOwned(ctx, node, func(o client.Object) {
		if n, ok := o.(*corev1.Node); ok {
			n.Spec.Unschedulable = value
		}
	})
}
