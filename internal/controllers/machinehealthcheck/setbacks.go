package machinehealthcheck

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

const (
	// maxSetbacks limits how often the node startup timeout is doubled (checks.go).
	maxSetbacks = 4
	// setbackMemory is how long setbacks are remembered.
	setbackMemory = 24 * time.Hour
)

// setbacks counts, for each owner of Machines, how often a replacement was requested because the infrastructure of a
// Machine did not become ready in time. Each setback doubles the node startup timeout of the owner's next Machines: if
// a provider lacks capacity, replacements do not help and may lose the position in the provider's queue. The controller
// has one instance. The zero value is ready to use. The counts are lost when the manager restarts.
type setbacks struct {
	mu sync.Mutex
	of map[types.UID]setback
}

type setback struct {
	count int
	last  time.Time
}

// record counts a setback of the Machine's owner, unless the Machine's infrastructure is ready. The action that
// requests the replacement calls it. Machines that were created before the last setback belong to it and are not
// counted, because Machines that were created together fail together. Times are compared by the second, as in
// creationTimestamp.
func (s *setbacks) record(m *clusterv1.Machine, now time.Time) {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil || isProvisioned(m) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, have := range s.of {
		if now.Sub(have.last) > setbackMemory {
			delete(s.of, uid)
		}
	}
	have := s.of[owner.UID]
	if m.CreationTimestamp.Time.Before(have.last.Truncate(time.Second)) {
		return
	}
	if s.of == nil {
		s.of = map[types.UID]setback{}
	}
	s.of[owner.UID] = setback{count: min(have.count+1, maxSetbacks), last: now}
}

// before returns the number of setbacks of the Machine's owner, without the last one if the Machine was created before
// it. If the infrastructure of the Machine became ready after the last setback, it deletes the count: observe calls it
// for ready Machines only for this effect. readMachines (observe.go) calls it.
func (s *setbacks) before(m *clusterv1.Machine) int {
	owner := metav1.GetControllerOfNoCopy(m)
	if owner == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.of[owner.UID]
	ready := condition.Set(m.Status.Conditions).Get(clusterv1.MachineInfrastructureReadyCondition)
	if isProvisioned(m) && ready.LastTransitionTime.After(have.last) {
		delete(s.of, owner.UID)
		return 0
	}
	if m.CreationTimestamp.Time.Before(have.last.Truncate(time.Second)) {
		return max(have.count-1, 0)
	}
	return have.count
}

// isProvisioned reports whether the infrastructure of the Machine is ready.
func isProvisioned(m *clusterv1.Machine) bool {
	return condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineInfrastructureReadyCondition)
}
