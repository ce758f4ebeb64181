package extensionconfig

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// report returns the status of an ExtensionConfig. Package reconciler calls it at the end of each reconciliation and
// writes the status. If the object itself is changed, there is no report, because the change enqueues it again.
func report(s snapshot, p reconciler.Plan, _ reconciler.Outcome) reconciler.Report {
	if len(p.Actions) > 0 {
		return reconciler.Report{}
	}
	status := s.status()
	return reconciler.Report{Status: status, Events: events(s, status)}
}

// status returns the status for the known state of the extension.
func (s snapshot) status() runtimev1.ExtensionConfigStatus {
	status := runtimev1.ExtensionConfigStatus{
		Conditions: conditions.Evaluate(s, reconciler.EvaluateOptionsFor(s.Config, s.Now)), Handlers: s.Config.Status.Handlers,
	}
	if s.State.Discovered {
		status.Handlers = hook.StatusHandlers(s.Config.Name, s.State.Handlers)
	}
	status.Deprecated = &runtimev1.ExtensionConfigDeprecatedStatus{V1Beta1: &runtimev1.ExtensionConfigV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy, status.Conditions, s.Config.GetV1Beta1Conditions()),
	}}
	return status
}

// reported reports whether the status of the object is already up to date. [decide] calls it before it removes the
// annotation that requested a discovery.
func (s snapshot) reported() bool {
	want := s.status()
	written := condition.Set(s.Config.Status.Conditions)
	for _, c := range want.Conditions {
		if w := written.Get(c.Type); w == nil || *w != c {
			return false
		}
	}
	return slices.Equal(want.Handlers, s.Config.Status.Handlers)
}

// events returns an event for each condition whose status changed, with the condition's message.
func events(s snapshot, status runtimev1.ExtensionConfigStatus) []reconciler.Event {
	before, after := condition.Set(s.Config.Status.Conditions), condition.Set(status.Conditions)
	var out []reconciler.Event
	if c := after.Get(runtimev1.ExtensionConfigDiscoveredCondition); changed(before, *c) {
		if c.Status == "True" {
			out = append(out, reconciler.Normal(c.Reason, "%d handlers", len(status.Handlers)))
		} else {
			out = append(out, reconciler.Warning(c.Reason, "%s", c.Message))
		}
	}
	if c := after.Get(answeringCondition); c != nil && changed(before, *c) {
		switch {
		case c.Status == "False":
			out = append(out, reconciler.Warning(c.Reason, "%s; %s", s.stopped(), retryText))
		case before.IsFalse(answeringCondition):
			out = append(out, reconciler.Normal("CircuitClosed", "The extension responds again"))
		}
	}
	if c := after.Get(usesDeprecatedHooksCondition); c != nil && c.Status == "True" && changed(before, *c) {
		out = append(out, reconciler.Warning(c.Reason, "%s", c.Message))
	}
	return out
}

// changed reports whether the status of a condition changed.
func changed(before condition.Set, now metav1.Condition) bool {
	old := before.Get(now.Type)
	return old == nil || old.Status != now.Status
}
