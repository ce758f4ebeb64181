package cluster

import (
	"time"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// missingRecheck is when to look again for what is not watched.
	missingRecheck = 30 * time.Second
	// bindingRecheck is when to look whether the record of applied resources is gone: it is not watched.
	bindingRecheck = time.Second
	// upToDateGrace is how long a new Machine may have no UpToDate condition.
	upToDateGrace = 10 * time.Second
)

// Decide says what to do about a Cluster: about its provider objects what package link says, and then
//
//	infrastructure provisioned, or control plane initialized   take over its endpoint, unless there is one
//	no control plane object                                    create the kubeconfig
func Decide(s Snapshot) loop.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p loop.Plan
	s.infra().Decide(&p)
	s.control().Decide(&p)
	if e, from := endpoint(s); e.IsValid() {
		p.Do(SetEndpoint{Host: e.Host, Port: e.Port, From: from})
	}
	decideKubeconfig(s, &p)
	decideRecheck(s, &p)
	return p
}

// endpoint is the endpoint to set, invalid where there is none to set.
func endpoint(s Snapshot) (contract.Endpoint, string) {
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

// makesKubeconfig reports whether the kubeconfig is this controller's to write.
func makesKubeconfig(s Snapshot) bool {
	return !deleting(s) && !s.Cluster.Spec.ControlPlaneRef.IsDefined() && s.Cluster.Spec.ControlPlaneEndpoint.IsValid()
}

func decideKubeconfig(s Snapshot, p *loop.Plan) {
	if !makesKubeconfig(s) || s.Access.Kubeconfig {
		return
	}
	if s.Access.CA == nil {
		p.WaitFor("WaitingForCertificateAuthority", "Waiting for Secret %s-ca to be created: the kubeconfig is issued by it", s.Cluster.Name).
			For("Secret", s.Cluster.Name+"-ca").ForTime()
		p.RecheckIn(missingRecheck)
		return
	}
	p.Do(CreateKubeconfig{Name: s.Cluster.Name + "-kubeconfig"})
}

// decideRecheck asks to be woken when the passing of time changes a condition.
func decideRecheck(s Snapshot, p *loop.Plan) {
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
