package controlplane

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// desired returns the desired number of Machines.
func desired(s snapshot) int { return int(ptr.Deref(s.Plane.Spec.Replicas, 1)) }

// scale creates or deletes one Machine. While Machines are outdated, the number of Machines may exceed the desired
// number by the surge of the strategy.
func scale(s snapshot, c change, p *reconciler.Plan) bool {
	have, want := len(s.Machines)+len(s.Created), desired(s)
	outdated := s.outdated()
	why := fmt.Sprintf("scale up from %d to %d", have, want)
	if len(outdated) > 0 {
		want += rolloutSurge(s.Plane)
		why = s.describeReasons(outdated)
	}
	switch {
	case have == 0:
		initialize(s, c, p)
	case have < want:
		scaleUp(s, c, why, p)
	case have > desired(s), len(outdated) > 0:
		scaleDown(s, outdated, p)
	default:
		if waiting := (preflightInput{snapshot: s}).notInitialized(); waiting != "" {
			p.WaitFor(waitForFirst, "%s", waiting).ForAll(machineKind, machines.SummaryInput(s.Machines.Machines()).Names()).ToChange("status.nodeRef")
		}
		return false
	}
	return true
}

// initialize creates the first Machine.
func initialize(s snapshot, c change, p *reconciler.Plan) {
	switch {
	case s.isInitialized() && s.managesEtcd():
		p.WaitFor(waitForMachines, "The control plane was initialized and none of its Machines exists: restore them, or delete the Cluster; another first "+
			"Machine would be another cluster").For(planeKind, s.Plane.Name).UntilUserActs()
	case isBlocked(s, upFacts(s, c), p):
	default:
		create(s, createMachine{Why: "initialize the cluster"}, p)
	}
}

func scaleUp(s snapshot, c change, why string, p *reconciler.Plan) {
	if isBlocked(s, upFacts(s, c), p) || !prepare(s, p) {
		return
	}
	create(s, createMachine{Joins: true, Why: why}, p)
}

// create chooses the name and the failure domain of the new Machine.
func create(s snapshot, a createMachine, p *reconciler.Plan) {
	taken := slices.Concat(machines.SummaryInput(s.Machines.Machines()).Names(), s.Created, s.Taken)
	names, err := newNames(s.Plane, s.Cluster.Name, s.Random, taken)
	if err != nil {
		p.WaitFor(waitForName, "spec.machineNaming.template %s", err).For(planeKind, s.Plane.Name).UntilUserActs()
		return
	}
	if len(names) == 0 {
		p.RecheckIn(machines.PendingRecheck) // all names were taken; the next reconciliation uses other random parts
		return
	}
	a.Name, a.Domain = names[0], domainForNew(s.candidates(), s.Cluster)
	p.Do(a)
}

func scaleDown(s snapshot, outdated []string, p *reconciler.Plan) {
	chosen, ok := nextToDelete(s.candidates(), s.Cluster)
	if !ok {
		return
	}
	facts := preflightInput{snapshot: s, leaving: chosen.Name}
	if isBlocked(s, facts, p) || isWritten(s.Machines.Named(chosen.Name), *p) || s.updates().Begin(chosen, p) {
		return
	}
	if obstacle := s.Etcd.Obstacle(chosen.Name); s.managesEtcd() && s.Etcd.HasMember(chosen.Name) && obstacle != "" {
		p.WaitFor(waitForPreflight, "Machine %s cannot be deleted: %s", chosen.Name, obstacle).For(machineKind, chosen.Name).ForTime()
		p.RecheckIn(preflightRecheck)
		return
	}
	why := fmt.Sprintf("scale down to %d, %s", desired(s), chosen.WhyDeleted())
	if len(outdated) > 0 && chosen.Outdated {
		why = s.describeReasons([]string{chosen.Name}) + s.updates().WhyNot(chosen.Name)
	}
	p.Do(machines.Delete{Names: []string{chosen.Name}, Why: why})
}

// preflightInput is the input of the preflight checks.
type preflightInput struct {
	snapshot
	// up is true if a Machine is to be created. complete is true if all certificates exist.
	up, complete bool
	// leaving is the Machine that is to be deleted. It does not have to be healthy.
	leaving string
}

func upFacts(s snapshot, c change) preflightInput {
	return preflightInput{snapshot: s, up: true, complete: c.complete}
}

