package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/internal/workload"
)

// broken is the version whose Machines never become available.
const broken = "v1.36.9"

// history is what the API server said of Machines and MachineSets, every event of it in order.
type history struct {
	mu sync.Mutex
	// machines by name: available and not on its way out.
	machines map[string]bool
	// least and most are the fewest available Machines and the most that stay, since they were last reset.
	least, most int
	// replicas that each MachineSet was told to have, one after the other.
	replicas map[string][]int32
}

func (h *history) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.least, h.most = h.available(), len(h.machines)
}

func (h *history) available() int {
	n := 0
	for _, is := range h.machines {
		if is {
			n++
		}
	}
	return n
}

func (h *history) note(e watch.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := e.Object.(type) {
	case *clusterv1.Machine:
		delete(h.machines, o.Name)
		if e.Type != watch.Deleted && o.DeletionTimestamp.IsZero() {
			h.machines[o.Name] = condition.Set(o.Status.Conditions).IsTrue(clusterv1.MachineAvailableCondition)
		}
		h.least, h.most = min(h.least, h.available()), max(h.most, len(h.machines))
	case *clusterv1.MachineSet:
		told := h.replicas[o.Name]
		if n := *o.Spec.Replicas; e.Type != watch.Deleted && (len(told) == 0 || told[len(told)-1] != n) {
			h.replicas[o.Name] = append(told, n)
		}
	}
}

// bounds returns the fewest available and the most Machines since the last reset.
func (h *history) bounds() (least, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.least, h.most
}

func (h *history) told(set string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Trim(fmt.Sprint(h.replicas[set]), "[]")
}

// upgrades is a MachineDeployment under its two controllers. The test plays the Machines.
type upgrades struct {
	fleet
	d       *clusterv1.MachineDeployment
	history *history
}

func startUpgrades(t *testing.T) upgrades {
	t.Helper()
	f := startManager(t, func(f fleet, mgr ctrl.Manager) {
		clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
		f.must(err)
		f.must(clusters.SetupWithManager(mgr))
		setup := reconciler.Setup{Manager: mgr, Concurrency: 2}
		f.must(machineset.Add(setup, clusters, machineset.Settings{}))
		f.must(machinedeployment.Add(setup, nil, machinedeployment.Settings{}))
	})
	u := upgrades{fleet: f, history: &history{machines: map[string]bool{}, replicas: map[string][]int32{}}}
	u.follow(&clusterv1.MachineList{})
	u.follow(&clusterv1.MachineSetList{})
	c := &clusterv1.Cluster{ObjectMeta: meta("c")}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "localhost", Port: 1}
	u.must(u.Create(t.Context(), c))
	change(u.live, c, func(c *clusterv1.Cluster) {
		c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	})
	u.must(u.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": u.kubeconfig},
	}))
	return u
}

// follow notes every event of a kind from now on.
func (u upgrades) follow(list client.ObjectList) {
	u.t.Helper()
	w, err := u.watcher.Watch(context.Background(), list, client.InNamespace("ns"))
	u.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			u.history.note(e)
		}
	}()
	u.t.Cleanup(func() { w.Stop(); <-done })
}

