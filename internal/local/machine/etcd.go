package machine

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

const (
	reasonEtcd = "RebuildingEtcd"
	// etcdRecheck is the interval for reading the progress of an etcd rebuild.
	etcdRecheck = 2 * time.Second
)

// readEtcd reads the progress of an order for the etcd member on the machine. controller.readRequested (observe.go)
// reads it when [decide] requests it.
type readEtcd struct{ Order recovery.EtcdOrder }

func (a readEtcd) String() string { return "the etcd member, for " + string(a.Order.Step) }

// rebuildEtcd makes the etcd member on the machine the only member of its cluster, from its own data or from a staged
// snapshot.
type rebuildEtcd struct {
	Name  string
	Order recovery.EtcdOrder
}

func (a rebuildEtcd) String() string {
	from := "rebuild etcd from the member"
	if a.Order.Step == recovery.Restore {
		from = "restore etcd from the snapshot"
	}
	return fmt.Sprintf("%s in machine %s: its control plane requests it (recovery %s)", from, a.Name, a.Order.ID)
}

// stageSnapshot copies an etcd snapshot onto the machine.
type stageSnapshot struct {
	Name  string
	Order recovery.EtcdOrder
}

func (a stageSnapshot) String() string {
	return fmt.Sprintf("copy snapshot %s to machine %s: its control plane requests it (recovery %s)", a.Order.Snapshot.Name, a.Name, a.Order.ID)
}

// reportEtcd writes the result of an order for the etcd member.
type reportEtcd struct{ Report string }

func (a reportEtcd) String() string { return "report the result of the etcd order: " + a.Report }

// decideEtcd is the part of [decide] that carries out, once, the order of the control plane for the etcd member on the
// machine. Package recovery defines the orders and reports, which are annotations. An order can affect only the member
// of this machine, even if another user writes it. [decide] calls it for a provisioned machine.
func decideEtcd(s snapshot, p *reconciler.Plan) {
	order := recovery.ParseOrder(s.Object.Annotations)
	if order == nil || !s.controlPlane() || recovery.ParseReport(s.Object.Annotations).IsFor(*order) {
		return
	}
	report := recovery.Report{ID: order.ID, Step: order.Step}
	switch {
	case s.HostMachine.State != backend.Running:
		report.Problem = "The machine " + s.Name + " does not run"
	case !s.Capabilities.ReachesEtcd:
		report.Problem = "Etcd in machines of this backend cannot be reached"
	case s.Etcd == nil:
		p.Reads = append(p.Reads, readEtcd{Order: *order})
		return
	case s.Etcd.Unreachable:
		p.RecheckIn(lostEventRecheck)
		return
	case s.Etcd.Problem != "":
		report.Problem = s.Etcd.Problem
	case order.Step == recovery.Survey:
		report.Member = &s.Etcd.Member
	case s.Etcd.Phase == backend.NotStarted && order.Step == recovery.Stage:
		p.Do(stageSnapshot{Name: s.Name, Order: *order})
		p.RecheckIn(etcdRecheck)
		return
	case s.Etcd.Phase == backend.NotStarted:
		p.Do(rebuildEtcd{Name: s.Name, Order: *order})
		p.RecheckIn(etcdRecheck)
		return
	case s.Etcd.Phase == backend.InProgress:
		waitForEtcd(s, p, *order)
		p.RecheckIn(etcdRecheck)
		return
	}
	p.Do(reportEtcd{Report: report.String()})
}

// waitForEtcd waits for the result of an order.
func waitForEtcd(s snapshot, p *reconciler.Plan, order recovery.EtcdOrder) {
	switch order.Step {
	case recovery.Stage:
		p.WaitFor("StagingSnapshot", "Snapshot %s is being copied to machine %s", order.Snapshot.Name, s.Name).For(kind, s.Object.Name).ForTime()
	case recovery.Restore:
		p.WaitFor("RestoringEtcd", "Etcd is being restored from a snapshot in machine %s", s.Name).For(kind, s.Object.Name).ForTime()
	default:
		p.WaitFor(reasonEtcd, "Etcd is being rebuilt from the member in machine %s", s.Name).For(kind, s.Object.Name).ForTime()
	}
}

// etcdResult is the observed state of the etcd member on a machine, for an order. decideEtcd requests it with readEtcd,
// and then decides with it.
type etcdResult struct {
	Member recovery.MemberState
	// Phase of an asynchronous order. Problem is the reason why the order fails, Unreachable is set if the backend did
	// not respond.
	Phase       backend.Phase
	Problem     string
	Unreachable bool
}

// readEtcdResult reads the result of an order. controller.readRequested (observe.go) calls it.
func (c *controller) readEtcdResult(ctx context.Context, etcds backend.EtcdRecovery, s snapshot, order recovery.EtcdOrder) (snapshot, error) {
	s.Etcd = &etcdResult{}
	var err error
	switch order.Step {
	case recovery.Survey:
		s.Etcd.Member, err = etcds.Survey(ctx, s.ref())
	case recovery.Stage:
		err = c.readStaging(ctx, etcds, s, order)
	default:
		var progress backend.Progress
		progress, err = etcds.RebuildProgress(ctx, s.ref(), order)
		if s.Etcd.Phase = progress.Phase; progress.Phase == backend.Failed {
			s.Etcd.Problem = progress.Log
		}
	}
	switch f := fault.As(err); {
	case f == nil:
		return s, err
	case f.Kind == fault.Invalid:
		s.Etcd.Problem = f.Message
	default: // an event or the next reconciliation reads it again
		s.Etcd.Unreachable = true
	}
	return s, nil
}

// readStaging reads the progress of copying a snapshot onto the machine.
func (c *controller) readStaging(ctx context.Context, etcds backend.EtcdRecovery, s snapshot, order recovery.EtcdOrder) error {
	switch state := c.stager.State(client.ObjectKeyFromObject(s.Object), order); {
	case state.Running:
		s.Etcd.Phase = backend.InProgress
		return nil
	case state.Err != nil:
		s.Etcd.Problem = fault.UserMessage(state.Err)
		return nil
	}
	staged, err := etcds.Staged(ctx, s.ref(), order)
	if s.Etcd.Phase = backend.NotStarted; staged {
		s.Etcd.Phase = backend.Succeeded
	}
	return err
}

// stage starts to copy a snapshot onto the machine.
func (c *controller) stage(etcds backend.EtcdRecovery, s snapshot, order recovery.EtcdOrder) {
	if s.Cluster == nil {
		return // a Cluster that appears enqueues the object again
	}
	c.stager.Start(stagingTarget{
		Machine: client.ObjectKeyFromObject(s.Object), Version: s.version(),
		Cluster: snapshots.Cluster{Namespace: s.Object.Namespace, Name: s.Cluster.Name, UID: string(s.Cluster.UID)},
		Stage: func(ctx context.Context, content func(io.Writer) error) error {
			return etcds.Stage(ctx, s.ref(), order, content)
		},
	}, order)
}

// actOnEtcd carries out an order. controller.act calls it for the actions above.
func (c *controller) actOnEtcd(ctx context.Context, etcds backend.EtcdRecovery, s snapshot, a reconciler.Action) error {
	switch a := a.(type) {
	case rebuildEtcd:
		return etcds.Rebuild(ctx, s.ref(), a.Order)
	case stageSnapshot:
		c.stage(etcds, s, a.Order)
	case reportEtcd:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) { kube.Annotate(o, controlplanev1.EtcdReportAnnotation, &a.Report) })
	}
	return nil
}
