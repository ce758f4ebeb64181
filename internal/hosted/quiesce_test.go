package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// quiesced is a control plane with the annotation, paused and without what the infrastructure reports, as on the way to another host.
func quiesced(t *testing.T, mode string, changes ...func(*snapshot)) snapshot {
	t.Helper()
	return running(t, append([]func(*snapshot){func(s *snapshot) {
		yes := true
		s.Cluster.Spec.Paused, s.Cluster.Status.Initialization.InfrastructureProvisioned = &yes, nil
		s.Gateway = hostGateway{}
		s.Plane.Annotations = map[string]string{hostedv1.QuiesceAnnotation: mode + "/1", hostedv1.InitializedAnnotation: "true"}
		s.Quiesce = parseQuiesce(s.Plane)
	}}, changes...)...)
}

// runs makes the process one that runs with what is wanted of it.
func runs(s *snapshot) {
	s.Process = backend.ControlPlane{Exists: true, Running: true, EtcdReady: true, RunMode: s.Quiesce.RunMode(), Version: version, Data: s.Process.Data}
	s.Process.Config = configOf(*s).Hash()
}

func nothingHere(s *snapshot) { s.Process = backend.ControlPlane{} }

const restoreOf = "20261125T115900Z"

func asksRestore(s *snapshot) {
	s.Restore = restore{Request: &RestoreRequest{ID: restoreOf, Policy: "p", Snapshot: "c-20261125T110000Z"}}
}

func TestQuiesce(t *testing.T) {
	const etcdAlone = "Only etcd of the control plane runs until annotation controlplane.slipway.dev/quiesce is removed"
	const loopback = "The control plane listens on loopback only until annotation controlplane.slipway.dev/quiesce is removed"
	for name, test := range map[string]struct {
		reason string
		s      snapshot
		does   []string
		status string
	}{
		"etcd alone": {"the process restarts without what writes", quiesced(t, "Etcd"), []string{"do: start the control plane at v1.36.3: annotation controlplane.slipway.dev/quiesce", "wait: " + etcdAlone}, ""},
		"restarting": {"what the process says is that it runs everything: it is not quiesced yet", quiesced(t, "Etcd", runs, func(s *snapshot) { s.Process.RunMode = "" }), []string{"wait: " + etcdAlone}, ""},
		"no etcd":    {"", quiesced(t, "Etcd", runs, func(s *snapshot) { s.Process.EtcdReady = false }), []string{"wait: " + etcdAlone}, ""},
		"etcd runs":  {"", quiesced(t, "Etcd", runs), []string{"wait: " + etcdAlone}, "Etcd/1"},
		"etcd, nothing here": {"it is not started empty", quiesced(t, "Etcd", nothingHere),
			[]string{"wait: The control plane was initialized, but its data is not in the data directory of this manager, which may not be the one that had it; restore it from a backup, or delete the cluster, because Slipway does not start it without data"}, ""},
		"stop": {"", quiesced(t, "Stopped"), []string{"do: stop the control plane: annotation controlplane.slipway.dev/quiesce", "wait: The control plane is stopped until annotation controlplane.slipway.dev/quiesce is removed"}, ""},
		"between two starts": {"a supervisor would start it again", quiesced(t, "Stopped", func(s *snapshot) { s.Process.Running = false }),
			[]string{"do: stop the control plane: annotation controlplane.slipway.dev/quiesce", "wait: The control plane is stopped until annotation controlplane.slipway.dev/quiesce is removed"}, ""},
		"stopped": {"", quiesced(t, "Stopped", func(s *snapshot) { s.Process = backend.ControlPlane{Exists: true} }),
			[]string{"wait: The control plane is stopped until annotation controlplane.slipway.dev/quiesce is removed"}, "Stopped/1"},
		"nothing but data missing": {"it could start", quiesced(t, "Loopback", nothingHere), []string{"wait: Waiting for annotation controlplane.slipway.dev/restore to name a snapshot"}, "AwaitingData/1"},
		"version missing": {"said before any data comes", quiesced(t, "Loopback", nothingHere, func(s *snapshot) { s.Capabilities.Versions = []string{"v1.35.0"} }),
			[]string{"wait: Kubernetes v1.36.3 is not available on this host, which has v1.35.0; the operator adds it with `slipway versions add v1.36.3`, or set spec.version to one of these"}, ""},
		"authority missing": {"none is created: the data was made with it", quiesced(t, "Loopback", nothingHere, func(s *snapshot) { delete(s.Secrets, purposeEtcd) }), []string{"wait: Secret c-etcd is missing"}, ""},
		"other data": {"it is not known whose it is", quiesced(t, "Loopback", func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: version}}
		}),
			[]string{"wait: This host already has data of a control plane with this name: delete that control plane, or move its data directory away"}, ""},
		"fetch": {"", quiesced(t, "Loopback", nothingHere, asksRestore), []string{"do: fetch snapshot c-20261125T110000Z: a restore was requested"}, ""},
		"fetched": {"no endpoint is needed", quiesced(t, "Loopback", asksRestore, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Staged: processconfig.Restore{ID: restoreOf}}}
		}), []string{"do: start the control plane at v1.36.3: annotation controlplane.slipway.dev/quiesce", "wait: " + loopback}, ""},
		"restored": {"", quiesced(t, "Loopback", asksRestore, func(s *snapshot) { s.Process.Data.Restored.ID = restoreOf }, runs), []string{"wait: " + loopback}, ""},
		"answers": {"", quiesced(t, "Loopback", asksRestore, func(s *snapshot) { s.Process.Data.Restored.ID = restoreOf }, runs, func(s *snapshot) { s.Process.Ready = true }),
			[]string{"wait: " + loopback}, "Loopback/1"},
		"answers with other data": {"", quiesced(t, "Loopback", asksRestore, runs, func(s *snapshot) { s.Process.Ready = true }), []string{"do: fetch snapshot c-20261125T110000Z: a restore was requested"}, ""},
	} {
		p := decide(test.s)
		if diff := cmp.Diff(test.does, texts(p)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, diff)
		}
		if got := report(test.s, p, reconciler.Outcome{}).Status; got != nil {
			if status := got.(hostedv1.HostedControlPlaneStatus).Quiesced; status != test.status {
				t.Errorf("%s: %s: status.quiesced is %q", name, test.reason, status)
			}
		}
	}
}

// Without the annotation, a configuration is what it was; one that cannot be read, or of a simulated control plane, asks for nothing.
func TestQuiesceRequest(t *testing.T) {
	p := plane()
	for text, want := range map[string]quiesceRequest{
		"": {}, "Etcd/a-1": {Mode: "Etcd", ID: "a-1"}, "Stopped/a": {Mode: "Stopped", ID: "a"}, "Loopback/a": {Mode: "Loopback", ID: "a"}, "AwaitingData/a": {}, "Etcd": {}, "Etcd/": {}, "Etcd/a b": {}, "All/a": {},
	} {
		p.Annotations = map[string]string{hostedv1.QuiesceAnnotation: text}
		if got := parseQuiesce(p); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	p.Annotations[hostedv1.QuiesceAnnotation] = "Etcd/a"
	p.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
	if parseQuiesce(p) != (quiesceRequest{}) {
		t.Error("a simulated control plane is quiesced")
	}
}
