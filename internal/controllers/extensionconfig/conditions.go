package extensionconfig

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/hook"
)

// Conditions besides Discovered and Paused.
const (
	// answeringCondition is False while an extension, or one of its handlers, is not called because calls failed.
	answeringCondition = "Answering"
	// usesDeprecatedHooksCondition is True if handlers implement deprecated versions of hooks.
	usesDeprecatedHooksCondition = "UsesDeprecatedHooks"

	answeringReason         = "Answering"
	circuitOpenReason       = hook.ReasonCircuitOpen
	deprecatedHooksReason   = "DeprecatedHooks"
	noDeprecatedHooksReason = "NoDeprecatedHooks"
)

// retryText describes the retry of a failed discovery; all extensions use the same backoff (package hook).
const retryText = "retrying in up to 1m"

// conditions is the condition table of an ExtensionConfig, which [report] evaluates after each reconciliation.
// Discovered is defined by Cluster API, the others by Slipway.
var conditions = condition.Table[snapshot]{
	{Type: runtimev1.ExtensionConfigDiscoveredCondition, Compute: snapshot.discovered},
	{Type: answeringCondition, Compute: snapshot.answering},
	{Type: usesDeprecatedHooksCondition, Polarity: condition.Negative, Compute: snapshot.usesDeprecatedHooks},
}

// legacy has the rows of the conditions in status.deprecated.v1beta1. [report] passes them to condition.Project.
var legacy = []condition.V1Beta1Row{{
	Type: runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition, From: runtimev1.ExtensionConfigDiscoveredCondition,
	Reason:   func(string) string { return runtimev1.DiscoveryFailedV1Beta1Reason },
	Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityError },
}}

// discovered reports whether the last discovery succeeded. The message explains a failure, which handlers are used
// in the meantime, and when the discovery is retried. A Secret that cannot be used enqueues the ExtensionConfig
// when it changes.
func (s snapshot) discovered() condition.Result {
	var parts []string
	switch {
	case s.Injection != nil && s.Injection.Problem != "":
		parts = append(parts, s.Injection.Problem)
	case s.State.Problem != nil:
		parts = append(parts, s.State.Problem.Message, retryText)
	default:
		return condition.True(runtimev1.ExtensionConfigDiscoveredReason)
	}
	if s.State.Discovered {
		parts = append(parts, "the handlers of the last discovery stay in use")
	}
	for _, h := range s.State.Unknown[:min(len(s.State.Unknown), listed)] {
		parts = append(parts, h.Unknown())
	}
	return condition.False(runtimev1.ExtensionConfigNotDiscoveredReason, strings.Join(parts, "; "))
}

// listed is the maximum number of handlers in a message.
const listed = 5

// answering reports open circuit breakers: of the extension if it is unreachable, or of handlers that do not
// respond.
func (s snapshot) answering() condition.Result {
	if !s.State.Discovered {
		return condition.Absent()
	}
	if cause := s.stopped(); cause != "" {
		return condition.False(circuitOpenReason, cause+"; "+retryText+
			". Until then handlers with failure policy Fail block the operations that call them, and handlers with failure policy Ignore are skipped")
	}
	return condition.True(answeringReason)
}

// stopped describes which calls are blocked and why. It is empty if none are.
func (s snapshot) stopped() string {
	const stopped = " stopped after several failures in a row"
	if s.State.Circuit.Open {
		return "Calls" + stopped + ": " + s.State.Circuit.Cause.Message
	}
	failing := s.State.Failing
	if len(failing) == 0 {
		return ""
	}
	var each []string
	for _, f := range failing[:min(len(failing), listed)] {
		each = append(each, f.Handler+" ("+f.Circuit.Cause.Message+")")
	}
	if more := len(failing) - len(each); more > 0 {
		each = append(each, fmt.Sprintf("%d more", more))
	}
	return "Calls of " + strings.Join(each, ", ") + stopped
}

func (s snapshot) usesDeprecatedHooks() condition.Result {
	if !s.State.Discovered {
		return condition.Absent()
	}
	if lines := s.deprecations(); len(lines) > 0 {
		return condition.TrueBecause(deprecatedHooksReason, strings.Join(lines, "\n"))
	}
	return condition.False(noDeprecatedHooksReason, "")
}

// deprecations returns a sorted line for each handler that implements a deprecated hook version.
func (s snapshot) deprecations() []string {
	var lines []string
	for _, h := range s.State.Handlers {
		if known, ok := s.Catalog.Hook(h.Hook); ok && known.Deprecation != nil {
			lines = append(lines, fmt.Sprintf("* Handler %s serves %s of %s: %s", h.Name, h.Hook.Hook, h.Hook.APIVersion(), known.Deprecation.Advice()))
		}
	}
	slices.Sort(lines)
	return lines
}
