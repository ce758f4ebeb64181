package hosted

import (
	"cmp"
	"fmt"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditionInput is the input of the conditions: a snapshot and the outcome of its plan. [report] creates it.
type conditionInput struct {
	snapshot
	// stage is the stage of the plan. Its reason and message describe a failed start instead, if there is one.
	stage reconciler.Stage
	// failed is the message of a failed action, or empty.
	failed string
	// addons is true if the objects that nodes need were applied to the workload cluster.
	addons bool
}

// conditions computes the conditions of HostedControlPlanes, which [report] writes at the end of each reconciliation.
// Types and reasons are part of the API; other programs wait for Available and Ready.
var conditions = condition.Table[conditionInput]{
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: hostedv1.VersionSupportedCondition, Compute: conditionInput.versionSupported},
	{Type: hostedv1.CertificatesAvailableCondition, Compute: conditionInput.certificates},
	{Type: hostedv1.EncryptionKeysAvailableCondition, Compute: conditionInput.encryptionKeys},
	{Type: hostedv1.ProcessRunningCondition, Compute: conditionInput.processRunning},
	{Type: hostedv1.EtcdClusterAvailableCondition, Compute: conditionInput.etcd},
	{Type: hostedv1.AddonsAppliedCondition, Compute: conditionInput.addonsApplied},
	{Type: hostedv1.AddonsAvailableCondition, Compute: conditionInput.addonsAvailable},
	{Type: hostedv1.RestoredCondition, Compute: conditionInput.restored},
	{Type: clusterv1.RollingOutCondition, Polarity: condition.Negative, Compute: conditionInput.rollingOut},
	{Type: hostedv1.AvailableCondition, Summarize: conditionInput.available},
	{Type: clusterv1.ReadyCondition, Summarize: conditionInput.ready},
}

// ready is true if the control plane matches its spec. Generic tools that wait for objects read it.
func (j conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	}, condition.Part{Type: hostedv1.AvailableCondition}, condition.Part{Type: hostedv1.VersionSupportedCondition},
		condition.Part{Type: clusterv1.RollingOutCondition, Polarity: condition.Negative},
		condition.Part{Type: clusterv1.DeletingCondition, Polarity: condition.Negative})
}

func (j conditionInput) deleting() condition.Result {
	if j.Plane.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	return condition.TrueBecause(j.stage.Reason, j.stage.Message)
}

func (j conditionInput) versionSupported() condition.Result {
	run, included := versionToRun(j.snapshot)
	switch {
	case included && run != j.Plane.Spec.Version:
		return condition.TrueBecause("PatchVersion", fmt.Sprintf("%s has Kubernetes %s and not %s: the control plane runs %s; set spec.version to it when it suits you", j.Capabilities.VersionSource(), run, j.Plane.Spec.Version, run))
	case included:
		return condition.True("Supported")
	}
	return condition.False("NotSupported", notSupported(j.snapshot))
}

func (j conditionInput) certificates() condition.Result {
	if j.Cluster == nil {
		return condition.Unknown("WaitingForCluster", j.stage.Message)
	}
	for _, purpose := range append(j.authorities(), purposeKubeconfig) {
		secret, ok := j.Secrets[purpose]
		if !ok {
			if j.stage.Message != "" && (j.stage.Order <= stagePrerequisites || j.Quiesce != quiesceRequest{}) {
				return condition.False(j.stage.Reason, j.stage.Message)
			}
			return condition.False("NotAvailable", "Secret "+purpose.SecretName(j.Cluster.Name)+" is being created")
		}
		if purpose == purposeKubeconfig {
			continue
		}
		if text := authorityProblem(purpose, secret, j.Now); text != "" {
			return condition.False("Invalid", text)
		}
	}
	return condition.True("Available")
}

func (j conditionInput) encryptionKeys() condition.Result {
	if !j.encrypts() {
		return condition.True("NotNeeded")
	}
	if j.Cluster == nil {
		return condition.Unknown("WaitingForCluster", j.stage.Message)
	}
	if _, err := encryptionKeys(j.snapshot); err != nil {
		return condition.False(fault.As(err).Reason, fault.UserMessage(err))
	}
	return condition.True("Available")
}

