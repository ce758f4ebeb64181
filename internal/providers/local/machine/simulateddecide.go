package machine

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// soon is when to look again after a simulated machine left: nothing else wakes the controller.
const soon = time.Millisecond

// decideSimulated makes a plan for a simulated machine. From top to bottom, each row comes before those below it:
//
//	deleting                                   leave
//	control plane not simulated, not running   wait
//	provisioned, and its state lost            join again
//	not everything there that a machine needs  wait                            IM-11
//	annotation says it never boots             wait
//	as many machines as the operator allows    wait
//	delay not over                             boot, wait
//	no Node made yet                           set the provider ID, join       IM-02
//	Node's readiness not what it should be     change it
func decideSimulated(s Snapshot, p *loop.Plan) {
	switch {
	case !s.Object.DeletionTimestamp.IsZero():
		if s.Fault == nil && !s.Simulated.Booted.IsZero() {
			p.Do(Leave{Name: s.hostname()})
			p.RecheckIn(soon)
		}
	case s.Fault != nil:
		p.WaitFor(s.Fault.Reason, "%s", s.Fault.Message)
	case s.Simulated.Joined:
		decideID(s, p)
		decideReadiness(s, p)
	case s.provisioned():
		p.Do(Join{Name: s.hostname(), Why: "the state of the simulated cluster was lost"})
	case s.Policy.DeniedSimulated() != "":
		p.WaitFor(reasonDenied, "%s", s.Policy.DeniedSimulated())
	case missing(s, p):
	case s.neverBoots():
		p.WaitFor("NeverBoots", "the annotation %s keeps the machine from starting", infrav1.NeverBootsAnnotation)
	default:
		decideBoot(s, p)
	}
}

// missing reports whether something is not there yet that the machine needs (IM-11).
func missing(s Snapshot, p *loop.Plan) bool {
	switch {
	case s.Machine == nil && s.Pool == nil:
		p.WaitFor(reasonOwner, "waiting for a Machine or a MachinePool to own this object")
	case s.Cluster == nil || !isTrue(s.Cluster.Status.Initialization.InfrastructureProvisioned):
		p.WaitFor(reasonInfrastructure, "waiting for the cluster's infrastructure (LocalCluster) to be provisioned")
	case s.secret() == "":
		p.WaitFor(reasonBootstrapData, "%s", s.waitingForData())
	default:
		return false
	}
	return true
}

func decideBoot(s Snapshot, p *loop.Plan) {
	if s.Room != nil {
		if why := s.Policy.Maxima.SimulatedNodes.Exceeded(simulatedMaximum, s.Object.Namespace, s.Room.Own, s.Room.All); why != "" {
			p.WaitFor(reasonDenied, "%s", why)
			p.RecheckIn(roomAgain)
			return
		}
	}
	left := s.startup()
	if !s.Simulated.Booted.IsZero() {
		left = s.Simulated.Booted.Add(left).Sub(s.Now)
	}
	decideID(s, p)
	if left > 0 {
		if s.Simulated.Booted.IsZero() {
			p.Do(Boot{Name: s.hostname(), Delay: left})
		}
		p.WaitFor("Booting", "the simulated machine is starting, which takes %s", s.startup())
		p.RecheckIn(left)
		return
	}
	p.Do(Join{Name: s.hostname(), Why: "the machine has started"})
	decideReadinessAt(s, p, s.Now)
}

func decideID(s Snapshot, p *loop.Plan) {
	if s.Object.Spec.ProviderID == "" {
		p.Do(SetProviderID{ID: backend.ProviderID(s.Name)})
	}
}

// decideReadiness makes the Node not ready when an annotation says so, and ready again without it.
func decideReadiness(s Snapshot, p *loop.Plan) {
	bad := decideReadinessAt(s, p, s.Simulated.Since)
	if bad != s.Simulated.NotReady {
		p.Do(SetReady{Name: s.hostname(), Ready: !bad})
	}
}

