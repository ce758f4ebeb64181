package bootstrap

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditionInput is the input of the conditions: the snapshot, the plan and its outcome.
type conditionInput struct {
	snapshot
	plan reconciler.Plan
	out  reconciler.Outcome
}

// conditions returns all conditions of a KubeadmConfig except Paused, which the reconciler adds.
func conditions() condition.Table[conditionInput] {
	return condition.Table[conditionInput]{
		{Type: bootstrapv1.KubeadmConfigCertificatesAvailableCondition, Compute: conditionInput.certificates},
		{Type: bootstrapv1.KubeadmConfigDataSecretAvailableCondition, Compute: conditionInput.data},
		{Type: bootstrapv1.KubeadmConfigReadyCondition, Summarize: conditionInput.ready},
	}
}

// report returns the status after a reconciliation.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	v := conditionInput{snapshot: s, plan: p, out: out}
	status := bootstrapv1.KubeadmConfigStatus{
		DataSecretName:     v.reportedName(),
		ObservedGeneration: s.Config.Generation,
		Conditions:         conditions().Evaluate(v, reconciler.EvaluateOptionsFor(s.Config, s.Now)),
	}
	if status.DataSecretName != "" {
		made := true
		status.Initialization.DataSecretCreated = &made
	}
	legacy := condition.Project(v.legacy(), condition.Set(status.Conditions), s.Config.GetV1Beta1Conditions())
	status.Deprecated = &bootstrapv1.KubeadmConfigDeprecatedStatus{
		V1Beta1: &bootstrapv1.KubeadmConfigV1Beta1DeprecatedStatus{Conditions: legacy},
	}
	report := reconciler.Report{Status: status, Events: reconciler.UserActionEvents(p, s.Config.Status.Conditions, status.Conditions)}
	if v.wrote() && (!s.hasData() || s.isNeeded()) {
		report.Events = append(report.Events, reconciler.Normal("DataSecretCreated", "Bootstrap data is in Secret %s", s.Config.Name))
	}
	report.Events = append(report.Events, v.tokenEvents()...)
	return report
}

// tokenEvents returns events for tokens that were unexpectedly missing in the workload cluster: a token in existing
// bootstrap data, or one that another client set in the spec.
func (v conditionInput) tokenEvents() []reconciler.Event {
	var out []reconciler.Event
	for _, a := range v.out.Done {
		switch a := a.(type) {
		case createToken:
			if v.hasData() && !v.isNeeded() || v.TokenSetByUser {
				out = append(out, reconciler.Normal("BootstrapTokenCreated", "Cluster %s had no bootstrap token %s, so it was created: the machine joins with it", v.Cluster.Name, a.ID))
			}
		case chooseToken:
			if a.Why == reasonTokenMissing {
				out = append(out, reconciler.Normal("BootstrapTokenReplaced", "Cluster %s had no bootstrap token %s any more: machines join with a new one", v.Cluster.Name, tokenID(v.token())))
			}
		}
	}
	return out
}

// wrote reports whether this reconciliation wrote the data.
func (v conditionInput) wrote() bool {
	return slices.Contains(v.out.Done, reconciler.Action(writeData{Name: v.Config.Name}))
}

// reportedName returns the name of the data Secret once it exists.
func (v conditionInput) reportedName() string {
	if v.hasData() || !v.wrote() {
		return v.dataSecretName()
	}
	return v.Config.Name
}

// lacksData reports whether required data was deleted and not recreated in this reconciliation.
func (v conditionInput) lacksData() bool { return v.Owner != nil && v.isNeeded() && !v.wrote() }