func (j conditionInput) processRunning() condition.Result {
	switch {
	case j.Process.Running:
		return condition.True(j.Capabilities.RunningReason)
	case j.Quiesce.Mode == hostedv1.QuiesceStopped:
		return condition.False("Stopped", "The control plane is stopped until annotation "+hostedv1.QuiesceAnnotation+" is removed")
	case !j.Process.Exists:
		return condition.False("NotStarted", j.orStage("The control plane is not started yet"))
	case j.Process.Problem != "":
		return condition.False("Waiting", j.Process.Problem)
	case j.Process.LastExit == "":
		return condition.False("Starting", "The control plane is starting")
	}
	message := "The control plane exited (" + j.Process.LastExit + ") and is being restarted"
	if j.Process.Log != "" {
		message += j.Capabilities.LogText(j.Plane) + "; its last log lines:\n" + j.Process.Log
	}
	return condition.False("Died", message)
}

func (j conditionInput) etcd() condition.Result {
	if j.Process.EtcdReady {
		return condition.True("Available")
	}
	if !j.Process.Running {
		return condition.False("NotAvailable", "The control plane does not run")
	}
	if j.Process.Ready {
		return condition.False("NotAvailable", "The API server is ready, but etcd is not")
	}
	return condition.Unknown("NotYetKnown", "The API server is not ready yet")
}

func (j conditionInput) addonsApplied() condition.Result {
	switch {
	case !j.Capabilities.Addons:
		return condition.True("NotNeeded")
	case j.failed != "":
		return condition.False("ApplyFailed", j.failed)
	case j.addons:
		return condition.True("Applied")
	}
	return condition.False("NotApplied", j.orStage("Applying the add-ons to the workload cluster"))
}

func (j conditionInput) addonsAvailable() condition.Result {
	switch seen := j.Addons; {
	case !hasAddons(j.Capabilities, j.Plane):
		return condition.True(hostedv1.AddonsNotNeededReason)
	case !j.addons:
		return condition.False("NotApplied", j.orStage("Applying the add-ons to the workload cluster"))
	case seen.Err != "":
		return condition.Unknown("NotReadable", seen.Err)
	case seen.At.IsZero():
		return condition.Unknown("NotYetKnown", "The add-ons of the workload cluster are not read yet, retrying")
	case seen.NoNodes:
		return condition.Unknown(hostedv1.AddonsNoNodesReason, "Waiting for the first Node of the workload cluster to run the add-ons")
	case seen.Problem != "":
		return condition.False("NotAvailable", seen.Problem)
	}
	return condition.True("Available")
}

func (j conditionInput) rollingOut() condition.Result {
	have := j.Process.Version
	want, included := versionToRun(j.snapshot)
	if j.Process.Running && slices.Contains([]string{processconfig.ReasonInvalid, processconfig.ReasonDataMissing, reasonDenied, reasonEndpoint}, j.stage.Reason) {
		return condition.TrueBecause(j.stage.Reason, j.stage.Message)
	}
	if have != "" && have != want && included {
		return condition.TrueBecause(clusterv1.RollingOutReason, "Restarting the control plane at "+want+", from "+have)
	}
	return condition.False(clusterv1.NotRollingOutReason, "")
}

func (j conditionInput) available(set condition.Set) condition.Result {
	if !j.Plane.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotAvailableReason, "Deletion in progress")
	}
	if !j.Process.Ready || j.Quiesce != (quiesceRequest{}) {
		return condition.False(clusterv1.NotAvailableReason, j.orStage(notReady(j.snapshot)))
	}
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.AvailableReason, Issue: clusterv1.NotAvailableReason, Unknown: clusterv1.AvailableUnknownReason,
	}, condition.Part{Type: hostedv1.CertificatesAvailableCondition}, condition.Part{Type: hostedv1.EncryptionKeysAvailableCondition},
		condition.Part{Type: hostedv1.EtcdClusterAvailableCondition}, condition.Part{Type: hostedv1.AddonsAppliedCondition})
}

// orStage returns the message of the stage, or a default.
func (j conditionInput) orStage(otherwise string) string { return cmp.Or(j.stage.Message, otherwise) }
