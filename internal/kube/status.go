package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// StatusChange is a change of a status that has not been written yet. The driver (package reconciler) computes it after
// each reconciliation, and defers the write if the change is not urgent.
type StatusChange struct {
	// Have is the live status, including the fields of other writers; Want has the fields of this writer. Both are in
	// the form of unstructured objects.
	Have, Want map[string]any

	writer *Writer
	live   client.Object
}

// StatusChange returns the change that [Writer.ApplyStatus] would write, or nil if it would change nothing. more are
// conditions in addition to the conditions in the status.
func (w *Writer) StatusChange(live client.Object, status any, more ...metav1.Condition) (*StatusChange, error) {
	fields, err := statusFields(status, more)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidStatus", "status of %T cannot be encoded", live).From(err)
	}
	have, err := statusValue(live)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", live).From(err)
	}
	if w.matches(live, have, appliedFields{fields: fields, subresource: "status"}) {
		w.applied(w.KindOf(live), false)
		return nil, nil
	}
	c := &StatusChange{writer: w, live: live}
	c.Have, _ = have["status"].(map[string]any)
	c.Want, _ = fields["status"].(map[string]any)
	return c, nil
}

// Write writes the change. The driver calls it, at once or later.
func (c *StatusChange) Write(ctx context.Context) error {
	w := c.writer
	body, err := w.identify(c.live)
	if err != nil {
		return err
	}
	body.Object["status"] = c.Want
	w.applied(body.GetKind(), true)
	err = w.apply(ctx, change{
		live: c.live, have: map[string]any{"status": c.Have}, want: map[string]any{"status": c.Want}, subresource: "status",
		body: body,
	})
	if err != nil {
		return fmt.Errorf("applying status of %s %s: %w", body.GetKind(), client.ObjectKeyFromObject(c.live), err)
	}
	return nil
}

// appliedFields holds the fields that a writer sets in an object, or in its subresource.
type appliedFields struct {
	fields      map[string]any
	subresource string
}

// matches reports whether applying want would change nothing.
func (w *Writer) matches(live client.Object, have map[string]any, want appliedFields) bool {
	if !contains(have, want.fields) {
		return false
	}
	fields := owned(live.GetManagedFields(), w.owner, want.subresource)
	return fields != nil && !ownsMore(fields, have, want.fields)
}

// statusFields returns {"status": …} with additional conditions at the end.
func statusFields(status any, more []metav1.Condition) (map[string]any, error) {
	fields, err := jsonValue(map[string]any{"status": status})
	if err != nil || len(more) == 0 {
		return fields, err
	}
	added, err := jsonValue(map[string]any{"conditions": more})
	if err != nil {
		return nil, err
	}
	value, ok := fields["status"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is not an object in JSON", status)
	}
	conditions, _ := value["conditions"].([]any)
	value["conditions"] = append(conditions, added["conditions"].([]any)...)
	return fields, nil
}
