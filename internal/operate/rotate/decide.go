package rotate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// snapshot is the state of a cluster whose CA is rotated, the input of [decide]. Machines are read after Plane, so that
// Machines created later use the certificates that Plane reports.
type snapshot struct {
	Now         time.Time
	Cluster     *clusterv1.Cluster
	Secret      *corev1.Secret
	Plane       *hostedv1.HostedControlPlane
	Deployments []clusterv1.MachineDeployment
	Sets        []clusterv1.MachineSet
	Pools       []clusterv1.MachinePool
	Machines    []clusterv1.Machine
}

// restartTolerance is the maximum distance in the future of a restart that the rotation itself has requested.
// blockers.go compares restarts with it.
const restartTolerance = 2 * time.Minute

// action is an action of a rotation. [Rotator.Run] executes it, and prints its String as progress.
type action interface{ String() string }

// install updates the Secret to the phase that follows After.
type install struct{ After Phase }

func (a install) String() string {
	switch a.After {
	case phaseNone:
		return "The new authority is trusted in addition to the old authority, which still signs"
	case phaseTrustBoth:
		return "The new authority signs; the old authority is still trusted"
	case phaseNewSigns:
		return "The old authority is removed"
	}
	return "The rotation is done"
}

// recordPhase records that the phase is in effect, with the Machines that existed at this time. [Rotator.Run] executes
// it with rotationState.recordInEffect.
type recordPhase struct{ Machines string }

func (a recordPhase) String() string { return "The control plane has followed" }

// restart replaces the Machines of a MachineDeployment.
type restart struct{ Deployment string }

func (a restart) String() string {
	return "MachineDeployment " + a.Deployment + " replaces its Machines"
}

// replace deletes a Machine of a MachinePool, so that its infrastructure provider replaces it. [decide] plans it.
type replace struct{ Machine, Pool string }

func (a replace) String() string {
	return fmt.Sprintf("Machine %s of MachinePool %s is replaced", a.Machine, a.Pool)
}

// step is the next step: actions, or a wait. If both are empty, the rotation is done.
type step struct {
	Actions []action
	Wait    string
}

// decide returns the next step of a rotation. [Rotator.Run] calls it repeatedly, and the plan shows its error. The
// error lists problems that a user must solve first.
func decide(s snapshot) (step, error) {
	state, err := read(s.Secret)
	if err != nil {
		return step{}, err
	}
	if problems := s.problems(state); len(problems) > 0 {
		again := "run the command again then"
		if state.Phase == phaseNone {
			again = "nothing was changed"
		}
		return step{}, fault.New(fault.Invalid, reasonNotNow, "the rotation of the authority of cluster %q cannot %s: %s; %s", s.Cluster.Name,
			map[bool]string{true: "start", false: "continue"}[state.Phase == phaseNone], strings.Join(problems, "; "), again)
	}
	if state.Phase == phaseNone {
		return step{Actions: []action{install{phaseNone}}}, nil
	}
	if wait := s.controlPlaneLag(); wait != "" {
		return step{Wait: wait}, nil
	}
	if state.Phase == phaseNewOnly {
		if wait := s.pendingRollout(); wait != "" {
			return step{Wait: wait}, nil
		}
		return step{Actions: []action{install{phaseNewOnly}}}, nil
	}
	if !state.InEffect {
		for i := range s.Pools { // the machine of a pool may be bootstrapped before its Machine exists
			if wait := poolBehind(&s.Pools[i]); wait != "" {
				return step{Wait: wait}, nil
			}
		}
		return step{Actions: []action{recordPhase{Machines: strings.Join(s.machineNames(), ",")}}}, nil
	}
	return s.replace(state), nil
}

// replace returns the step that replaces the Machines that existed when the phase came into effect, or installs the
// next phase.
func (s snapshot) replace(state rotationState) step {
	left := s.outdated(state)
	var out step
	for i := range s.Deployments {
		if d := &s.Deployments[i]; s.needsRestart(d, left) {
			out.Actions = append(out.Actions, restart{d.Name})
		}
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		at := slices.IndexFunc(left, func(m *clusterv1.Machine) bool { return m.Labels[clusterv1.MachinePoolNameLabel] == p.Name })
		if at >= 0 && poolBehind(p) == "" && !s.poolReplaces(p) {
			out.Actions = append(out.Actions, replace{Machine: left[at].Name, Pool: p.Name})
		}
	}
	if len(out.Actions) > 0 {
		return out
	}
	wait := s.pendingRollout()
	if len(left) > 0 {
		wait = strings.TrimSuffix(fmt.Sprintf("Waiting for %d of %d Machines to be replaced: %s", len(left), len(state.Outdated), wait), ": ")
	}
	if wait != "" {
		return step{Wait: wait}
	}
	return step{Actions: []action{install{state.Phase}}}
}

