package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

func TestConditions(t *testing.T) { // CP-12
	type wants = map[string]string
	cases := map[string]struct {
		s    snapshot
		out  reconciler.Outcome
		want wants
	}{
		"settled": {s: running(t), want: wants{
			"Available": "True Available", "CertificatesAvailable": "True Available", "EtcdClusterAvailable": "True Available", "ProcessRunning": "True Running",
			"VersionSupported": "True Supported", "AddonsApplied": "True Applied", "AddonsAvailable": "True Available", "RollingOut": "False NotRollingOut", "Deleting": "False NotDeleting"}},
		"waiting": {s: running(t, func(s *snapshot) { s.Cluster, s.Process = nil, backend.ControlPlane{} }), want: wants{
			"Available":             "False NotAvailable: Waiting for the Cluster to own this control plane",
			"CertificatesAvailable": "Unknown WaitingForCluster: Waiting for the Cluster to own this control plane", "ProcessRunning": "False NotStarted: Waiting for the Cluster to own this control plane"}},
		"authority lost": {s: running(t, func(s *snapshot) { delete(s.Secrets, purposeCA) }), want: wants{
			"CertificatesAvailable": "False CertificatesMissing: Secret c-ca is missing; restore it from a backup, because the cluster was created with it"}},
		"authority expired": {s: running(t, func(s *snapshot) { s.Now = s.Now.AddDate(11, 0, 0) }), want: wants{
			"CertificatesAvailable": "False Invalid: The certificate in Secret c-ca expired on 2036-05-03T07:08:09Z: nothing that it signs is trusted. Put one that is valid into tls.crt, of the same " +
				"key and subject once there are nodes"}},
		"etcd down": {s: running(t, func(s *snapshot) { s.Process.EtcdReady = false }), want: wants{
			"EtcdClusterAvailable": "False NotAvailable: The API server is ready, but etcd is not", "Available": "False NotAvailable: * EtcdClusterAvailable: The API server is ready, but etcd is not"}},
		"starting": {s: running(t, func(s *snapshot) { s.Process.Ready, s.Process.EtcdReady = false, false }), want: wants{
			"Available": "False NotAvailable: The API server is not ready yet", "EtcdClusterAvailable": "Unknown NotYetKnown: The API server is not ready yet"}},
		"died": {s: running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Config: s.Process.Config, LastExit: "exit status 1", Log: "no space left"}
		}), want: wants{
			"ProcessRunning": "False Died: The control plane exited (exit status 1) and is being restarted (`slipway logs control-plane p -n ns` has its log); its last log lines:\nno space left", "EtcdClusterAvailable": "False NotAvailable: The control plane does not run"}},
		"not supported": {s: running(t, func(s *snapshot) { s.Plane.Spec.Version = "v1.99.0" }), want: wants{
			"VersionSupported": "False NotSupported: Kubernetes v1.99.0 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.99.0`, or set spec.version to one of these",
			"Available":        "True Available"}},
		"not supported, with a class, new": {s: running(t, func(s *snapshot) {
			s.Plane.Spec.Version = "v1.99.0"
			s.Plane.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterNameLabel: "c"}
		}), want: wants{
			"VersionSupported": "False NotSupported: Kubernetes v1.99.0 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.99.0`, or set spec.topology.version of Cluster c to one of these",
			"Available":        "True Available"}},
		"not supported, with a class": {s: running(t, func(s *snapshot) { // which does not let it go back
			s.Plane.Spec.Version, s.Plane.Status.Version = "v1.99.0", "v1.36.3"
			s.Plane.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterNameLabel: "c"}
		}), want: wants{
			"VersionSupported": "False NotSupported: Kubernetes v1.99.0 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.99.0`",
			"Available":        "True Available"}},
		"rolling out": {s: running(t, func(s *snapshot) {
			s.Plane.Spec.Version = "v1.37.0"
			s.Capabilities.Versions = append(s.Capabilities.Versions, "v1.37.0")
		}), want: wants{
			"RollingOut": "True RollingOut: Restarting the control plane at v1.37.0, from v1.36.3"}},
		"add-ons failed": {s: running(t, func(s *snapshot) { s.Plane.Status.AddonsHash = "" }), out: reconciler.Outcome{Failed: applyAddons{}, Err: fault.New(fault.Invalid, "x", "no such thing")}, want: wants{
			"AddonsApplied": "False ApplyFailed: no such thing", "Available": "False NotAvailable: * AddonsApplied: no such thing"}},
		"no DNS": {s: running(t, func(s *snapshot) { s.Addons.Problem = "Deployment coredns is not available" }), want: wants{
			"AddonsAvailable": "False NotAvailable: Deployment coredns is not available", "Available": "True Available"}},
		"no nodes": {s: running(t, func(s *snapshot) { s.Addons.NoNodes = true }), want: wants{
			"AddonsAvailable": "Unknown NoNodes: Waiting for the first Node of the workload cluster to run the add-ons"}},
		"not read": {s: running(t, func(s *snapshot) { s.Addons = addons.Reading{} }), want: wants{
			"AddonsAvailable": "Unknown NotYetKnown: The add-ons of the workload cluster are not read yet, retrying"}},
		"deleting": {s: running(t, func(s *snapshot) { s.Plane.DeletionTimestamp = &metav1.Time{Time: now} }), want: wants{
			"Deleting": "True ControlPlaneStopping: The control plane is being stopped and its data is being deleted", "Available": "False NotAvailable: Deletion in progress"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := report(tc.s, decide(tc.s), tc.out).Status.(hostedv1.HostedControlPlaneStatus)
			for conditionType, want := range tc.want {
				c := condition.Set(status.Conditions).Get(conditionType)
				if c == nil {
					t.Fatalf("no condition %s", conditionType)
				}
				got := string(c.Status) + " " + c.Reason
				if c.Message != "" {
					got += ": " + c.Message
				}
				if got != want {
					t.Errorf("%s\n got %s\nwant %s", conditionType, got, want)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	s := running(t)
	status := report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
	if !ptr.Deref(status.Initialization.ControlPlaneInitialized, false) || !ptr.Deref(status.ExternalManagedControlPlane, false) { // CP-08, CP-10
		t.Errorf("%+v", status)
	}
	if status.Version != version || !cmp.Equal(status.Versions, []clusterv1.StatusVersion{{Version: version, Replicas: 1}}) { // CP-04
		t.Errorf("versions %v", status.Versions)
	}
	down := running(t, func(s *snapshot) {
		s.Plane.Status = status
		s.Process = backend.ControlPlane{Exists: true, Config: s.Process.Config, LastExit: "signal: killed", Restarts: 1}
	})
	report := report(down, decide(down), reconciler.Outcome{})
	if after := report.Status.(hostedv1.HostedControlPlaneStatus); !ptr.Deref(after.Initialization.ControlPlaneInitialized, false) || after.Version != "" {
		t.Errorf("initialized stays, the version that runs does not: %+v", after)
	}
	if len(report.Events) != 1 || report.Events[0].Reason != "ControlPlaneDied" {
		t.Errorf("events %v", report.Events)
	}
}

func TestStatusStaysAfterARestartOfSlipway(t *testing.T) {
	s := running(t, func(s *snapshot) { s.Process.Config, s.Process.Ready = "", false })
	if report := report(s, decide(s), reconciler.Outcome{}); report.Status != nil {
		t.Errorf("nothing is known yet: %+v", report.Status)
	}
}

// After a restart of slipway that cannot take a control plane over, the reason is in the status, and what was known of its
// health stays.
func TestBlockedTakeoverIsSaid(t *testing.T) {
	s := running(t)
	healthy := report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
	s = running(t, func(s *snapshot) {
		s.Plane.Status, s.Plane.Spec.Version = healthy, "v1.99.0"
		s.Process.Config, s.Process.Ready, s.Process.EtcdReady = "", false, false
	})
	status, ok := report(s, decide(s), reconciler.Outcome{}).Status.(hostedv1.HostedControlPlaneStatus)
	if set := condition.Set(status.Conditions); !ok || set.IsTrue("VersionSupported") || !set.IsTrue("Available") || status.Version != version {
		t.Errorf("%+v", status)
	}
}

// The status says which authority is in effect: the process runs with it, and nodes that join are told of it.
func TestAuthorityInEffect(t *testing.T) { // CP-15
	another, err := secrets.Generate(purposeCA, secrets.KeyOptions{}, now)
	must(t, err)
	changed := func(s *snapshot) {
		s.Plane.Status.Authority = "before"
		s.Secrets[purposeCA] = s.Secrets[purposeCA].DeepCopy()
		s.Secrets[purposeCA].Data = another
	}
	restarted := func(s *snapshot) { s.Process.Config = configOf(*s).Hash() }
	starting := func(s *snapshot) { s.Process.Ready = false }
	hash := func(s snapshot) string { return addonsOf(s).Hash() }
	for name, tc := range map[string]struct {
		s    snapshot
		done func(snapshot) []reconciler.Action
		want bool // that of the Secret
	}{
		"settled":               {running(t), nil, true},
		"the Secret is changed": {running(t, changed), nil, false},
		"restarting":            {running(t, changed, restarted, starting), nil, false},
		"restarted":             {running(t, changed, restarted), nil, false},
		"nodes are told":        {running(t, changed, restarted), func(s snapshot) []reconciler.Action { return []reconciler.Action{applyAddons{Hash: hash(s)}} }, true},
		"the Secret is gone":    {running(t, changed, restarted, func(s *snapshot) { delete(s.Secrets, purposeProxy) }), nil, false},
		"the Cluster is gone":   {running(t, changed, func(s *snapshot) { s.Cluster = nil }), nil, false},
		"simulated, changed":    {simulatedSnapshot(t, changed), nil, false},
		"simulated, restarted":  {simulatedSnapshot(t, changed), func(s snapshot) []reconciler.Action { return []reconciler.Action{startProcess{Version: "v1.30.0"}} }, true},
	} {
		var out reconciler.Outcome
		if tc.done != nil {
			out.Done = tc.done(tc.s)
		}
		want := tc.s.Plane.Status.Authority
		if tc.want {
			want = secrets.Fingerprint(tc.s.Secrets[purposeCA])
		}
		report := report(tc.s, reconciler.Plan{}, out)
		if got := report.Status.(hostedv1.HostedControlPlaneStatus).Authority; got != want || got == "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
