package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// missingRecheck is when a reference to nothing is followed again (CL-06): a
	// kind that is not installed yet cannot be watched.
	missingRecheck = 30 * time.Second
	// bindingRecheck is when to look whether the record of applied resources is gone: it is not watched.
	bindingRecheck = time.Second
	// upToDateGrace is how long a new Machine may have no UpToDate condition (CL-20).
	upToDateGrace = 10 * time.Second
)

// part is one of the two provider objects of a Cluster.
type part string

const (
	infrastructure part = "infrastructure"
	controlPlane   part = "control plane"
)

// link is one of the two references, and what is at its end.
type link struct {
	what part
	ref  clusterv1.ContractVersionedObjectReference
	// object is nil where there is nothing.
	object  *contract.Object
	problem string
	// reached: it was provisioned, or initialized, once; done: it is now.
	reached, done bool
}

func (s Snapshot) infra() link {
	l := link{what: infrastructure, ref: s.Cluster.Spec.InfrastructureRef, problem: s.InfraProblem,
		reached: isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned)}
	if s.Infra != nil {
		l.object, l.done = &s.Infra.Object, s.Infra.Provisioned.Or(false)
	}
	return l
}

func (s Snapshot) control() link {
	l := link{what: controlPlane, ref: s.Cluster.Spec.ControlPlaneRef, problem: s.ControlPlaneProblem,
		reached: isTrue(s.Cluster.Status.Initialization.ControlPlaneInitialized)}
	if s.ControlPlane != nil {
		l.object, l.done = &s.ControlPlane.Object, s.ControlPlane.Initialized.Or(false)
	}
	return l
}

// lost reports whether the object was there and did its work before it went (CL-06).
func (l link) lost() bool {
	return l.ref.IsDefined() && l.object == nil && l.problem == "" && l.reached
}

// Decide says what to do about a Cluster.
//
//	InfraCluster, ControlPlane
//	   kind not installed    wait for a person                                    CL-06
//	   not there             wait; its watch wakes us, and a timer                CL-06
//	   there                 own and label it                                     CL-04
//	   not provisioned       wait
//	   provisioned           take over its endpoint, unless there is one          CL-08, CL-09
//	no ControlPlane          write the kubeconfig                                 CL-11
func Decide(s Snapshot) loop.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p loop.Plan
	decideLink(s, s.infra(), &p)
	decideLink(s, s.control(), &p)
	if e, from := endpoint(s); e.IsValid() {
		p.Do(SetEndpoint{Host: e.Host, Port: e.Port, From: from})
	}
	decideKubeconfig(s, &p)
	decideRecheck(s, &p)
	return p
}

func decideLink(s Snapshot, l link, p *loop.Plan) {
	switch {
	case !l.ref.IsDefined():
	case l.problem != "":
		p.WaitFor("ReferenceUnreadable", "%s", l.problem)
		p.RecheckIn(missingRecheck)
	case l.lost():
		p.WaitFor(clusterv1.ObjectDeletedReason, "%s %s has been deleted after the %s was in use: restore it, or delete the Cluster",
			l.ref.Kind, l.ref.Name, l.what)
	case l.object == nil:
		p.WaitFor(clusterv1.ObjectDoesNotExistReason, "%s %s does not exist yet", l.ref.Kind, l.ref.Name)
		p.RecheckIn(missingRecheck)
	case !owned(s.Cluster, *l.object):
		p.Do(Own{What: l.what, Kind: l.ref.Kind, Name: l.ref.Name})
	case !l.done:
		p.WaitFor("WaitingForProvider", "%s %s is not ready as %s yet", l.ref.Kind, l.ref.Name, l.what)
	}
}

// owned reports whether the object has owner and label as CL-04 says.
func owned(c *clusterv1.Cluster, o contract.Object) bool {
	after := o.DeepCopy()
	own(c, after)
	have, want := ownerOf(c, o.GetOwnerReferences()), ownerOf(c, after.GetOwnerReferences())
	return have != nil && *have.Controller == *want.Controller && have.APIVersion == want.APIVersion &&
		o.GetLabels()[clusterv1.ClusterNameLabel] == c.Name
}

func ownerOf(c *clusterv1.Cluster, refs []metav1.OwnerReference) *metav1.OwnerReference {
	for _, ref := range refs {
		if ref.UID == c.UID {
			if ref.Controller == nil {
				no := false
				ref.Controller = &no
			}
			return &ref
		}
	}
	return nil
}

// own makes the Cluster an owner of one of its provider objects: its controller
// where the Cluster has a topology, since then it also made it (CL-04).
func own(c *clusterv1.Cluster, o metav1.Object) {
	managed := c.Spec.Topology.IsDefined()
	ref := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: c.Name, UID: c.UID, Controller: &managed,
	}
	var refs []metav1.OwnerReference
	for _, r := range o.GetOwnerReferences() {
		if r.UID != c.UID && (r.Kind != ref.Kind || r.Name != ref.Name) {
			refs = append(refs, r)
		}
	}
	o.SetOwnerReferences(append(refs, ref))
	labels := map[string]string{}
	for k, v := range o.GetLabels() {
		labels[k] = v
	}
	labels[clusterv1.ClusterNameLabel] = c.Name
	o.SetLabels(labels)
}

// endpoint is the endpoint to set, invalid where there is none to set.
func endpoint(s Snapshot) (contract.Endpoint, string) {
	if s.Cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return contract.Endpoint{}, ""
	}
	if s.Infra != nil && s.Infra.Provisioned.Or(false) {
		if e := s.Infra.ControlPlaneEndpoint.Or(contract.Endpoint{}); e.IsValid() {
			return e, s.Infra.GetKind()
		}
	}
	if s.ControlPlane != nil && s.ControlPlane.Initialized.Or(false) {
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
		p.WaitFor("WaitingForCertificateAuthority", "Secret %s-ca does not exist yet; the kubeconfig is made from it", s.Cluster.Name)
		p.RecheckIn(missingRecheck)
		return
	}
	p.Do(CreateKubeconfig{Name: s.Cluster.Name + "-kubeconfig"})
}

// decideRecheck asks to be woken when the passing of time changes a condition.
func decideRecheck(s Snapshot, p *loop.Plan) {
	for i := range s.Machines {
		m := &s.Machines[i]
		if young(s, m) {
			p.RecheckIn(m.CreationTimestamp.Add(upToDateGrace).Sub(s.Now))
		}
	}
	if left, is := unsupported(s); is {
		p.RecheckIn(left)
	}
	p.RecheckIn(s.connectionGraceLeft())
}
