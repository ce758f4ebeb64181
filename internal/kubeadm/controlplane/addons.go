package controlplane

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// The maximum age of the state of kubeadm's objects before a Machine joins, and at other times.
const joinInterval, addonsInterval = time.Minute, 10 * time.Minute

// prepare updates the objects that the next Machine needs in the workload cluster to the desired version and
// configuration, because kubeadm join reads them. [scale] calls it before it creates a joining Machine. It reports
// whether the Machine can be created.
func prepare(s snapshot, p *reconciler.Plan) bool {
	if !s.Now.Before(s.KubeadmObjects.At.Add(joinInterval)) {
		p.Reads = append(p.Reads, readKubeadm{})
		return false
	}
	changes, problem := addons.ChangesBeforeJoin(s.KubeadmObjects, addons.DesiredBy(s.ControlPlane))
	if problem != "" {
		p.WaitFor(waitForPreflight, "%s", problem).For(controlPlaneKind, s.ControlPlane.Name).ForTime()
		p.RecheckIn(preflightRecheck)
		return false
	}
	p.Do(addons.Actions(changes)...)
	return true
}

// upgradeAddons upgrades kube-proxy and CoreDNS once all Machines are up to date. It is the last step of
// [decideChange].
func upgradeAddons(s snapshot, p *reconciler.Plan) bool {
	if !s.isInitialized() || s.Workload.At.IsZero() || s.Workload.Problem != "" || len(s.candidates()) != len(s.Machines) {
		return false
	}
	interval := s.addonsInterval()
	if !s.Now.Before(s.KubeadmObjects.At.Add(interval)) {
		p.Reads = append(p.Reads, readKubeadm{})
		return true
	}
	changes := addons.Changes(addons.PlanUpgrades(s.KubeadmObjects, addons.DesiredBy(s.ControlPlane)))
	p.Do(addons.Actions(changes)...)
	switch {
	case s.KubeadmObjects.Problem != "":
		p.RecheckIn(unhealthyInterval)
	case len(changes) > 0:
		p.RecheckIn(soon)
	default:
		p.RecheckIn(s.KubeadmObjects.At.Add(interval).Sub(s.Now))
	}
	return len(changes) > 0
}

// addonsInterval returns the maximum age of the state of kubeadm's objects. CoreDNS becomes available soon after the
// first Node; later, only a user can correct it.
func (s snapshot) addonsInterval() time.Duration {
	isNew := s.isNew()
	switch {
	case !addons.IsPending(s.KubeadmObjects, isNew):
		return addonsInterval
	case s.initializedWithin(newFor):
		return soon
	}
	return joinInterval
}

// isNew reports whether the control plane was initialized a short time ago.
func (s snapshot) isNew() bool { return s.initializedWithin(addonsInterval) }

func (s snapshot) initializedWithin(d time.Duration) bool {
	initialized := condition.Set(s.ControlPlane.Status.Conditions).Get(controlplanev1.KubeadmControlPlaneInitializedCondition)
	return initialized != nil && initialized.Status == metav1.ConditionTrue && s.Now.Sub(initialized.LastTransitionTime.Time) < d
}

// readKubeadmObjects reads the objects that kubeadm created in the workload cluster, and caches them. read calls it if
// [decide] has requested the read.
func (c *controller) readKubeadmObjects(ctx context.Context, s snapshot) snapshot {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err == nil {
		s.KubeadmObjects, err = addons.Read(ctx, workload, s.Now)
	}
	if err != nil {
		s.KubeadmObjects = addons.KubeadmState{At: s.Now, Problem: addons.ErrorText(err)}
		return s
	}
	c.kubeadmObjects.Set(s.ControlPlane.UID, s.KubeadmObjects)
	return s
}

// applyAddonChange applies a change. The cached state is discarded even if the change fails. The next reconciliation
// reads the objects again. act calls it.
func (c *controller) applyAddonChange(ctx context.Context, s snapshot, change addons.Change) error {
	c.kubeadmObjects.Forget(s.ControlPlane.UID)
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	return addons.Apply(ctx, c.writer.WithClient(workload), change)
}

func (j conditionInput) addonsAvailable() condition.Result {
	switch state := j.KubeadmObjects; {
	case !state.At.IsZero() && state.Problem == "":
		return addons.AvailableCondition(state, j.isNew())
	case j.isNew():
		return condition.Mirror(j.ControlPlane.Status.Conditions, hostedv1.AddonsAvailableCondition,
			condition.Unknown("NotYetKnown", "The add-ons of the workload cluster are not read yet, retrying"))
	}
	return condition.Mirror(j.ControlPlane.Status.Conditions, hostedv1.AddonsAvailableCondition, condition.Absent())
}

// addons returns the condition about kube-proxy and CoreDNS, or its previous value while their state is unknown.
func (j conditionInput) addons() condition.Result {
	if failed, is := j.out.Failed.(addons.Change); is {
		return condition.False("UpgradeFailed", machines.FailureText("An object of the workload cluster could not be written", j.out, failed.Object))
	}
	if j.KubeadmObjects.At.IsZero() || j.KubeadmObjects.Problem != "" {
		return condition.Mirror(j.ControlPlane.Status.Conditions, addons.ConditionType, condition.Absent())
	}
	return addons.Condition(j.KubeadmObjects, addons.DesiredBy(j.ControlPlane), len(j.outdated()) > 0)
}
