package controlplane

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/upgrade"
)

// The maximum age of the state of kubeadm's objects before a Machine joins, and at other times.
const joinInterval, addonsInterval = time.Minute, 10 * time.Minute

// prepare updates the objects that the next Machine needs in the workload cluster to the desired version and
// configuration. It reports whether the Machine can be created.
func prepare(s Snapshot, p *loop.Plan) bool {
	if !s.Now.Before(s.KubeadmObjects.At.Add(joinInterval)) {
		p.Ask = append(p.Ask, action.AskKubeadm{})
		return false
	}
	changes, problem := upgrade.Before(s.KubeadmObjects, upgrade.DesiredBy(s.Plane))
	if problem != "" {
		p.WaitFor(waitForPreflight, "%s", problem).For(planeKind, s.Plane.Name).ForTime()
		p.RecheckIn(preflightRecheck)
		return false
	}
	p.Do(upgrade.Actions(changes)...)
	return true
}

// upgradeAddons upgrades kube-proxy and CoreDNS once all Machines are up to date.
func upgradeAddons(s Snapshot, _ change, p *loop.Plan) bool {
	if !s.isInitialized() || s.Workload.At.IsZero() || s.Workload.Problem != "" || len(s.candidates()) != len(s.Machines) {
		return false
	}
	if !s.Now.Before(s.KubeadmObjects.At.Add(addonsInterval)) {
		p.Ask = append(p.Ask, action.AskKubeadm{})
		return true
	}
	changes := upgrade.Changes(upgrade.After(s.KubeadmObjects, upgrade.DesiredBy(s.Plane)))
	p.Do(upgrade.Actions(changes)...)
	switch {
	case s.KubeadmObjects.Problem != "":
		p.RecheckIn(unhealthyInterval)
	case len(changes) > 0:
		p.RecheckIn(soon)
	default:
		p.RecheckIn(s.KubeadmObjects.At.Add(addonsInterval).Sub(s.Now))
	}
	return len(changes) > 0
}

// readLeft reads the objects that kubeadm created in the workload cluster, and caches them.
func (c *Controller) readLeft(ctx context.Context, s Snapshot) Snapshot {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err == nil {
		s.KubeadmObjects, err = upgrade.Read(ctx, workload, s.Now)
	}
	if err != nil {
		s.KubeadmObjects = upgrade.KubeadmState{At: s.Now, Problem: upgrade.Text(err)}
		return s
	}
	c.left.Set(s.Plane.UID, s.KubeadmObjects)
	return s
}

// changeLeft applies a change. The cached state is discarded even if the change fails.
func (c *Controller) changeLeft(ctx context.Context, s Snapshot, change upgrade.Change) error {
	c.left.Forget(s.Plane.UID)
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	return upgrade.Apply(ctx, kube.NewWriter(workload, Name), change)
}

func (j judged) addons() condition.Verdict {
	if failed, is := j.out.Failed.(upgrade.Change); is {
		return condition.False("UpgradeFailed", machines.FailureText("An object of the workload cluster could not be written", j.out, failed.Object))
	}
	if j.KubeadmObjects.At.IsZero() || j.KubeadmObjects.Problem != "" {
		return condition.Mirror(j.Plane.Status.Conditions, upgrade.ConditionType, condition.Absent())
	}
	return upgrade.Verdict(j.KubeadmObjects, upgrade.DesiredBy(j.Plane), len(j.outdated()) > 0)
}
