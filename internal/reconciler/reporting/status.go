package reporting

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// StatusWriter writes the status of the objects of one controller. The driver (package reconciler) calls Change and
// then, unless the write is deferred, Write.
type StatusWriter struct {
	Writer *kube.Writer
	// Live reads from the API server instead of the cache.
	Live client.Reader
	// Limits are the limits that the API sets for the status of each kind. If it is nil, they are unknown.
	Limits kube.StatusLimits
	Scheme *runtime.Scheme
}

// Change returns the status change to write, or nil if there is none. Values that the API would reject are omitted and
// listed in rejected. more are conditions in addition to the conditions in the status.
func (w StatusWriter) Change(o client.Object, status any, more []metav1.Condition) (change *kube.StatusChange, rejected, err error) {
	change, err = w.Writer.StatusChange(o, status, more...)
	if err != nil || change == nil || w.Limits == nil {
		return change, nil, err
	}
	kind, err := apiutil.GVKForObject(o, w.Scheme)
	if err != nil {
		return change, nil, nil
	}
	accepted, values := w.Limits.Prune(kind, change.Want)
	if len(values) == 0 {
		return change, nil, nil
	}
	change, err = w.Writer.StatusChange(o, accepted)
	return change, rejectedValues(values), err
}

// shownValues limits how many rejected values a message lists.
const shownValues = 3

// rejectedValues returns the error that lists the values that the API would reject.
func rejectedValues(values []string) error {
	more := ""
	if n := len(values) - shownValues; n > 0 {
		values, more = values[:shownValues], fmt.Sprintf("; and %d more", n)
	}
	return fault.New(fault.Invalid, "ValuesRefused", "The status omits values that the API does not accept: %s%s", strings.Join(values, "; "), more)
}

// Write writes a status change. First it transfers the ownership of status fields from the field managers of the
// reference implementation: all fields, but only those conditions that the controller itself writes, because unrelated
// programs may own the others.
func (w StatusWriter) Write(ctx context.Context, o client.Object, change *kube.StatusChange) error {
	var types []string
	list, _ := change.Want["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			t, _ := c["type"].(string)
			types = append(types, t)
		}
	}
	err := w.Writer.TransferStatusOwnership(ctx, w.Live, o, kube.AllButConditions(types...))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	return change.Write(ctx)
}
