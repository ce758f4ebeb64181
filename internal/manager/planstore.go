package manager

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Limits of one record: list items, and bytes of a text.
const (
	maxItems = 20
	maxText  = 1024
)

// ObjectPlans contains the last plans of one object, as the diagnostics endpoint returns them. The JSON names must
// stay, because `slipway explain` and `slipway ui` may be of another version.
type ObjectPlans struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Plans contains one record for each controller that reconciles the object, sorted by controller name.
	Plans []PlanRecord `json:"plans"`
}

// PlanRecord describes the last reconciliation of an object by one controller.
type PlanRecord struct {
	Controller string `json:"controller"`
	// Time of the reconciliation.
	Time time.Time `json:"time"`
	// Actions are the planned actions in order. The first failed action ends the reconciliation. The list is
	// empty if there was nothing to do or the object is paused.
	Actions []string `json:"actions,omitempty"`
	// Waits are the reasons why the reconciliation did no more.
	Waits []reconciler.Wait `json:"waits,omitempty"`
	// Recheck is the delay until the object is reconciled again without an event.
	Recheck string `json:"recheck,omitempty"`
	// Errors of the reconciliation.
	Errors []string `json:"errors,omitempty"`
	// ErrorsSince is the time of the first of the consecutive reconciliations that failed.
	ErrorsSince time.Time `json:"errorsSince,omitzero"`
}

// storedPlan is a record with what later records need.
type storedPlan struct {
	PlanRecord
	// earlier has the waits before reconciliations that failed without a plan.
	earlier []reconciler.Wait
}

// continueFrom copies the beginning of waits and errors that the previous record has, too. A wait is the same if it has
// the same reason and objects, because its message may contain changing details. Waits continue after reconciliations
// that failed before they had a plan.
func (r *storedPlan) continueFrom(previous storedPlan) {
	before := slices.Concat(previous.Waits, previous.earlier)
	for i := range r.Waits {
		w := &r.Waits[i]
		at := slices.IndexFunc(before, func(old reconciler.Wait) bool { return old.Reason == w.Reason && slices.Equal(old.On, w.On) })
		if at >= 0 {
			w.Since = before[at].Since
		}
	}
	if len(r.Errors) > 0 && len(r.Waits)+len(r.Actions) == 0 {
		r.earlier = before[:min(len(before), maxItems)]
	}
	if haveCommonText(r.Errors, previous.Errors) {
		r.ErrorsSince = previous.ErrorsSince
	}
}

// haveCommonText reports whether two lists have an error in common. Parts that differ between attempts are not
// compared.
func haveCommonText(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool {
		text := reporting.Normalized(x)
		return slices.ContainsFunc(b, func(y string) bool { return reporting.Normalized(y) == text })
	})
}

// object identifies an object of a kind.
type object struct {
	kind schema.GroupKind
	client.ObjectKey
}

// PlanStore holds the last plan of each controller for each object. Package reconciler stores one after each
// reconciliation, and [PlanHandler] reads them. Records are bounded in size, and deleted with their objects. The zero
// value is empty and ready to use.
type PlanStore struct {
	// Now returns the current time. It defaults to time.Now.
	Now func() time.Time

	mu      sync.Mutex
	records map[object][]storedPlan
}

// Store implements reconciler.PlanStore.
func (s *PlanStore) Store(by reconciler.PlanKey, p reconciler.Plan, failed error) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	r := storedPlan{PlanRecord: PlanRecord{Controller: by.Controller, Time: now().UTC().Truncate(time.Second)}}
	for _, a := range p.Actions[:min(len(p.Actions), maxItems)] {
		r.Actions = append(r.Actions, redact.Clip(a.String(), maxText))
	}
	if more := len(p.Actions) - maxItems; more > 0 {
		r.Actions = append(r.Actions, fmt.Sprintf("... (%d more)", more))
	}
	for _, w := range p.Waits[:min(len(p.Waits), maxItems)] {
		w.Message, w.Since = redact.Clip(w.Message, maxText), r.Time
		r.Waits = append(r.Waits, w)
	}
	if p.Recheck > 0 {
		r.Recheck = p.Recheck.String()
	}
	if failed != nil {
		r.Errors, r.ErrorsSince = kube.FailureMessages(failed), r.Time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = map[object][]storedPlan{}
	}
	o := object{by.Kind, by.Key}
	at, known := slices.BinarySearchFunc(s.records[o], by.Controller, func(r storedPlan, name string) int { return strings.Compare(r.Controller, name) })
	if known {
		r.continueFrom(s.records[o][at])
		s.records[o][at] = r
		return
	}
	s.records[o] = slices.Insert(s.records[o], at, r)
}

// Drop implements reconciler.PlanStore.
func (s *PlanStore) Drop(kind schema.GroupKind, key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, object{kind, key})
}

// Get returns the last plans of an object. [PlanHandler] calls it.
func (s *PlanStore) Get(kind schema.GroupKind, key client.ObjectKey) (ObjectPlans, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	records, ok := s.records[object{kind, key}]
	out := ObjectPlans{Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name}
	for _, r := range records {
		out.Plans = append(out.Plans, r.PlanRecord)
	}
	return out, ok
}