func (v conditionInput) certificates() condition.Result {
	switch {
	case v.reportedName() != "" && !v.lacksData():
		return condition.True(bootstrapv1.KubeadmConfigCertificatesAvailableReason)
	case v.RenderInput == nil:
		return condition.Absent()
	}
	if wait := v.wait(waitCertificates); wait != nil {
		return condition.False(bootstrapv1.KubeadmConfigCertificatesAvailableInternalErrorReason, wait.Message)
	}
	if failed, ok := v.out.Failed.(createAuthority); ok {
		return condition.False(bootstrapv1.KubeadmConfigCertificatesAvailableInternalErrorReason,
			"Secret "+failed.Purpose.SecretName(failed.Cluster)+" could not be created; retrying")
	}
	return condition.True(bootstrapv1.KubeadmConfigCertificatesAvailableReason)
}

func (v conditionInput) data() condition.Result {
	message := ""
	switch {
	case v.out.Err != nil:
		what, _, _ := strings.Cut(v.out.Failed.String(), ": ")
		message = "An attempt to " + what + " did not succeed; trying again"
	case len(v.plan.Waits) > 0:
		message = v.plan.Waits[0].Message
	}
	switch {
	case v.lacksData() && message == "":
		message = "Secret " + v.dataSecretName() + " does not exist any more"
	case v.lacksData():
		message = "Secret " + v.dataSecretName() + " does not exist any more: " + message
	case v.Deleted && v.Owner.Joined && message == "":
		return condition.TrueBecause(bootstrapv1.KubeadmConfigDataSecretAvailableReason, "Secret "+v.dataSecretName()+" does not exist any more; the Machine has joined and does not need it")
	case v.reportedName() != "":
		return condition.TrueBecause(bootstrapv1.KubeadmConfigDataSecretAvailableReason, message)
	}
	if message == "" {
		message = "Bootstrap data is being made"
	}
	return condition.False(bootstrapv1.KubeadmConfigDataSecretNotAvailableReason, message)
}

func (v conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{
		Info: bootstrapv1.KubeadmConfigReadyReason, Issue: bootstrapv1.KubeadmConfigNotReadyReason,
		Unknown: bootstrapv1.KubeadmConfigReadyUnknownReason,
	},
		condition.Part{Type: bootstrapv1.KubeadmConfigCertificatesAvailableCondition, Optional: true},
		condition.Part{Type: bootstrapv1.KubeadmConfigDataSecretAvailableCondition},
	)
}

func (v conditionInput) wait(reason string) *reconciler.Wait {
	for i := range v.plan.Waits {
		if v.plan.Waits[i].Reason == reason {
			return &v.plan.Waits[i]
		}
	}
	return nil
}

// legacy returns the v1beta1 conditions. Their reasons are more specific, because they name the object that is waited
// for.
func (v conditionInput) legacy() []condition.V1Beta1Row {
	reason := bootstrapv1.KubeadmConfigDataSecretNotAvailableReason
	switch {
	case v.out.Err != nil:
		reason = waitCorrection
	case len(v.plan.Waits) > 0:
		reason = v.plan.Waits[0].Reason
	}
	severity := clusterv1.ConditionSeverityInfo
	if reason == waitCorrection {
		severity = clusterv1.ConditionSeverityWarning
	}
	always := func(s string) func(string) string { return func(string) string { return s } }
	weighs := func(s clusterv1.ConditionSeverity) func(string) clusterv1.ConditionSeverity {
		return func(string) clusterv1.ConditionSeverity { return s }
	}
	return []condition.V1Beta1Row{
		{Type: clusterv1.ReadyV1Beta1Condition, From: bootstrapv1.KubeadmConfigReadyCondition, Reason: always(reason), Severity: weighs(severity)},
		{Type: bootstrapv1.CertificatesAvailableV1Beta1Condition, From: bootstrapv1.KubeadmConfigCertificatesAvailableCondition,
			Reason: always(bootstrapv1.CertificatesCorruptedV1Beta1Reason), Severity: weighs(clusterv1.ConditionSeverityError)},
		{Type: bootstrapv1.DataSecretAvailableV1Beta1Condition, From: bootstrapv1.KubeadmConfigDataSecretAvailableCondition,
			Reason: always(reason), Severity: weighs(severity)},
	}
}
