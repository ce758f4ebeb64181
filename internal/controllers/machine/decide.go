package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// missingRecheck is when a reference to nothing is followed again: a kind that is
// not installed yet cannot be watched.
const missingRecheck = 30 * time.Second

// fillingRecheck is when a cache of the workload cluster that was still filling is
// asked again.
const fillingRecheck = 5 * time.Second

// nodeRecheck is when a Node is looked for again while the control plane is not initialized: until then nothing tells of
// Nodes.
const nodeRecheck = 2 * time.Second

// part is one of the two provider objects of a Machine.
type part string

const (
	bootstrapConfig part = "bootstrap config"
	infrastructure  part = "infrastructure"
)

// link is one of the two references, and what is at its end.
type link struct {
	what part
	ref  clusterv1.ContractVersionedObjectReference
	// object is nil where there is nothing.
	object  *contract.Object
	problem string
	// reached: it did its work once; done: its work is done as it is read.
	reached, done bool
}

func (s Snapshot) bootstrap() link {
	l := link{what: bootstrapConfig, ref: s.Machine.Spec.Bootstrap.ConfigRef, problem: s.BootstrapProblem,
		reached: isTrue(s.Machine.Status.Initialization.BootstrapDataSecretCreated)}
	if s.Bootstrap != nil {
		l.object = &s.Bootstrap.Object
		l.done = s.Bootstrap.DataSecretCreated.Or(false) && s.Bootstrap.DataSecretName.Or("") != ""
	}
	return l
}

func (s Snapshot) infra() link {
	l := link{what: infrastructure, ref: s.Machine.Spec.InfrastructureRef, problem: s.InfraProblem,
		reached: isTrue(s.Machine.Status.Initialization.InfrastructureProvisioned)}
	if s.Infra != nil {
		l.object = &s.Infra.Object
		l.done = s.Infra.Provisioned.Or(false) && s.Infra.ProviderID.Or("") != ""
	}
	return l
}

// lost reports whether the object was there and did its work before it went (MA-07).
func (l link) lost() bool {
	return l.ref.IsDefined() && l.object == nil && l.problem == "" && l.reached
}

// gone reports whether nothing is left to delete, or to wait for.
func (l link) gone() bool { return l.object == nil && l.problem == "" }

// Decide says what to do about a Machine.
//
//	                       bootstrap config, infrastructure machine
//	   not there           wait; its watch wakes us, and a timer
//	   there               control and label it, taking over from whoever made it    MA-06
//	   not done            wait
//	   done                take over data secret, provider ID, failure domain        MA-04, MA-05
//	Node found             annotate, label and untaint it, in one patch              MA-10 to MA-15
func Decide(s Snapshot) loop.Plan {
	if deleting(s) {
		return decideDeletion(s)
	}
	var p loop.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Cluster %s does not exist; the Machine goes on when it does", s.Machine.Spec.ClusterName)
		return p
	}
	if !joined(s) {
		p.Do(Join{Cluster: s.Cluster.Name})
		return p
	}
	decideLink(s, s.bootstrap(), &p)
	decideLink(s, s.infra(), &p)
	if takeOver(s) {
		p.Do(TakeOver{})
	}
	if n := s.Node.Item; n != nil && !synced(s, n) {
		p.Do(SyncNode{Node: n.Name})
	}
	decideRecheck(s, &p)
	return p
}

// joined reports whether label and owner are as MA-02 and MA-03 say.
func joined(s Snapshot) bool {
	return s.Machine.Labels[clusterv1.ClusterNameLabel] == s.Cluster.Name && (!standalone(s) || ownership.Owns(s.Cluster, s.Machine))
}

// standalone Machines belong to nobody but the Cluster. One with the label of an
// owner that it does not have was restored before that owner, which will adopt it
// (MA-02).
func standalone(s Snapshot) bool {
	for _, label := range []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel} {
		if _, ok := s.Machine.Labels[label]; ok {
			return false
		}
	}
	return metav1.GetControllerOf(s.Machine) == nil
}

