package bootstrap

import (
	"slices"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditionInput is the input of the conditions: the snapshot, the plan of [decide] and its outcome.
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

// report computes the status and the events of a KubeadmConfig after its plan was executed; the driver of package
// reconciler writes them. dataSecretName and initialization.dataSecretCreated are the bootstrap contract of Cluster
// API, for which the Machine controller waits.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	v := conditionInput{snapshot: s, plan: p, out: out}
	status := bootstrapv1.KubeadmConfigStatus{
		DataSecretName:     v.reportedName(),
		ObservedGeneration: s.Config.Generation,
		Conditions:         conditions().Evaluate(v, reconciler.EvaluateOptionsFor(s.Config, s.Now)),
	}
	if status.DataSecretName != "" {
		status.Initialization.DataSecretCreated = new(true)
	}
	legacy := condition.Project(v.legacy(), condition.Set(status.Conditions), s.Config.GetV1Beta1Conditions())
	status.Deprecated = &bootstrapv1.KubeadmConfigDeprecatedStatus{
		V1Beta1: &bootstrapv1.KubeadmConfigV1Beta1DeprecatedStatus{Conditions: legacy},
	}
	report := reconciler.Report{Status: status, Events: reconciler.UserActionEvents(p, s.Config.Status.Conditions, status.Conditions)}
	if v.wrote() && (!s.hasData() || s.isNeeded()) {
		report.Events = append(report.Events, reconciler.Normal("DataSecretCreated", "Created bootstrap data in Secret %s", s.Config.Name))
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
				out = append(out, reconciler.Normal("BootstrapTokenCreated", "Created bootstrap token %[2]s, with which the machine joins: it did not exist in Cluster %[1]s", v.Cluster.Name, a.ID))
			}
		case chooseToken:
			if a.Why == reasonTokenMissing {
				out = append(out, reconciler.Normal("BootstrapTokenReplaced", "Replaced bootstrap token %[2]s, which does not exist in Cluster %[1]s: machines join with a new token", v.Cluster.Name, tokenID(v.token())))
			}
		}
	}
	return out
}

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
	if v.plan.Stage.Reason == waitCertificates {
		return condition.False(bootstrapv1.KubeadmConfigCertificatesAvailableInternalErrorReason, v.plan.Stage.Message)
	}
	if failed, ok := v.out.Failed.(createAuthority); ok {
		return condition.False(bootstrapv1.KubeadmConfigCertificatesAvailableInternalErrorReason,
			"Secret "+failed.Purpose.SecretName(failed.Cluster)+" could not be created; retrying")
	}
	return condition.True(bootstrapv1.KubeadmConfigCertificatesAvailableReason)
}

func (v conditionInput) data() condition.Result {
	message := v.plan.Stage.Message
	if v.out.Err != nil {
		action, _, _ := strings.Cut(v.out.Failed.String(), ": ")
		message = "The last attempt to " + action + " failed; retrying"
	}
	switch {
	case v.lacksData() && message == "":
		message = "Secret " + v.dataSecretName() + " was deleted"
	case v.lacksData():
		message = "Secret " + v.dataSecretName() + " was deleted: " + message
	case v.Deleted && v.Owner.Joined && message == "":
		return condition.TrueBecause(bootstrapv1.KubeadmConfigDataSecretAvailableReason, "Secret "+v.dataSecretName()+" was deleted; the Machine has joined and does not need it")
	case v.reportedName() != "":
		return condition.TrueBecause(bootstrapv1.KubeadmConfigDataSecretAvailableReason, message)
	}
	if message == "" {
		message = "Bootstrap data is being created"
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

// legacy returns the v1beta1 conditions. Their reasons are more specific, because they name the object that is waited
// for.
func (v conditionInput) legacy() []condition.V1Beta1Row {
	reason, severity := v.plan.Stage.Reason, clusterv1.ConditionSeverityInfo
	if v.out.Err != nil {
		reason = waitCorrection
	}
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
