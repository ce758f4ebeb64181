package plans

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
)

// What is kept of one plan at most: items of a list, and bytes of a text.
const (
	maxItems = 20
	maxText  = 1024
)

// Plans are the last plans of one object.
type Plans struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Plans are those of each controller that reconciles the object, by its name.
	Plans []Record `json:"plans"`
}

// Record is what a controller made of an object when it reconciled it last.
type Record struct {
	// Controller that made the plan.
	Controller string `json:"controller"`
	// Time of the reconciliation.
	Time time.Time `json:"time"`
	// Actions that were planned, in their order; the first that failed ended the reconciliation. None where there was nothing
	// to do, and where the object is paused.
	Actions []string `json:"actions,omitempty"`
	// Waits are why nothing more was done.
	Waits []loop.Wait `json:"waits,omitempty"`
	// Recheck is when the object is reconciled again without an event.
	Recheck string `json:"recheck,omitempty"`
	// Errors of the reconciliation.
	Errors []string `json:"errors,omitempty"`
}

type object struct {
	kind schema.GroupKind
	client.ObjectKey
}

// Store keeps the last plan that each controller made of each object. The zero value is empty.
type Store struct {
	// Now is the clock; nil: the system's.
	Now func() time.Time

	mu      sync.Mutex
	records map[object][]Record
}

// Keep implements loop.Plans.
func (s *Store) Keep(by loop.PlannedBy, p loop.Plan, failed error) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	r := Record{Controller: by.Controller, Time: now().UTC().Truncate(time.Second)}
	for _, a := range p.Actions[:min(len(p.Actions), maxItems)] {
		r.Actions = append(r.Actions, clip(a.String()))
	}
	if more := len(p.Actions) - maxItems; more > 0 {
		r.Actions = append(r.Actions, fmt.Sprintf("... (%d more)", more))
	}
	for _, w := range p.Wait[:min(len(p.Wait), maxItems)] {
		w.Message = clip(w.Message)
		r.Waits = append(r.Waits, w)
	}
	if p.Recheck > 0 {
		r.Recheck = p.Recheck.String()
	}
	if failed != nil {
		r.Errors = kube.Refusals(failed)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = map[object][]Record{}
	}
	o := object{by.Kind, by.Key}
	at, known := slices.BinarySearchFunc(s.records[o], by.Controller, func(r Record, name string) int { return strings.Compare(r.Controller, name) })
	if known {
		s.records[o][at] = r
		return
	}
	s.records[o] = slices.Insert(s.records[o], at, r)
}

// Drop implements loop.Plans.
func (s *Store) Drop(kind schema.GroupKind, key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, object{kind, key})
}

// Get returns the last plans of an object.
func (s *Store) Get(kind schema.GroupKind, key client.ObjectKey) (Plans, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, ok := s.records[object{kind, key}]
	return Plans{Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name, Plans: slices.Clone(records)}, ok
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + " …"
}
