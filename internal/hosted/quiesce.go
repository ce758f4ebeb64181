package hosted

import (
	"regexp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// reasonQuiesced is the reason of waits for the removal of the quiesce annotation.
const reasonQuiesced = "Quiesced"

// stopProcess stops the control plane without deleting its data. This file handles the annotation
// controlplane.slipway.dev/quiesce, with which `slipway move` stops the API of a control plane before its last snapshot
// is taken, and starts the control plane at the target. The package documentation lists its modes.
type stopProcess struct{}

func (stopProcess) String() string {
	return "stop the control plane: annotation " + hostedv1.QuiesceAnnotation
}

// decideQuiesced plans the reconciliation of a quiesced control plane. [decide] calls it instead of all other steps. It
// creates no missing Secrets. Each row waits for the rows above it:
//
//	to be stopped, and runs or would be restarted             stop
//	CAs or keys missing, version not available, …             wait
//	Loopback: data exists, and no snapshot is requested       wait for the user: the data may be of another cluster
//	Loopback: no data, and no snapshot is requested           wait for a request
//	Loopback: the snapshot is not fetched                     fetch
//	process does not run the requested components only        start
func decideQuiesced(s snapshot) reconciler.Plan {
	if s.Quiesce.Mode == hostedv1.QuiesceStopped {
		return planStop(s)
	}
	return follow(s, planExistingSecrets, planVersion, planConfiguration, planQuota, planSnapshot, planQuiesced)
}

// planStop stops the process and waits for the removal of the annotation.
func planStop(s snapshot) (p reconciler.Plan) {
	if !isStopped(s) {
		p.Do(stopProcess{})
		p.RecheckIn(unwatchedRecheck)
	}
	p.WaitFor(reasonQuiesced, "The control plane is stopped until annotation %s is removed", hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).UntilUserActs()
	return at(stageQuiesced, p)
}

// planQuiesced runs the requested components only.
func planQuiesced(s snapshot) (p reconciler.Plan) {
	cfg := configOf(s)
	if s.Process.Exists && s.Process.Config == cfg.Hash() {
		p.WaitFor(reasonQuiesced, "%s until annotation %s is removed", s.Quiesce.Runs(), hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).UntilUserActs()
		return at(stageQuiesced, p)
	}
	if p := planData(s); !p.Idle() {
		return p
	}
	p.Do(startProcess{Version: cfg.Version, Why: "annotation " + hostedv1.QuiesceAnnotation})
	p.WaitFor("ControlPlaneStarting", "%s until annotation %s is removed", s.Quiesce.Runs(), hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).ToChange("status.quiesced")
	return at(stageStart, p)
}

// planExistingSecrets waits for Secrets that are missing or unusable.
func planExistingSecrets(s snapshot) (p reconciler.Plan) {
	if name, text := missingSecret(s); text != "" {
		p.WaitFor("SecretsUnusable", "%s", text).For("Secret", name).UntilUserActs()
		p.RecheckIn(versionAgain)
	}
	return at(stagePrerequisites, p)
}

// missingSecret returns the first Secret that cannot be used, and the reason.
func missingSecret(s snapshot) (name, text string) {
	for _, purpose := range s.authorities() {
		name, text = purpose.SecretName(s.Cluster.Name), "Secret "+purpose.SecretName(s.Cluster.Name)+" is missing"
		if secret, ok := s.Secrets[purpose]; ok {
			text = authorityProblem(purpose, secret, s.Now)
		}
		if text != "" {
			return name, text
		}
	}
	if _, err := encryptionKeys(s); s.encrypts() && err != nil {
		name = purposeEncryption.SecretName(s.Cluster.Name)
		return name, "Secret " + name + " contains no usable keys"
	}
	return "", ""
}

// planSnapshot waits until a control plane on loopback can run with the content of a snapshot, which is the only way to
// start it on another host.
func planSnapshot(s snapshot) (p reconciler.Plan) {
	switch {
	case s.Quiesce.Mode != hostedv1.QuiesceLoopback:
		return p
	case s.Restore.Problem != "":
		return waitForUser(s, stageAdmission, s.Restore.Reason, s.Restore.Problem)
	case s.Restore.Request != nil:
		return at(stageAdmission, planRestore(s))
	case s.Process.Exists:
		p.WaitFor("DataExists", "This host already has data of a control plane with this name: delete that control plane, or move its data directory away").
			For(kind, s.Plane.Name).UntilUserActs()
	default:
		p.WaitFor(processconfig.ReasonDataMissing, "Waiting for annotation %s to name a snapshot", hostedv1.RestoreAnnotation).
			For(kind, s.Plane.Name).ToChange("metadata.annotations")
	}
	p.RecheckIn(versionAgain)
	return at(stageAdmission, p)
}

// isStopped reports whether the control plane does not run and is not restarted.
func isStopped(s snapshot) bool { return !s.Process.Running && s.Process.Config == "" }

// quiescedStatus returns status.quiesced, which acknowledges the annotation when it is in effect. [report] calls it,
// and `slipway move` waits for it.
func quiescedStatus(s snapshot, p reconciler.Plan) string {
	q, fulfilled := s.Quiesce, false
	switch {
	case q == (quiesceRequest{}) || s.Cluster == nil || !s.Plane.DeletionTimestamp.IsZero():
		return ""
	case q.Mode == hostedv1.QuiesceStopped:
		fulfilled = isStopped(s)
	case q.Mode == hostedv1.QuiesceLoopback && s.Restore.Request == nil:
		if p.Stage.Reason == processconfig.ReasonDataMissing {
			return hostedv1.QuiesceAwaitingData + "/" + q.ID
		}
	case s.Process.Running && s.Process.RunMode == q.RunMode() && s.Process.Config == configOf(s).Hash():
		fulfilled = q.Mode == hostedv1.QuiesceEtcd && s.Process.EtcdReady || q.Mode == hostedv1.QuiesceLoopback && s.Process.Ready && wasRestored(s)
	}
	if !fulfilled {
		return ""
	}
	return q.Mode + "/" + q.ID
}

// quiesceRequest is the requested mode of quiescing with its ID. The zero value means normal operation.
type quiesceRequest struct{ Mode, ID string }

var quiescePattern = regexp.MustCompile(`^(` + hostedv1.QuiesceEtcd + `|` + hostedv1.QuiesceStopped + `|` + hostedv1.QuiesceLoopback + `)/([0-9A-Za-z-]{1,64})$`)

// parseQuiesce parses the annotation. Invalid annotations, and annotations on control planes whose backend cannot stop
// them, are ignored. A control plane with a request is reconciled although it is paused.
func parseQuiesce(plane *hostedv1.HostedControlPlane) quiesceRequest {
	found := quiescePattern.FindStringSubmatch(plane.Annotations[hostedv1.QuiesceAnnotation])
	if found == nil || plane.Spec.Backend.Name() != hostedv1.BackendProcess {
		return quiesceRequest{}
	}
	return quiesceRequest{Mode: found[1], ID: found[2]}
}

// RunMode returns the components that the process runs, as in its configuration.
func (r quiesceRequest) RunMode() string {
	return map[string]string{hostedv1.QuiesceEtcd: processconfig.RunEtcdOnly, hostedv1.QuiesceLoopback: processconfig.RunOnLoopback}[r.Mode]
}

// Runs describes the running components for messages.
func (r quiesceRequest) Runs() string {
	if r.Mode == hostedv1.QuiesceEtcd {
		return "Only etcd of the control plane runs"
	}
	return "The control plane listens on loopback only"
}
