package cluster

import (
	"time"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// missingRecheck is the interval for checking objects that cannot be watched.
	missingRecheck = 30 * time.Second
	// bindingRecheck is the interval for checking whether the ClusterResourceSetBinding is gone, which is not
	// watched.
	bindingRecheck = time.Second
	// upToDateGrace is how long a new Machine may lack an UpToDate condition.
	upToDateGrace = 10 * time.Second
)

// decide computes the plan for a Cluster. Package reconciler calls it in each reconciliation, after observe. It is
// pure: it neither reads nor writes. Besides the actions of package reference for its provider objects:
//
//	infrastructure provisioned, or control plane initialized   copy its endpoint, unless one is set
//	no control plane object                                    create the kubeconfig
func decide(s snapshot) reconciler.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p reconciler.Plan
	s.infra().Decide(&p)
	s.control().Decide(&p)
	if e, from := endpoint(s); e.IsValid() {
		p.Do(setEndpoint{Host: e.Host, Port: e.Port, From: from})
	}
	decideKubeconfig(s, &p)
	decideRecheck(s, &p)
	return p
}

// endpoint returns the endpoint to set, or an invalid one if there is nothing to set.
func endpoint(s snapshot) (contract.Endpoint, string) {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return contract.Endpoint{}, ""
	}
	if s.infra().IsDone() {
		if e := s.Infra.ControlPlaneEndpoint.Or(contract.Endpoint{}); e.IsValid() {
			return e, s.Infra.GetKind()
		}
	}
	if s.control().IsDone() {
		if e := s.ControlPlane.Endpoint.Or(contract.Endpoint{}); e.IsValid() {
			return e, s.ControlPlane.GetKind()
		}
	}
	return contract.Endpoint{}, ""
}

// makesKubeconfig reports whether this controller writes the kubeconfig.
func makesKubeconfig(s snapshot) bool {
	return !deleting(s) && !s.Cluster.Spec.ControlPlaneRef.IsDefined() && s.Cluster.Spec.ControlPlaneEndpoint.IsValid()
}

func decideKubeconfig(s snapshot, p *reconciler.Plan) {
	if !makesKubeconfig(s) || s.Access.Kubeconfig {
		return
	}
	if s.Access.CA == nil {
		p.WaitFor("WaitingForCertificateAuthority", "Waiting for Secret %s-ca to be created: the kubeconfig is issued by it", s.Cluster.Name).
			For("Secret", s.Cluster.Name+"-ca").ForTime()
		p.RecheckIn(missingRecheck)
		return
	}
	p.Do(createKubeconfig{Name: s.Cluster.Name + "-kubeconfig"})
}

// decideRecheck schedules a reconciliation for the time at which a condition changes without an event.
func decideRecheck(s snapshot, p *reconciler.Plan) {
	for i := range s.Machines {
		m := &s.Machines[i]
		if withinGracePeriod(s, m) {
			p.RecheckIn(m.CreationTimestamp.Add(upToDateGrace).Sub(s.Now))
		}
	}
	if left, is := unsupported(s); is {
		p.RecheckIn(left)
	}
	p.RecheckIn(s.connectionGraceLeft())
}
