package hosted

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// report computes the status and the events of a HostedControlPlane after its plan was executed; the driver of package
// reconciler writes them. The fields version, initialization and externalManagedControlPlane are the contract of
// control plane providers in Cluster API. Immediately after a restart of this program, the only known fact about the
// process is that it runs. While it is being adopted, the status is not changed. If it cannot be adopted, its previous
// health is retained.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	s = afterStart(s, out)
	if s.Process.Exists && s.Process.Config == "" && s.Plane.DeletionTimestamp.IsZero() && out.Err == nil {
		if p.Stage.Order == stageStart {
			return reconciler.Report{}
		}
		before := condition.Set(s.Plane.Status.Conditions)
		s.Process.Ready = s.Process.Running && before.IsTrue(hostedv1.AvailableCondition)
		s.Process.EtcdReady = s.Process.Running && before.IsTrue(hostedv1.EtcdClusterAvailableCondition)
	}
	yes := true
	status := hostedv1.HostedControlPlaneStatus{
		ObservedGeneration:          s.Plane.Generation,
		ControlPlaneEndpoint:        s.Plane.Status.ControlPlaneEndpoint,
		Initialization:              s.Plane.Status.Initialization, // initialization is never reset
		ExternalManagedControlPlane: &yes,
		AddonsHash:                  s.Plane.Status.AddonsHash,
		Process:                     processStatus(s),
		Quiesced:                    quiescedStatus(s, p),
	}
	if s.Cluster != nil && endpointOf(s).IsValid() {
		status.ControlPlaneEndpoint = endpointOf(s)
	}
	if s.Process.Running && s.Process.Version != "" {
		status.Version = s.Process.Version
		status.Versions = []clusterv1.StatusVersion{{Version: s.Process.Version, Replicas: 1}}
	}
	for _, a := range out.Done {
		if applied, ok := a.(applyAddons); ok {
			status.AddonsHash = applied.Hash
		}
	}
	if (status.AddonsHash != "" || !s.Capabilities.Addons) && s.Process.Ready {
		status.Initialization.ControlPlaneInitialized = &yes
	}
	status.Authority = authorityInEffect(s, status.AddonsHash)
	status.EncryptionKeys = keysInEffect(s)
	j := conditionInput{snapshot: s, addons: status.AddonsHash != "", stage: p.Stage}
	switch out.Failed.(type) {
	case applyAddons:
		j.failed = fault.UserMessage(out.Err)
	case startProcess, reserveEndpoint:
		if f := fault.As(out.Err); f != nil && (f.Kind == fault.Invalid || f.Kind == fault.Transient) {
			j.stage.Reason, j.stage.Message = f.Reason, f.Message
		}
	}
	status.Conditions = conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Plane, s.Now))
	return reconciler.Report{Status: status, Events: events(s, status, out)}
}

// authorityInEffect returns the fingerprint of the CA that the process uses and that nodes get. It changes when the
// process and the add-ons have been updated to the CA in the Secret; `slipway rotate` waits for it.
func authorityInEffect(s snapshot, applied string) string {
	if !s.runsAsConfigured() || s.Capabilities.Addons && applied != addonsOf(s).Hash() {
		return s.Plane.Status.Authority
	}
	return secrets.Fingerprint(s.Secrets[purposeCA])
}

// runsAsConfigured reports whether the process is ready with the configuration from the current objects.
func (s snapshot) runsAsConfigured() bool {
	if s.Cluster == nil || !s.Process.Ready || slices.ContainsFunc(s.authorities(), func(p secretPurpose) bool { return s.Secrets[p] == nil }) {
		return false
	}
	return s.Process.Config == configOf(s).Hash()
}

// afterStart adds the known results of a start to the snapshot.
func afterStart(s snapshot, out reconciler.Outcome) snapshot {
	for _, a := range out.Done {
		if start, ok := a.(startProcess); ok && s.Capabilities.Started != nil {
			s.Process = *s.Capabilities.Started
			s.Process.Since, s.Process.Version, s.Process.Config = s.Now, start.Version, configOf(s).Hash()
		}
	}
	return s
}

func processStatus(s snapshot) hostedv1.ProcessStatus {
	out := hostedv1.ProcessStatus{Restarts: int32(s.Process.Restarts), LastExit: s.Process.LastExit}
	if s.Process.Running {
		out.PID, out.Since = int32(s.Process.PID), metav1.NewTime(s.Process.Since)
	}
	return out
}

// events returns the events for starts, a completed restore and exits.
func events(s snapshot, status hostedv1.HostedControlPlaneStatus, out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, a := range out.Done {
		if done, ok := a.(finishRestore); ok {
			list = append(list, reconciler.Normal("SnapshotRestored", "The API server is ready with the data of snapshot %s", done.Snapshot))
		}
		switch start, ok := a.(startProcess); {
		case ok && start.Empty:
			list = append(list, reconciler.Warning("ControlPlaneStartedEmpty", "Started the control plane at %s without its previous data: %s", start.Version, start.Why))
		case ok:
			list = append(list, reconciler.Normal("ControlPlaneStarted", "Started the control plane at %s: %s", start.Version, start.Why))
		}
	}
	if _, included := versionToRun(s); !included && !condition.Set(s.Plane.Status.Conditions).IsFalse(hostedv1.VersionSupportedCondition) {
		list = append(list, reconciler.Warning("VersionNotIncluded", "%s", notSupported(s)))
	}
	if int32(s.Process.Restarts) > s.Plane.Status.Process.Restarts {
		list = append(list, reconciler.Warning("ControlPlaneDied", "The control plane exited (%s) and was restarted", s.Process.LastExit))
	}
	if s.Cluster != nil && ptr.Deref(status.Initialization.ControlPlaneInitialized, false) && !ptr.Deref(s.Plane.Status.Initialization.ControlPlaneInitialized, false) {
		list = append(list, reconciler.Normal("ControlPlaneInitialized", "The API server is ready at %s", secrets.ServerURL(endpointOf(s))))
	}
	return list
}
