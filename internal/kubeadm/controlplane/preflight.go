package controlplane

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
)

// preflight is the input of the preflight checks. [scale] runs them in each reconciliation in which it would create or
// delete a Machine, and waits while one of them fails. Remediation and recovery have their own conditions and skip
// them.
type preflight struct {
	snapshot
	// up is true if a Machine is to be created.
	up bool
	// leaving is the Machine that is to be deleted. It does not have to be healthy.
	leaving string
}

// checks returns the preflight checks, in the order in which to resolve their findings.
func checks() machines.PreflightChecks[preflight] {
	return machines.PreflightChecks[preflight]{
		{Name: "ReplicasAllowed", Blocker: toCreate(func(c preflight) string {
			return c.Settings.Policy.DeniedReplicas(ptr.Deref(c.ControlPlane.Spec.Replicas, 1))
		})},
		{Name: "InfrastructureTemplate", Blocker: toCreate(func(c preflight) string { return c.Infra.Blocker() })},
		{Name: "TopologyVersion", Blocker: func(c preflight) string { return pendingVersion(c.ControlPlane, c.Cluster) }},
		{Name: "Certificates", Blocker: toCreate(preflight.certificatesMissing)},
		{Name: "NoMachineDeleting", Blocker: preflight.deleting},
		{Name: "ControlPlaneInitialized", Blocker: func(c preflight) string { return c.notInitialized() }},
		{Name: "MachinesHealthy", Blocker: preflight.unhealthy},
		{Name: "EtcdMembers", Blocker: preflight.etcdUnknown},
		{Name: "KubeadmVersionSkew", Blocker: toCreate(preflight.kubeadmSkew)},
	}
}

// toCreate returns a check that only applies if a Machine is to be created.
func toCreate(check func(preflight) string) func(preflight) string {
	return func(c preflight) string {
		if !c.up {
			return ""
		}
		return check(c)
	}
}

// isBlocked adds a wait for each failed preflight check, and reports whether there are any. [scale] calls it.
func isBlocked(c preflight, p *reconciler.Plan) bool {
	blockers := checks().Blockers(c)
	for _, message := range blockers {
		p.WaitFor(waitForPreflight, "%s", message).For(controlPlaneKind, c.ControlPlane.Name).ForTime()
	}
	if len(blockers) > 0 {
		p.RecheckIn(preflightRecheck)
	}
	return len(blockers) > 0
}

func (c preflight) certificatesMissing() string {
	if c.Certificates.Complete() {
		return ""
	}
	return c.Certificates.MissingText(c.Cluster.Name)
}

func (c preflight) deleting() string {
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

// notInitialized returns the reason why the cluster is not initialized although there are Machines, or the empty
// string.
func (s snapshot) notInitialized() string {
	if len(s.Machines) == 0 || s.isInitialized() {
		return ""
	}
	for _, m := range s.Machines {
		if !m.Deleted && s.Clones.NeverJoins(m.Machine) {
			return fmt.Sprintf("Machine %s cannot initialize the cluster, and does not retry: correct the cause in its condition InfrastructureReady, "+
				"then delete the Machine to create another one", m.Name)
		}
	}
	return "Waiting for the first Machine to initialize the cluster"
}

func (c preflight) unhealthy() string {
	var out []string
	for _, m := range c.candidates() {
		if m.Name == c.leaving || !c.isInitialized() {
			continue
		}
		problem := workload.UnhealthyReason(m.Observed, c.managesEtcd(), ignoredConditions(m, c.Workload.Expiry, c.Now)...)
		if problem != "" {
			out = append(out, fmt.Sprintf("Machine %s %s", m.Name, problem))
		}
	}
	return strings.Join(out, "; ")
}

func (c preflight) etcdUnknown() string {
	if !c.managesEtcd() || !c.isInitialized() || len(c.Machines) == 0 {
		return ""
	}
	return c.etcdProblem()
}

// kubeadmSkew returns the reason why kubeadm cannot join a Machine whose version is too new for the others, or the
// empty string.
func (c preflight) kubeadmSkew() string {
	desired := c.ControlPlane.Spec.Version
	want, err := version.Parse(desired)
	if err != nil {
		return ""
	}
	for _, m := range c.Machines {
		have, err := version.Parse(m.Spec.Version)
		if err == nil && (have.Major != want.Major || have.Minor+1 < want.Minor) {
			return fmt.Sprintf("Version %s is more than one minor version newer than version %s of Machine %s, so kubeadm cannot join the new Machine",
				desired, m.Spec.Version, m.Name)
		}
	}
	return ""
}