// checks returns the preflight checks, in the order in which to resolve their findings.
func checks() machines.PreflightChecks[preflightInput] {
	return machines.PreflightChecks[preflightInput]{
		{Name: "ReplicasAllowed", Blocker: preflightInput.denied},
		{Name: "InfrastructureTemplate", Blocker: preflightInput.template},
		{Name: "TopologyVersion", Blocker: func(c preflightInput) string { return pendingVersion(c.Plane, c.Cluster) }},
		{Name: "Certificates", Blocker: preflightInput.certificatesMissing},
		{Name: "NoMachineDeleting", Blocker: preflightInput.deleting},
		{Name: "ControlPlaneInitialized", Blocker: preflightInput.notInitialized},
		{Name: "MachinesHealthy", Blocker: preflightInput.unhealthy},
		{Name: "EtcdMembers", Blocker: preflightInput.etcdUnknown},
		{Name: "KubeadmVersionSkew", Blocker: preflightInput.kubeadmSkew},
	}
}

// isBlocked adds a wait for each failed preflight check, and reports whether there are any.
func isBlocked(s snapshot, facts preflightInput, p *reconciler.Plan) bool {
	blockers := checks().Blockers(facts)
	for _, message := range blockers {
		p.WaitFor(waitForPreflight, "%s", message).For(planeKind, s.Plane.Name).ForTime()
	}
	if len(blockers) > 0 {
		p.RecheckIn(preflightRecheck)
	}
	return len(blockers) > 0
}

func (c preflightInput) denied() string {
	if !c.up {
		return ""
	}
	return c.Settings.Policy.DeniedReplicas(ptr.Deref(c.Plane.Spec.Replicas, 1))
}

func (c preflightInput) template() string {
	if !c.up {
		return ""
	}
	return c.Infra.Blocker()
}

func (c preflightInput) certificatesMissing() string {
	if !c.up || c.complete {
		return ""
	}
	return c.Certificates.MissingText(c.Cluster.Name)
}

func (c preflightInput) deleting() string {
	var names []string
	var leaving machines.Members
	for _, m := range c.Machines {
		if m.Deleted {
			names, leaving = append(names, m.Name), append(leaving, m)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("Waiting for %s to be deleted%s", machines.NamesText(names), leaving.Held())
}

func (c preflightInput) notInitialized() string {
	if len(c.Machines) == 0 || c.isInitialized() {
		return ""
	}
	for _, m := range c.Machines {
		if !m.Deleted && c.Clones.NeverJoins(m.Machine) {
			return fmt.Sprintf("Machine %s could not initialize the cluster, and does not try again: its condition InfrastructureReady says why. Correct the cause, then delete the Machine to have another one try", m.Name)
		}
	}
	return "Waiting for the first Machine to initialize the cluster"
}

func (c preflightInput) unhealthy() string {
	var out []string
	for _, m := range c.Machines {
		if m.Deleted || m.Name == c.leaving || !c.isInitialized() {
			continue
		}
		overlooked := ignoredConditions(c.rolloutMachine(m.Machine), c.reasons(m.Machine), c.Workload.Expiry, c.Now)
		if problem := workload.HealthUnhealthy(c.judged(m), c.managesEtcd(), overlooked...); problem != "" {
			out = append(out, fmt.Sprintf("Machine %s %s", m.Name, problem))
		}
	}
	return strings.Join(out, "; ")
}

func (c preflightInput) etcdUnknown() string {
	if !c.managesEtcd() || !c.isInitialized() || len(c.Machines) == 0 {
		return ""
	}
	return c.etcdProblem()
}

func (c preflightInput) kubeadmSkew() string {
	if !c.up {
		return ""
	}
	return kubeadmSkew(c.Plane.Spec.Version, c.Machines.Machines())
}

// isRestored reports whether the control plane appears to have been restored without its Machines: it has never
// reported a status, and the kubeconfig of its Cluster is older than the control plane.
func (s snapshot) isRestored() bool {
	secret := s.Secrets[secrets.Admin]
	return len(s.Machines) == 0 && s.Plane.Status.ObservedGeneration == 0 && secret != nil && secret.CreationTimestamp.Before(&s.Plane.CreationTimestamp) &&
		s.secretsOwner().NeedsOwner(secret)
}
