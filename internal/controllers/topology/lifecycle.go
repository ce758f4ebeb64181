package topology

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// The read and the actions for the lifecycle of a topology: the order in which it is created, upgraded and deleted, and
// the hooks that may delay each step. Package internal/topology/lifecycle decides about the order; this file adds the
// decision to the plan.
type (
	// askHook requests a call of a lifecycle hook.
	askHook struct{ Question lifecycle.HookCall }
	// record writes the lifecycle progress to the Cluster's annotations before anything that depends on it is
	// written.
	record struct{ Annotations map[string]*string }
	// retryFailures returns the errors after everything else is done, so that the reconciliation is retried.
	retryFailures struct{ Failed []error }
)

func (q askHook) String() string { return q.Question.String() }
func (a record) String() string {
	if _, deletes := a.Annotations[runtimev1.OkToDeleteAnnotation]; deletes {
		return "record that the Cluster may be deleted"
	}
	return "record the pending hooks and the step of the upgrade"
}
func (a retryFailures) String() string { return "retry the failed operations" }

// hookBlocking is the reason of events and waits that name the blocking handler. The condition has its own message
// without times.
const hookBlocking = "HookBlocking"

// decideDeletion plans for a Cluster that is being deleted; [decide] calls it. It requests the hook that may delay the
// deletion. The Cluster controller deletes the objects; until it has finished, the plan always contains a wait.
func decideDeletion(s snapshot, p *reconciler.Plan) {
	decideRelease(s, p)
	s.proceed(p)
	retry(p, s.Lifecycle.Failed)
	if len(p.Reads) == 0 && len(p.Waits) == 0 {
		p.WaitFor(clusterv1.ClusterTopologyReconciledDeletingReason, "Cluster is deleting").For(clusterv1.ClusterKind, s.Cluster.Name).ToChange("")
	}
}

// proceed requests hook calls, or records progress and waits, according to the lifecycle decision. It reports whether
// the objects of the topology may be written, which is not the case before the progress is recorded. [decide] and
// decideDeletion call it before anything else about the objects is planned.
func (s snapshot) proceed(p *reconciler.Plan) bool {
	v := s.Lifecycle
	for _, q := range v.Calls {
		p.Reads = append(p.Reads, askHook{q})
	}
	if len(v.Calls) > 0 {
		return false
	}
	s.waitForLifecycle(p)
	p.RecheckIn(v.Recheck)
	if len(v.Annotations) > 0 {
		p.Do(record{v.Annotations})
		return false
	}
	return !v.Suspended
}

// retry adds an action that returns the errors after everything else. It adds nothing to a plan with reads, because
// such a plan is not executed: package reconciler calls [decide] again after the reads.
func retry(p *reconciler.Plan, failed []error) {
	if len(failed) > 0 && len(p.Reads) == 0 {
		p.Do(retryFailures{failed})
	}
}

// waitForLifecycle adds the waits of the lifecycle decision: one for each blocking handler, and one with the message of
// the condition.
func (s snapshot) waitForLifecycle(p *reconciler.Plan) {
	v := s.Lifecycle
	if v.Message == "" {
		return
	}
	for _, blocked := range v.Blocking {
		for _, by := range blocked.By {
			_, extension, _ := strings.Cut(by.Handler, ".")
			p.WaitFor(hookBlocking, "Hook %s has blocked the %s since %s: %s; it is called again in %s", blocked.Hook, blocked.Action,
				by.Since.UTC().Format(time.RFC3339), by, by.RetryAfter).For("ExtensionConfig", extension).ForTime()
		}
	}
	wait := p.WaitFor(v.Reason, "%s", v.Message).For(clusterv1.ClusterKind, s.Cluster.Name)
	switch {
	case len(v.Blocking) > 0 && len(v.Blocking[0].By) > 0 || len(v.Failed) > 0:
		wait.ForTime()
	// Without handlers, annotations that users have set on the Cluster block the upgrade.
	case len(v.Blocking) > 0, v.Reason == clusterv1.ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason,
		v.Reason == clusterv1.ClusterTopologyReconciledMachinePoolsUpgradeDeferredReason:
		wait.UntilUserActs()
	default:
		wait.ToChange("status.controlPlane, status.workers")
	}
}