func decideLink(s Snapshot, l link, p *loop.Plan) {
	switch {
	case !l.ref.IsDefined():
	case l.problem != "":
		p.WaitFor("ReferenceUnreadable", "%s", l.problem)
		p.RecheckIn(missingRecheck)
	case l.lost() && l.what == bootstrapConfig: // has done its work; nothing is read from it any more
	case l.lost():
		p.WaitFor(clusterv1.ObjectDeletedReason, "%s %s has been deleted after the Machine was provisioned: delete the Machine",
			l.ref.Kind, l.ref.Name)
	case l.object == nil:
		p.WaitFor(clusterv1.ObjectDoesNotExistReason, "%s %s does not exist yet", l.ref.Kind, l.ref.Name)
		p.RecheckIn(missingRecheck)
	case !owned(s, *l.object):
		p.Do(Own{What: l.what, Kind: l.ref.Kind, Name: l.ref.Name})
	case !l.done:
		p.WaitFor("WaitingForProvider", "%s %s has not finished as the Machine's %s yet", l.ref.Kind, l.ref.Name, l.what)
	}
}

// owned reports whether the Machine is the controller of the object, which
// carries the cluster label (MA-06).
func owned(s Snapshot, o contract.Object) bool {
	owner := metav1.GetControllerOf(o.Unstructured)
	return owner != nil && owner.UID == s.Machine.UID && o.GetLabels()[clusterv1.ClusterNameLabel] == s.Machine.Spec.ClusterName
}

// takeOver reports whether the spec has to follow bootstrap and infrastructure.
func takeOver(s Snapshot) bool {
	after := s.Machine.DeepCopy()
	follow(s, after)
	return after.Spec.ProviderID != s.Machine.Spec.ProviderID || after.Spec.FailureDomain != s.Machine.Spec.FailureDomain ||
		(after.Spec.Bootstrap.DataSecretName == nil) != (s.Machine.Spec.Bootstrap.DataSecretName == nil)
}

// follow makes the spec what bootstrap and infrastructure say (MA-04, MA-05). A
// data secret that is set stays, whoever set it. Where the machine was placed is
// reported in the status: the spec is what the user asks for.
func follow(s Snapshot, m *clusterv1.Machine) {
	if s.bootstrap().done && m.Spec.Bootstrap.DataSecretName == nil {
		name := s.Bootstrap.DataSecretName.Or("")
		m.Spec.Bootstrap.DataSecretName = &name
	}
	if !s.infra().done {
		return
	}
	m.Spec.ProviderID = s.Infra.ProviderID.Or("")
	if domain := s.Infra.SpecFailureDomain.Or(""); domain != "" {
		m.Spec.FailureDomain = domain
	}
}

// decideRecheck asks to be woken when the passing of time changes a condition.
func decideRecheck(s Snapshot, p *loop.Plan) {
	if d := s.Deployment; d != nil && !d.Spec.Rollout.After.IsZero() {
		p.RecheckIn(d.Spec.Rollout.After.Sub(s.Now))
	}
	if s.Node.Down {
		p.RecheckIn(s.connectionGraceLeft())
		if s.Connection.Good() { // its cache is still filling
			p.RecheckIn(fillingRecheck)
		}
	}
	if s.Node.Asked && !initialized(s) && providerID(s) != "" {
		p.RecheckIn(nodeRecheck)
	}
	set := condition.Set(s.Machine.Status.Conditions)
	if ready := set.Get(clusterv1.MachineReadyCondition); ready != nil && ready.Status == metav1.ConditionTrue {
		p.RecheckIn(availableIn(s, *ready))
	}
}

// availableIn is how long a Machine that is ready still has to be so until it is
// available (MA-23).
func availableIn(s Snapshot, ready metav1.Condition) time.Duration {
	if s.Machine.Spec.MinReadySeconds == nil {
		return 0
	}
	need := time.Duration(*s.Machine.Spec.MinReadySeconds) * time.Second
	return max(0, need-s.Now.Sub(ready.LastTransitionTime.Time))
}
