package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// StatusChange is a change of a status that was not written yet.
type StatusChange struct {
	// Have is the status as it is, with the fields of other writers too; Want is what this writer says of it.
	// Both are as encoding/json decodes them.
	Have, Want map[string]any

	writer *Writer
	live   client.Object
}

// StatusChange returns what [Writer.ApplyStatus] would write, nil where that is nothing.
func (w *Writer) StatusChange(live client.Object, status any) (*StatusChange, error) {
	fields, err := jsonValue(map[string]any{"status": status})
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidStatus", "status of %T cannot be encoded", live).From(err)
	}
	have, err := statusValue(live)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", live).From(err)
	}
	if w.matches(live, have, side{fields: fields, subresource: "status"}) {
		w.applied(w.KindOf(live), false)
		return nil, nil
	}
	c := &StatusChange{writer: w, live: live}
	c.Have, _ = have["status"].(map[string]any)
	c.Want, _ = fields["status"].(map[string]any)
	return c, nil
}

// Write writes the change.
func (c *StatusChange) Write(ctx context.Context) error {
	w := c.writer
	body, err := w.identify(c.live)
	if err != nil {
		return err
	}
	body.Object["status"] = integers(c.Want)
	w.applied(body.GetKind(), true)
	err = w.apply(ctx, change{
		live: c.live, have: map[string]any{"status": c.Have}, want: map[string]any{"status": c.Want}, subresource: "status",
		send: func() error {
			return w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(body), client.FieldOwner(w.owner), client.ForceOwnership)
		},
	})
	if err != nil {
		return fmt.Errorf("applying status of %s %s: %w", body.GetKind(), client.ObjectKeyFromObject(c.live), err)
	}
	w.writes.record(body)
	return nil
}

// side is what a writer says of an object, or of its subresource.
type side struct {
	fields      map[string]any
	subresource string
}

// matches reports whether applying want would change nothing.
func (w *Writer) matches(live client.Object, have map[string]any, want side) bool {
	fields := owned(live.GetManagedFields(), w.owner, want.subresource)
	return fields != nil && contains(have, want.fields) && !ownsMore(fields, have, want.fields)
}