// withLifecycle returns the snapshot with the lifecycle operations that the Cluster may perform now. observe calls it
// at its end, and callHook after each response.
func (s snapshot) withLifecycle() snapshot {
	s.Lifecycle = lifecycle.Next(s.lifecycleInput())
	return s
}

// lifecycleInput returns the input of the lifecycle decision.
func (s snapshot) lifecycleInput() lifecycle.Input {
	f := lifecycle.Input{Cluster: s.Cluster, RuntimeSDK: s.RuntimeSDK, Results: s.HookResults}
	if s.Class != nil {
		f.Class, f.Versions = topology.ClassKey(s.Cluster).String(), s.Class.Spec.KubernetesVersions
		f.PlanExtension = s.Class.Spec.Upgrade.External.GenerateUpgradePlanExtension
	}
	if s.Live.ControlPlane.Unstructured != nil {
		f.ControlPlane = lifecycle.ControlPlaneOf(contract.ControlPlane(s.Live.ControlPlane))
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachineDeployments {
		f.Workers = append(f.Workers, lifecycle.WorkerOf("MachineDeployment", t.Name, t.Metadata, s.Live.Deployments[t.Name].Object))
	}
	for _, t := range s.Cluster.Spec.Topology.Workers.MachinePools {
		f.Workers = append(f.Workers, lifecycle.WorkerOf("MachinePool", t.Name, t.Metadata, s.Live.Pools[t.Name].Object))
	}
	return f
}

// versionsOf converts the lifecycle decision to the input of the topology engine. The workers of the decision have the
// order of lifecycleInput: the MachineDeployments, then the MachinePools. decideObjects calls it.
func versionsOf(s snapshot) topology.Versions {
	v, workers := s.Lifecycle, s.Cluster.Spec.Topology.Workers
	out := topology.Versions{
		ControlPlane: v.ControlPlane.Version, Deployments: map[string]string{}, Pools: map[string]string{},
		Withheld: map[topology.Key]bool{}, Frozen: map[topology.Key]bool{{Role: topology.ControlPlane}: v.ControlPlane.Frozen},
	}
	add := func(role topology.Role, versions map[string]string, worker string, part lifecycle.Part) {
		key := topology.Key{Role: role, Worker: worker}
		versions[worker], out.Frozen[key], out.Withheld[key] = part.Version, part.Frozen, part.Withheld
	}
	for i, t := range workers.MachineDeployments {
		add(topology.Deployment, out.Deployments, t.Name, v.Workers[i])
	}
	for i, t := range workers.MachinePools {
		add(topology.Pool, out.Pools, t.Name, v.Workers[len(workers.MachineDeployments)+i])
	}
	return out
}

// callHook calls a lifecycle hook of the extensions, when a plan requests askHook. The Read function of the controller
// (act.go) calls it.
func (c *controller) callHook(ctx context.Context, s snapshot, q lifecycle.HookCall) (snapshot, error) {
	answer, err := hook.LifecycleCaller{Client: c.extensions}.Call(ctx, s.Cluster, q)
	if err != nil {
		return s, err
	}
	s.HookResults = maps.Clone(s.HookResults)
	if s.HookResults == nil {
		s.HookResults = map[lifecycle.Hook]lifecycle.HookResult{}
	}
	s.HookResults[q.Hook] = answer
	return s.withLifecycle(), nil
}

// record writes annotations of the Cluster. act calls it.
func (c *controller) record(ctx context.Context, s snapshot, annotations map[string]*string) error {
	return c.writer.PatchOwned(ctx, s.Cluster, func(o client.Object) {
		after := maps.Clone(o.GetAnnotations())
		if after == nil {
			after = map[string]string{}
		}
		for name, value := range annotations {
			if value == nil {
				delete(after, name)
			} else {
				after[name] = *value
			}
		}
		o.SetAnnotations(after)
	})
}

// err joins the failures into one error with the kind of the first. act calls it when it runs this action.
func (a retryFailures) err() error {
	if len(a.Failed) == 1 {
		return a.Failed[0]
	}
	return errors.Join(a.Failed...)
}