// decideReadinessAt reports whether a Node that is there since then is to be not ready, and looks again when it is.
func decideReadinessAt(s Snapshot, p *loop.Plan, since time.Time) bool {
	after, ok := s.notReadyAfter()
	if !ok {
		return false
	}
	left := since.Add(after).Sub(s.Now)
	p.RecheckIn(max(left, soon))
	if left <= 0 && s.Simulated.NotReady {
		p.Recheck = 0
	}
	return left <= 0
}

// Boot begins to start a simulated machine.
type Boot struct {
	Name  string
	Delay time.Duration
}

func (a Boot) String() string {
	return fmt.Sprintf("start simulated machine %s, whose Node appears in %s", a.Name, a.Delay)
}

// Join makes the Node of a simulated machine.
type Join struct{ Name, Why string }

func (a Join) String() string { return fmt.Sprintf("make Node %s: %s", a.Name, a.Why) }

// SetReady makes the Node of a simulated machine ready or not.
type SetReady struct {
	Name  string
	Ready bool
}

func (a SetReady) String() string {
	if a.Ready {
		return fmt.Sprintf("make Node %s ready: no annotation says otherwise any more", a.Name)
	}
	return fmt.Sprintf("make Node %s not ready: an annotation says so", a.Name)
}

// Leave ends a simulated machine.
type Leave struct{ Name string }

func (a Leave) String() string {
	return fmt.Sprintf("end simulated machine %s: the LocalMachine is being deleted", a.Name)
}

// simulatedConditions of a LocalMachine that is simulated (IM-06).
func simulatedConditions() condition.Table[Facts] {
	return condition.Table[Facts]{
		{Type: infrav1.NodeSimulatedCondition, Of: nodeSimulated},
		{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Of: deleting},
		condition.Ready[Facts](infrav1.NodeSimulatedCondition),
	}
}

func nodeSimulated(f Facts) condition.Verdict {
	why := fault.As(f.Outcome.Err)
	switch {
	case why != nil:
		return condition.False(why.Reason, why.Message)
	case f.joined(f.Outcome):
		return condition.True("Joined")
	case f.Fault != nil && f.provisioned():
		return condition.Unknown(f.Fault.Reason, f.Fault.Message)
	case len(f.Plan.Wait) > 0:
		return condition.False(f.Plan.Wait[0].Reason, f.Plan.Wait[0].Message)
	}
	return condition.False("NotJoined", "")
}

// joined reports whether the Node was made, in this pass or before.
func (s Snapshot) joined(out loop.Outcome) bool {
	for _, a := range out.Done {
		if _, ok := a.(Join); ok {
			return true
		}
	}
	return s.Simulated.Joined
}

// identified reports whether the provider ID is set, in this pass or before.
func (s Snapshot) identified(out loop.Outcome) bool {
	for _, a := range out.Done {
		if _, ok := a.(SetProviderID); ok {
			return true
		}
	}
	return s.Object.Spec.ProviderID != ""
}

// reportSimulated makes the status of a simulated machine. One that leaves does so at once, so there is
// nothing to say about it but that it failed; one whose control plane is not running yet after a restart stays what it
// was.
func reportSimulated(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	if out.Err == nil && (!s.Object.DeletionTimestamp.IsZero() || s.Fault != nil && s.provisioned()) {
		return loop.Report{}
	}
	old := s.Object.Status
	status := infrav1.LocalMachineStatus{
		Conditions:     simulatedConditions().Evaluate(Facts{s, p, out}, loop.MomentOf(s.Object, s.Now)),
		Initialization: old.Initialization, Addresses: old.Addresses, NodeVersion: old.NodeVersion,
		FailureDomain: s.failureDomain(),
	}
	if s.joined(out) && s.identified(out) { // IM-02, IM-04, IM-05
		yes := true
		status.Initialization.Provisioned = &yes
		status.Addresses = clusterv1.MachineAddresses{
			{Type: clusterv1.MachineHostName, Address: s.hostname()},
			{Type: clusterv1.MachineInternalIP, Address: backend.SimulatedAddress(s.Name).String()},
		}
		status.NodeVersion = s.version()
	}
	return loop.Report{Status: status}
}