// outdated returns the remaining Machines of state.Outdated, sorted by name.
func (s snapshot) outdated(state rotationState) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for i := range s.Machines {
		if slices.Contains(state.Outdated, s.Machines[i].Name) {
			out = append(out, &s.Machines[i])
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (s snapshot) machineNames() []string {
	var out []string
	for _, m := range s.Machines {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}

// needsRestart reports whether a MachineDeployment would retain some of the Machines, because their MachineSet is up to
// date.
func (s snapshot) needsRestart(d *clusterv1.MachineDeployment, left []*clusterv1.Machine) bool {
	return slices.ContainsFunc(left, func(m *clusterv1.Machine) bool {
		if m.Labels[clusterv1.MachineDeploymentNameLabel] != d.Name || !m.DeletionTimestamp.IsZero() {
			return false
		}
		at := slices.IndexFunc(s.Sets, func(set clusterv1.MachineSet) bool {
			return set.Name == m.Labels[clusterv1.MachineSetNameLabel]
		})
		return at >= 0 && !s.Sets[at].CreationTimestamp.Time.Before(d.Spec.Rollout.After.Time)
	})
}

// poolReplaces reports whether a Machine of the pool is being deleted.
func (s snapshot) poolReplaces(p *clusterv1.MachinePool) bool {
	return slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool {
		return m.Labels[clusterv1.MachinePoolNameLabel] == p.Name && !m.DeletionTimestamp.IsZero()
	})
}

// controlPlaneLag returns the reason why the control plane is not available with the certificates in the Secret; empty
// if it is.
func (s snapshot) controlPlaneLag() string {
	name := "HostedControlPlane " + s.Plane.Name
	available := condition.Set(s.Plane.Status.Conditions).Get(hostedv1.AvailableCondition)
	isAvailable, why := available != nil && available.Status == metav1.ConditionTrue, ""
	if available != nil && !isAvailable && available.Message != "" {
		why = ": " + firstLine(available.Message)
	}
	switch {
	case s.Plane.Status.Authority != secrets.Fingerprint(s.Secret):
		return name + " does not run with the certificates of Secret " + s.Secret.Name + " yet" + why
	case !isAvailable:
		return name + " is not available" + why
	}
	return ""
}

// pendingRollout describes a rollout in progress; empty if all Machines are up to date and available.
func (s snapshot) pendingRollout() string {
	for i := range s.Deployments {
		if text := deploymentBehind(&s.Deployments[i]); text != "" {
			return text
		}
	}
	for i := range s.Pools {
		if text := poolBehind(&s.Pools[i]); text != "" {
			return text
		}
	}
	return ""
}

func deploymentBehind(d *clusterv1.MachineDeployment) string {
	st := d.Status
	return rolloutLag("MachineDeployment "+d.Name, counts{
		observed: st.ObservedGeneration >= d.Generation, desired: ptr.Deref(d.Spec.Replicas, 1), replicas: ptr.Deref(st.Replicas, 0),
		upToDate: ptr.Deref(st.UpToDateReplicas, 0), available: ptr.Deref(st.AvailableReplicas, 0),
		why: condition.Set(st.Conditions).Get(clusterv1.RollingOutCondition),
	})
}

func poolBehind(p *clusterv1.MachinePool) string {
	st := p.Status
	return rolloutLag("MachinePool "+p.Name, counts{
		observed: st.ObservedGeneration >= p.Generation, desired: ptr.Deref(p.Spec.Replicas, 1), replicas: ptr.Deref(st.Replicas, 0),
		upToDate: ptr.Deref(st.UpToDateReplicas, 0), available: ptr.Deref(st.AvailableReplicas, 0),
		why: condition.Set(st.Conditions).Get(clusterv1.RollingOutCondition),
	})
}

// counts are the replica counts of a rollout.
type counts struct {
	observed                               bool
	desired, replicas, upToDate, available int32
	why                                    *metav1.Condition
}

func rolloutLag(name string, c counts) string {
	text := ""
	switch {
	case !c.observed:
		text = "its spec is not observed yet"
	case c.upToDate < c.desired:
		text = fmt.Sprintf("%d of %d Machines are up to date", c.upToDate, c.desired)
	case c.replicas != c.desired:
		text = fmt.Sprintf("it has %d of %d Machines", c.replicas, c.desired)
	case c.available < c.desired:
		text = fmt.Sprintf("%d of %d Machines are available", c.available, c.desired)
	default:
		return ""
	}
	if c.why != nil && c.why.Status == metav1.ConditionTrue && c.why.Message != "" {
		text += " (" + strings.TrimPrefix(firstLine(c.why.Message), "* ") + ")"
	}
	return name + ": " + text
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return first
}
