package hosted

import (
	"regexp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// reasonQuiesced is the reason of waits for the removal of the quiesce annotation.
const reasonQuiesced = "Quiesced"

// stopProcess stops the control plane without deleting its data.
type stopProcess struct{}

func (stopProcess) String() string {
	return "stop the control plane: annotation " + hostedv1.QuiesceAnnotation
}

// decideQuiesced plans the reconciliation of a quiesced control plane. It creates no missing Secrets. Each
// row waits for the rows above it:
//
//	to be stopped, and runs or would be restarted             stop
//	CAs or keys missing, version not available, …             wait
//	Loopback: data exists, and no snapshot is requested       wait for the user: the data may be of another cluster
//	Loopback: no data, and no snapshot is requested           wait for a request
//	Loopback: the snapshot is not fetched                     fetch
//	process does not run the requested components only        start
func decideQuiesced(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if s.Quiesce.Mode == hostedv1.QuiesceStopped {
		if !isStopped(s) {
			p.Do(stopProcess{})
			p.RecheckIn(unwatchedRecheck)
		}
		p.WaitFor(reasonQuiesced, "The control plane is stopped until annotation %s is removed", hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).UntilUserActs()
		return p
	}
	endpoint := endpointOf(s)
	if !decideContent(s, endpoint, &p) || s.Quiesce.Mode == hostedv1.QuiesceLoopback && !decideSnapshot(s, &p) {
		return p
	}
	cfg := configOf(s, endpoint)
	if s.Process.Exists && s.Process.Config == cfg.Hash() {
		p.WaitFor(reasonQuiesced, "%s until annotation %s is removed", s.Quiesce.Runs(), hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).UntilUserActs()
		return p
	}
	if !decideData(s, cfg, &p) {
		return p
	}
	p.Do(startProcess{Version: cfg.Version, Why: "annotation " + hostedv1.QuiesceAnnotation})
	p.WaitFor("ControlPlaneStarting", "%s until annotation %s is removed", s.Quiesce.Runs(), hostedv1.QuiesceAnnotation).For(kind, s.Plane.Name).ToChange("status.quiesced")
	return p
}

// decideContent reports whether all inputs of the process exist and it may run.
func decideContent(s snapshot, endpoint clusterv1.APIEndpoint, p *reconciler.Plan) bool {
	if name, text := missingSecret(s); text != "" {
		p.WaitFor("SecretsUnusable", "%s", text).For("Secret", name).UntilUserActs()
		p.RecheckIn(versionAgain)
		return false
	}
	if _, included := versionToRun(s); !included {
		p.WaitFor("VersionNotSupported", "%s", notSupported(s)).For(kind, s.Plane.Name).UntilUserActs()
		p.RecheckIn(versionAgain)
		return false
	}
	if err := configOf(s, endpoint).Validate(); err != nil {
		p.WaitFor(processconfig.ReasonInvalid, "%s", err.Error()).For(kind, s.Plane.Name).UntilUserActs()
		return false
	}
	if why := deniedIssuer(s); why != "" {
		p.WaitFor(reasonDenied, "%s", why).For(kind, s.Plane.Name).UntilUserActs()
		return false
	}
	return decideQuota(s, p)
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
		return name, "Secret " + name + " has no keys that can be used"
	}
	return "", ""
}

// decideSnapshot reports whether the control plane may run with the content of a snapshot, which is the only
// way to start it on another host.
func decideSnapshot(s snapshot, p *reconciler.Plan) bool {
	switch {
	case s.Restore.Problem != "":
		p.WaitFor(s.Restore.Reason, "%s", s.Restore.Problem).For(kind, s.Plane.Name).UntilUserActs()
		return false
	case s.Restore.Request != nil:
		return decideRestore(s, p) && (hasStagedRestore(s) || wasRestored(s))
	case s.Process.Exists:
		p.WaitFor("DataExists", "The host has data of a control plane of this name already: delete that control plane, or move its folder away").For(kind, s.Plane.Name).UntilUserActs()
	default:
		p.WaitFor(processconfig.ReasonDataMissing, "Waiting for annotation %s to name a snapshot", hostedv1.RestoreAnnotation).For(kind, s.Plane.Name).ToChange("metadata.annotations")
	}
	p.RecheckIn(versionAgain)
	return false
}

// isStopped reports whether the control plane does not run and is not restarted.
func isStopped(s snapshot) bool { return !s.Process.Running && s.Process.Config == "" }

// quiescedStatus returns status.quiesced, which acknowledges the annotation when it is in effect.
func quiescedStatus(s snapshot, p reconciler.Plan) string {
	q, fulfilled := s.Quiesce, false
	switch {
	case q == (quiesceRequest{}) || s.Cluster == nil || !s.Plane.DeletionTimestamp.IsZero():
		return ""
	case q.Mode == hostedv1.QuiesceStopped:
		fulfilled = isStopped(s)
	case q.Mode == hostedv1.QuiesceLoopback && s.Restore.Request == nil:
		if slices.ContainsFunc(p.Waits, func(w reconciler.Wait) bool { return w.Reason == processconfig.ReasonDataMissing }) {
			return hostedv1.QuiesceAwaitingData + "/" + q.ID
		}
	case s.Process.Running && s.Process.RunMode == q.RunMode() && s.Process.Config == configOf(s, endpointOf(s)).Hash():
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

// parseQuiesce parses the annotation. Invalid annotations, and annotations on control planes whose backend cannot
// stop them, are ignored.
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
		return "Etcd of the control plane runs alone"
	}
	return "The control plane answers on its host alone"
}