// until plays the Machines until the deployment is as said, and the history has seen it.
func (u upgrades) until(what string, f func() bool) {
	u.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		u.play()
		u.must(u.Get(u.t.Context(), client.ObjectKeyFromObject(u.d), u.d))
		if f() {
			return
		}
		select {
		case <-u.t.Context().Done():
			u.t.Fatal(u.t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	u.t.Fatalf("%s: %s\n%+v", what, u.sets(), u.d)
}

// play makes at most one Machine available, and lets those go that are being deleted.
func (u upgrades) play() {
	list := &clusterv1.MachineList{}
	u.must(u.List(u.t.Context(), list, client.InNamespace("ns")))
	for i := range list.Items {
		m := &list.Items[i]
		before := m.DeepCopy()
		if !m.DeletionTimestamp.IsZero() {
			controllerutil.RemoveFinalizer(m, clusterv1.MachineFinalizer)
			u.must(client.IgnoreNotFound(u.Patch(u.t.Context(), m, client.MergeFrom(before))))
		}
	}
	sets, made := u.list(), false
	for i := range list.Items {
		m := &list.Items[i]
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		before := m.DeepCopy()
		u.judge(m, sets)
		if !made && m.Spec.Version != broken && !m.Status.NodeRef.IsDefined() {
			made, m.Status.NodeRef.Name = true, m.Name
			for _, t := range []string{clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineNodeHealthyCondition} {
				m.Status.Conditions = append(m.Status.Conditions, ready(t)...)
			}
		}
		if reflect.DeepEqual(before.Status, m.Status) {
			continue
		}
		err := u.Status().Patch(u.t.Context(), m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) { // its MachineSet wrote it; next time
			u.must(client.IgnoreNotFound(err))
		}
	}
}

// judge says whether a Machine is up to date.
func (u upgrades) judge(m *clusterv1.Machine, sets []clusterv1.MachineSet) {
	i := slices.IndexFunc(sets, func(set clusterv1.MachineSet) bool { return metav1.IsControlledBy(m, &set) })
	if i < 0 {
		return
	}
	if verdict := rollout.UpToDateCondition(m, &sets[i], u.d, time.Now()); judges(m, verdict) {
		judgeMachine(m, verdict, time.Now())
	}
}

// sets are the MachineSets by revision: revision, version, replicas wanted.
func (u upgrades) sets() string {
	u.t.Helper()
	var out []string
	for _, set := range u.list() {
		out = append(out, fmt.Sprintf("%s %s %d", set.Annotations[clusterv1.RevisionAnnotation], set.Spec.Template.Spec.Version, *set.Spec.Replicas))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func (u upgrades) list() []clusterv1.MachineSet {
	u.t.Helper()
	list := &clusterv1.MachineSetList{}
	u.must(u.List(u.t.Context(), list, client.InNamespace("ns")))
	return list.Items
}

// settled reports whether all three replicas run in one MachineSet.
func (u upgrades) settled(sets string) func() bool {
	return func() bool {
		s := u.d.Status
		return u.sets() == sets && s.ObservedGeneration == u.d.Generation && s.UpToDateReplicas != nil && *s.UpToDateReplicas == 3 &&
			*s.Replicas == 3 && *s.AvailableReplicas == 3 && s.Phase == "Running" && isAvailable(u.d)() &&
			condition.Set(s.Conditions).IsFalse(clusterv1.MachineDeploymentRollingOutCondition) &&
			u.d.Annotations[clusterv1.RevisionAnnotation] == sets[:1]
	}
}

func (u upgrades) to(version string) {
	u.t.Helper()
	u.history.reset()
	change(u.live, u.d, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = version })
}

// bounded fails where fewer than three Machines were available, or more than four there to stay.
func (u upgrades) bounded(what string) {
	u.t.Helper()
	if least, most := u.history.bounds(); least < 3 || most > 4 {
		u.t.Errorf("%s: at least %d available, at most %d Machines; want 3 and 4", what, least, most)
	}
}

// TestRolloutOverAnAPIServer rolls a MachineDeployment out under both controllers, and looks at every state that the
// API server ever had.
func TestRolloutOverAnAPIServer(t *testing.T) { // DP-02, DP-04, DP-06, DP-07, DP-12, DP-20, MS-04, MS-10, MA-24
	u := startUpgrades(t)
	u.d = u.createDeployment(3)
	change(u.live, u.d, func(d *clusterv1.MachineDeployment) {
		surge, unavailable := intstr.FromInt32(1), intstr.FromInt32(0)
		d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &surge, &unavailable
	})
	u.until("made", u.settled("1 v1.36.3 3"))
	first := u.list()[0].Name

	u.to("v1.36.4")
	u.until("rolled out", u.settled("2 v1.36.4 3"))
	second := u.list()[0].Name
	u.bounded("rollout")
	if got := u.history.told(first); got != "3 2 1 0" {
		t.Errorf("DP-06: the old MachineSet went through %s replicas", got)
	}
	if got := u.history.told(second); got != "1 2 3" {
		t.Errorf("DP-06: the new MachineSet went through %s replicas", got)
	}

	u.to(broken) // DP-07
	u.until("halted", func() bool {
		c := condition.Set(u.d.Status.Conditions).Get(clusterv1.MachineDeploymentRollingOutCondition)
		return u.sets() == "2 v1.36.4 3, 3 v1.36.9 1" && *u.d.Status.Replicas == 4 && c != nil &&
			c.Message == "Rolling out 3 not up-to-date replicas\n* Version v1.36.4, v1.36.9 required"
	})
	u.to("v1.36.4") // DP-02, DP-04: what matches again is used again, under a new revision
	u.until("rolled back", u.settled("4 v1.36.4 3"))
	u.bounded("rollback")
	if name := u.list()[0].Name; name != second {
		t.Errorf("DP-02: MachineSet %s, want %s back", name, second)
	}
	if got := u.history.told(second); got != "1 2 3" {
		t.Errorf("DP-07: a rollout that halts takes none of the available Machines: %s replicas", got)
	}
}

// TestRemediationIsWithdrawn: what a MachineSet said of a Machine that no one may replace yet goes when the Machine is well
// again, and nothing else with it.
func TestRemediationIsWithdrawn(t *testing.T) { // MS-18, DP-15
	u := startUpgrades(t)
	u.d = u.createDeployment(3)
	none := intstr.FromInt32(0)
	change(u.live, u.d, func(d *clusterv1.MachineDeployment) { d.Spec.Remediation.MaxInFlight = &none })
	u.until("made", u.settled("1 v1.36.3 3"))
	list := &clusterv1.MachineList{}
	u.must(u.List(t.Context(), list, client.InNamespace("ns")))
	sick := &list.Items[0]
	const checker = kube.ManagerPrefix + "test" // this test's client
	said := func() string {
		u.must(u.Get(t.Context(), client.ObjectKeyFromObject(sick), sick))
		if c := condition.Set(sick.Status.Conditions).Get(clusterv1.MachineOwnerRemediatedCondition); c != nil {
			return c.Reason
		}
		return ""
	}
	change(u.live, sick, func(m *clusterv1.Machine) { // as a health check does
		for _, conditionType := range []string{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse,
				Reason: "Unhealthy", LastTransitionTime: metav1.Now()})
		}
	})
	u.until("deferred", func() bool { return said() == clusterv1.MachineSetMachineRemediationDeferredReason })
	change(u.live, sick, func(m *clusterv1.Machine) { // which leaves the condition to the owner
		m.ManagedFields = slices.DeleteFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == checker })
	})
	change(u.live, sick, func(m *clusterv1.Machine) {
		for i := range m.Status.Conditions {
			if c := &m.Status.Conditions[i]; c.Type == clusterv1.MachineHealthCheckSucceededCondition {
				c.Status = metav1.ConditionTrue
			}
		}
	})
	u.until("withdrawn", func() bool { return said() == "" })
	for _, conditionType := range []string{clusterv1.MachineAvailableCondition, clusterv1.MachineUpToDateCondition, clusterv1.MachineHealthCheckSucceededCondition} {
		if !condition.Set(sick.Status.Conditions).IsTrue(conditionType) {
			t.Errorf("%s is not True any more: %v", conditionType, sick.Status.Conditions)
		}
	}
}
