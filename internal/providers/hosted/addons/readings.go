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

// Reading is how the add-ons of a workload cluster fared when they were last read.
type Reading struct {
	State
	// At is when they were read; zero: not since this program began.
	At time.Time
	// Err says why they could not be read then; empty: they could.
	Err string
	// Outdated: they changed since.
	Outdated bool
}

// Watched limits the watches on workload clusters to the objects that tell how add-ons fare: a workload cluster may have
// any number of others of their kinds.
func Watched() map[client.Object]cache.ByObject {
	named := func(name string) cache.ByObject {
		return cache.ByObject{
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}}, Field: fields.OneTermEqualSelector("metadata.name", name),
		}
	}
	return map[client.Object]cache.ByObject{&appsv1.DaemonSet{}: named(KubeProxy), &appsv1.Deployment{}: named(CoreDNS)}
}

// Matters reports whether an add-on may fare in another way after a change.
func Matters(before, after client.Object) bool {
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

// Readings remembers how add-ons fared, by control plane.
type Readings struct {
	mu sync.Mutex
	of map[string]readingState
}

// readingState is the last answer, and how many changes were known of when it was given and are now.
type readingState struct {
	last            Reading
	answered, known int
}

// Get returns the last reading of a control plane.
func (m *Readings) Get(name string) Reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.of[name]
	have.last.Outdated = have.answered != have.known
	return have.last
}

// Begin returns what to set the answer with: a change while the add-ons are read may be missing in it.
func (m *Readings) Begin(name string) (changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]readingState{}
	}
	have := m.of[name]
	m.of[name] = have
	return have.known
}

// Set remembers a reading that was begun.
func (m *Readings) Set(name string, a Reading, changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.of[name]
	have.last, have.answered = a, changes
	m.of[name] = have
}

// Changed notes a change; what was never read is not out of date.
func (m *Readings) Changed(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.of[name]; ok {
		have.known++
		m.of[name] = have
	}
}

// Forget drops the reading of a control plane that is gone.
func (m *Readings) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, name)
}
