package machineset

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
)

// count is the number of Machines there are, those that are being deleted and those that the cache does not show yet
// included.
func count(s Snapshot) int { return len(s.Machines) + len(s.Created) }

// wanted is the number of Machines there shall be; nobody has said one yet where it is not known.
func wanted(s Snapshot) (int, bool) {
	if s.Set.Spec.Replicas == nil {
		return 0, false
	}
	return int(*s.Set.Spec.Replicas), true
}

// missing is how many Machines are missing.
func missing(s Snapshot) int {
	want, known := wanted(s)
	if !known || deleting(s) {
		return 0
	}
	return max(0, want-count(s))
}

// waitingForReplicas is said of a set whose number of replicas was never set.
const waitingForReplicas = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"

// scale makes as many Machines as there shall be.
func scale(s Snapshot, p *loop.Plan) {
	want, known := wanted(s)
	have := count(s)
	switch {
	case !known:
		p.WaitFor(clusterv1.MachineSetScalingUpWaitingForReplicasSetReason, waitingForReplicas)
	case have < want:
		scaleUp(s, want, p)
	case have > want:
		scaleDown(s, have-want, p)
	}
	if len(s.Created) > 0 {
		p.WaitFor(waitForCache, "%d new Machines are not in the cache yet", len(s.Created))
		p.RecheckIn(createdRecheck)
	}
}

func scaleUp(s Snapshot, want int, p *loop.Plan) {
	if waits := hindrances(s); len(waits) > 0 {
		p.Wait = append(p.Wait, waits...)
		for _, w := range waits {
			p.RecheckIn(recheckOf(w.Reason))
		}
		return
	}
	have := count(s)
	fresh, err := names(s, want-have)
	if err != nil {
		p.WaitFor(waitForName, "spec.machineNaming.template %s", err)
		return
	}
	for part := range slices.Chunk(fresh, batch) {
		p.Do(Create{Names: strings.Join(part, " "), Why: fmt.Sprintf("scale up from %d to %d", have, want)})
	}
	if len(fresh) < want-have {
		p.RecheckIn(createdRecheck) // all random parts were taken: others next time
	}
}

// recheckOf is when to look again at what hinders; zero: a watch tells.
func recheckOf(reason string) time.Duration {
	switch reason {
	case waitForTemplate:
		return missingRecheck
	case waitForPreflight:
		return preflightRecheck
	}
	return 0
}

// scaleDown deletes the Machines that are missed least. Those that go already count.
func scaleDown(s Snapshot, many int, p *loop.Plan) {
	order := s.Set.Spec.Deletion.Order
	sorted := slices.SortedFunc(slices.Values(s.Machines), func(a, b Member) int { return lessMissed(a, b, order) })
	var going []string
	for _, m := range sorted[:min(many, len(sorted))] {
		if !m.Deleted {
			going = append(going, m.Name)
		}
	}
	slices.Sort(going)
	deleteMachines(p, going, fmt.Sprintf("scale down to %d, %s", *s.Set.Spec.Replicas, orderName(order)))
}

func orderName(order clusterv1.MachineSetDeletionOrder) string {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return "the newest first"
	case clusterv1.OldestMachineSetDeletionOrder:
		return "the oldest first"
	}
	return "in random order"
}

// lessMissed orders Machines for deletion (MS-10):
//
//	going already
//	annotation cluster.x-k8s.io/delete-machine
//	being updated in place
//	unhealthy: without a Node, Node not healthy, or a health check failed
//	the others, by the set's order
//
// Within each by the set's order, then by name. Random is an order by a hash of the UID: no matter how often it is
// asked for, the same Machines go.
func lessMissed(a, b Member, order clusterv1.MachineSetDeletionOrder) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), byOrder(a, b, order), strings.Compare(a.Name, b.Name))
}

func rank(m Member) int {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	set := condition.Set(m.Status.Conditions)
	switch {
	case m.Deleted:
		return 0
	case marked:
		return 1
	case updating:
		return 2
	case !m.Status.NodeRef.IsDefined(), set.IsFalse(clusterv1.MachineNodeHealthyCondition),
		set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition):
		return 3
	}
	return 4
}

func byOrder(a, b Member, order clusterv1.MachineSetDeletionOrder) int {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	case clusterv1.OldestMachineSetDeletionOrder:
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return cmp.Compare(dice(a), dice(b))
}

func dice(m Member) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(m.UID)) // never fails
	return sum.Sum64()
}
