package controlplane

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
)

// preflightInput is the input of the preflight checks.
type preflightInput struct {
	snapshot
	// up is true if a Machine is to be created. complete is true if all certificates exist.
	up, complete bool
	// leaving is the Machine that is to be deleted. It does not have to be healthy.
	leaving string
}

func scaleUpInput(s snapshot, c changeInput) preflightInput {
	return preflightInput{snapshot: s, up: true, complete: c.complete}
}

// checks returns the preflight checks, in the order in which to resolve their findings.
func checks() machines.PreflightChecks[preflightInput] {
	return machines.PreflightChecks[preflightInput]{
		{Name: "ReplicasAllowed", Blocker: preflightInput.denied},
		{Name: "InfrastructureTemplate", Blocker: preflightInput.template},
		{Name: "TopologyVersion", Blocker: func(c preflightInput) string { return pendingVersion(c.ControlPlane, c.Cluster) }},
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
		p.WaitFor(waitForPreflight, "%s", message).For(controlPlaneKind, s.ControlPlane.Name).ForTime()
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
	return c.Settings.Policy.DeniedReplicas(ptr.Deref(c.ControlPlane.Spec.Replicas, 1))
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
	var leaving machines.OwnedMachines
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
		if problem := workload.UnhealthyReason(c.machineWithConditions(m), c.managesEtcd(), overlooked...); problem != "" {
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
	return kubeadmSkew(c.ControlPlane.Spec.Version, c.Machines.Machines())
}

// kubeadmSkew returns the reason why kubeadm cannot join a Machine whose version is too new for the others, or the
// empty string.
func kubeadmSkew(desired string, all []*clusterv1.Machine) string {
	want, err := version.Parse(desired)
	if err != nil {
		return ""
	}
	for _, m := range all {
		have, err := version.Parse(m.Spec.Version)
		if err == nil && (have.Major != want.Major || have.Minor+1 < want.Minor) {
			return fmt.Sprintf("Version %s is more than one minor version newer than %s of Machine %s: kubeadm does not join it", desired, m.Spec.Version, m.Name)
		}
	}
	return ""
}
