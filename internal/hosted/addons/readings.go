package addons

import (
	"reflect"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reading is the last known state of the add-ons of a workload cluster. The HostedControlPlane controller stores one
// for each control plane in [Readings], so that the workload cluster is not read in every reconciliation.
type Reading struct {
	State
	// At is the time of the read, or zero if there was none since the program started.
	At time.Time
	// Err is the message of a failed read. Empty means success.
	Err string
	// Outdated means that the add-ons have changed since.
	Outdated bool
}

// Watched limits the caches of workload clusters to the add-on objects, because a workload cluster can have any number
// of other DaemonSets and Deployments. The manager passes it to its connections to workload clusters, so a cache
// contains no other objects of these kinds.
func Watched() map[client.Object]cache.ByObject {
	named := func(name string) cache.ByObject {
		return cache.ByObject{
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}}, Field: fields.OneTermEqualSelector("metadata.name", name),
		}
	}
	return map[client.Object]cache.ByObject{&appsv1.DaemonSet{}: named(kubeProxy), &appsv1.Deployment{}: named(coreDNS)}
}

// AffectsState reports whether a change of an add-on can change its state. The HostedControlPlane controller watches
// the add-ons with it, so an update without effect enqueues nothing.
func AffectsState(before, after client.Object) bool {
	if before.GetGeneration() != after.GetGeneration() {
		return true
	}
	switch b := before.(type) {
	case *appsv1.DaemonSet:
		return !reflect.DeepEqual(b.Status, after.(*appsv1.DaemonSet).Status)
	case *appsv1.Deployment:
		return !reflect.DeepEqual(b.Status, after.(*appsv1.Deployment).Status)
	}
	return false
}

// Readings stores the last reading of each control plane.
type Readings struct {
	mu     sync.Mutex
	byName map[string]readingState
}

// readingState holds the last reading, the number of changes that it covers, and the number of changes so
// far.
type readingState struct {
	last            Reading
	answered, known int
}

// Get returns the last reading of a control plane. The HostedControlPlane controller calls it in observe.
func (m *Readings) Get(name string) Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.byName[name]
	have.last.Outdated = have.answered != have.known
	return have.last
}

// Begin returns the number of known changes, to be passed to Set, because a change during the read may not be
// visible in its result. The HostedControlPlane controller calls it before [Inspect].
func (m *Readings) Begin(name string) (changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]readingState{}
	}
	have := m.byName[name]
	m.byName[name] = have
	return have.known
}

// Set stores a reading that was started with Begin. The HostedControlPlane controller calls it after [Inspect].
func (m *Readings) Set(name string, a Reading, changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.byName[name]
	have.last, have.answered = a, changes
	m.byName[name] = have
}

// Changed counts a change. It ignores add-ons that were never read. The watch of the controller calls it, before the
// control plane is enqueued.
func (m *Readings) Changed(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.byName[name]; ok {
		have.known++
		m.byName[name] = have
	}
}

// Forget deletes the reading of a deleted control plane. The HostedControlPlane controller calls it when it removes the
// control plane.
func (m *Readings) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}
