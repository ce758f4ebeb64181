package hosted

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/hosted/simulated"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/testkit"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const version = "v1.36.3"

var now = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

func plane() *hostedv1.HostedControlPlane {
	return &hostedv1.HostedControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "plane", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}},
		Spec: hostedv1.HostedControlPlaneSpec{Version: version},
	}
}

func cluster() *clusterv1.Cluster {
	yes := true
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.31.0.1", Port: 6443}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "l"}
	c.Status.Initialization.InfrastructureProvisioned = &yes
	return c
}

// running is a control plane that has all it needs.
func running(t *testing.T, changes ...func(*snapshot)) snapshot {
	t.Helper()
	s := snapshot{Now: now, Plane: plane(), Cluster: cluster(), Secrets: map[Purpose]*corev1.Secret{},
		Gateway: Gateway{Known: true, Address: netip.MustParseAddr("172.31.0.1")}, ReservedPorts: []uint16{6440, 12345 + 1}}
	s.Terms.Versions = []string{version}
	s.Terms = termsOf(s)
	for _, p := range authorities() {
		data, err := secrets.Generate(p, secrets.Keys{}, s.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.Secrets[p] = newSecret(s, p, data)
	}
	data, err := newKubeconfig(s, endpointOf(s))
	if err != nil {
		t.Fatal(err)
	}
	s.Secrets[purposeKubeconfig] = newSecret(s, purposeKubeconfig, data)
	s.Kubeconfig = secrets.ParseKubeconfig(s.Secrets[purposeKubeconfig])
	s.Process = backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, PID: 42, Version: version, Config: configOf(s, endpointOf(s)).Hash()}
	s.Plane.Status.AddonsHash = addonsOf(s, endpointOf(s)).Hash()
	s.Addons.At = now
	for _, change := range changes {
		change(&s)
	}
	s.Terms = termsOf(s)
	return s
}

// termsOf are the facts about the control plane that its backend tells.
func termsOf(s snapshot) backend.Capabilities {
	if s.Plane.Spec.Backend.Name() == hostedv1.BackendSimulated {
		return simulated.Terms(s.Policy)
	}
	return process.Terms(s.Policy, s.Terms.Versions)
}

// older is a control plane that an earlier release of this program started.
func older(s *snapshot) {
	s.Plane.Spec.Version, s.Process.Version, s.Process.Config = "v1.36.1", "v1.36.1", ""
	s.Process.Data = processconfig.Data{Exists: true, Version: "v1.36.1"}
}

// elsewhere is a Cluster whose writer has chosen the endpoint.
func elsewhere(host string, port int32) func(*snapshot) {
	return func(s *snapshot) {
		s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: host, Port: port}
		s.Kubeconfig.Server = secrets.Server(endpointOf(*s))
	}
}

func texts(p reconciler.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	return out
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled":  {"nothing to do", running(t), nil},
		"no owner": {"CP-01: no owner, nothing happens", running(t, func(s *snapshot) { s.Cluster = nil }), []string{"wait: Waiting for the Cluster to own this control plane"}},
		"no infrastructure": {"the endpoint comes from there", running(t, func(s *snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }),
			[]string{"wait: Waiting for the infrastructure of Cluster c to be provisioned and its control plane endpoint to be set"}},
		"own endpoint": {"CP-02: used where the Cluster has none", running(t, func(s *snapshot) {
			s.Plane.Spec.ControlPlaneEndpoint, s.Cluster.Spec.ControlPlaneEndpoint = s.Cluster.Spec.ControlPlaneEndpoint, clusterv1.APIEndpoint{}
		}), nil},
		"first": {"SE-02, CP-15", running(t, func(s *snapshot) { s.Secrets, s.Process = map[Purpose]*corev1.Secret{}, backend.ControlPlane{} }),
			[]string{"do: create Secret c-ca: the cluster has no such authority yet", "do: create Secret c-etcd: the cluster has no such authority yet",
				"do: create Secret c-proxy: the cluster has no such authority yet", "do: create Secret c-sa: the cluster has no such authority yet"}},
		"authority lost": {"a new one would not fit what was signed", running(t, func(s *snapshot) { delete(s.Secrets, purposeSA) }),
			[]string{"wait: Secret c-sa is gone; restore it from a backup: the cluster was made with it"}},
		"authority broken": {"SE-02: a user's Secret that cannot be used", running(t, func(s *snapshot) { s.Secrets[purposeCA].Data["tls.key"] = []byte("x") }),
			[]string{"wait: Secret c-ca cannot be used: no private key in PEM data"}},
		"no kubeconfig": {"CP-14", running(t, func(s *snapshot) { s.Kubeconfig = secrets.Kubeconfig{}; delete(s.Secrets, purposeKubeconfig) }),
			[]string{"do: write Secret c-kubeconfig: there is none that can be read"}},
		"half life": {"SE-01: the client certificate is rotated at half life", running(t, func(s *snapshot) { s.Now = now.Add(183 * 24 * time.Hour) }),
			[]string{"do: write Secret c-kubeconfig: half of its client certificate's life is over"}},
		"other endpoint": {"the kubeconfig follows; so does the process, and what it publishes", running(t, func(s *snapshot) { s.Cluster.Spec.ControlPlaneEndpoint.Port = 7443 }),
			[]string{"do: write Secret c-kubeconfig: the endpoint is https://172.31.0.1:7443", "do: start the control plane at v1.36.3: its configuration changed", "wait: The API server is starting"}},
		"owners lost": {"OR-01: what was made here gets its owner back", running(t, func(s *snapshot) {
			s.Secrets[purposeCA].OwnerReferences = nil
			s.Secrets[purposeSA].OwnerReferences[0].UID = "earlier life"
			s.Secrets[purposeKubeconfig].OwnerReferences[0].APIVersion = "controlplane.slipway.dev/v1alpha0"
		}), []string{"do: own Secret c-ca: it lost its owner, so it would stay behind", "do: own Secret c-sa: it lost its owner, so it would stay behind",
			"do: own Secret c-kubeconfig: it lost its owner, so it would stay behind"}},
		"owner of an old kubeconfig lost": {"OR-01: it comes back with the new content", running(t, func(s *snapshot) {
			s.Secrets[purposeKubeconfig].OwnerReferences = nil
			s.Kubeconfig.Server = "https://other"
		}), []string{"do: write Secret c-kubeconfig: the endpoint is https://172.31.0.1:6443"}},
		"authority of somebody else": {"SE-02: left alone", running(t, func(s *snapshot) {
			s.Secrets[purposeCA].OwnerReferences[0].Kind = "Vault"
		}), nil},
		"kubeconfig of the user": {"SE-02: told by its type, and left alone", running(t, func(s *snapshot) {
			s.Secrets[purposeKubeconfig].OwnerReferences, s.Secrets[purposeKubeconfig].Type = nil, corev1.SecretTypeOpaque
			s.Kubeconfig.Server = "https://other"
		}), nil},
		"not supported": {"what runs goes on running", running(t, func(s *snapshot) { s.Plane.Spec.Version = "v1.99.0" }),
			[]string{"wait: Kubernetes v1.99.0 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.99.0`, or set spec.version to one of these"}},
		"an older version": {"another reason than that the host has none", running(t, func(s *snapshot) { s.Plane.Spec.Version, s.Plane.Status.Version = "v1.35.4", "v1.36.3" }),
			[]string{"wait: The control plane is at v1.36.3 and cannot go back to v1.35.4, because what etcd has was written by the newer one; set spec.version to v1.36.3"}},
		"start": {"", running(t, func(s *snapshot) { s.Process = backend.ControlPlane{} }), []string{"do: start the control plane at v1.36.3: it did not run before", "wait: The API server is starting"}},
		"another version": {"CP-04: restarted in place", running(t, func(s *snapshot) {
			s.Plane.Spec.Version = "v1.37.0"
			s.Terms.Versions = append(s.Terms.Versions, "v1.37.0")
		}),
			[]string{"do: start the control plane at v1.37.0: it runs v1.36.3", "wait: The API server is starting"}},
		"slipway restarted": {"the process is taken over", running(t, func(s *snapshot) { s.Process.Config, s.Process.Ready = "", false }),
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a process that lives is taken over", "wait: The API server is starting"}},
		"died": {"the supervisor starts it again", running(t, func(s *snapshot) {
			s.Process.Running, s.Process.Ready, s.Process.EtcdReady, s.Process.LastExit = false, false, false, "signal: killed"
		}), []string{"wait: The control plane died (signal: killed) and is started again"}},
		"starting": {"", running(t, func(s *snapshot) { s.Process.Ready = false }), []string{"wait: The API server does not answer yet"}},
		"bad host": {"the endpoint must be of this machine", running(t, func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneEndpoint.Host = "api.example"
			s.Kubeconfig.Server = "https://api.example:6443"
		}), []string{`wait: control plane endpoint "api.example:6443" must be an IP address of this machine and a port, for example 172.31.0.1:6443`}},
		"data gone": {"H9: it is not started empty", running(t, func(s *snapshot) {
			yes := true
			s.Process = backend.ControlPlane{}
			s.Plane.Status.Initialization.ControlPlaneInitialized = &yes
		}),
			[]string{"wait: The control plane was initialized and its data is not in the data directory of this manager, which may not be the one that had it; restore it from a backup, or delete the cluster: it is not started empty"}},
		"data gone, folder there": {"", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Version: version}}
		}),
			[]string{"wait: The data of the control plane is not here, although it ran Kubernetes v1.36.3; restore it from a backup, or delete the cluster: it is not started empty"}},
		"data gone, restored without status": {"H9: nothing else says that it ran before", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{}
			s.Plane.Annotations = map[string]string{hostedv1.InitializedAnnotation: "true"}
		}),
			[]string{"wait: The control plane was initialized and its data is not in the data directory of this manager, which may not be the one that had it; restore it from a backup, or delete the cluster: it is not started empty"}},
		"data restored, too": {"H9", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: version}}
			s.Plane.Annotations = map[string]string{hostedv1.InitializedAnnotation: "true"}
		}),
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a process that lives is taken over", "wait: The API server is starting"}},
		"initialized": {"H9: it is noted where a restore keeps it", running(t, func(s *snapshot) {
			yes := true
			s.Plane.Status.Initialization.ControlPlaneInitialized = &yes
		}), []string{"do: note in an annotation that the control plane was initialized: a restore may lose its status"}},
		"newer data": {"objects are not converted back", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: "v1.37.1"}}
		}),
			[]string{"wait: The data of the control plane was written by Kubernetes v1.37.1, which is newer than v1.36.3; use a release of slipway that includes v1.37.1 or a newer version"}},
		"a minor version skipped": {"", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: "v1.34.9"}}
		}),
			[]string{"wait: The data of the control plane was written by Kubernetes v1.34.9; v1.36.3 would skip a minor version, so upgrade to each one in between first"}},
		"the next minor version": {"", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: "v1.35.9"}}
		}),
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a process that lives is taken over", "wait: The API server is starting"}},
		"another patch version is included": {"a replaced binary goes on with it", running(t, older, func(s *snapshot) { s.Turn = backend.Turn{Known: true, Mine: true} }),
			[]string{"do: start the control plane at v1.36.3: it runs v1.36.1", "wait: The API server is starting"}},
		"its turn comes later": {"one after the other", running(t, older, func(s *snapshot) { s.Turn = backend.Turn{Known: true} }),
			[]string{"wait: Waiting for another hosted control plane to be ready before this one restarts at v1.36.3"}},
		"it died": {"nothing runs that could wait", running(t, older, func(s *snapshot) { s.Process.Running = false }),
			[]string{"do: start the control plane at v1.36.3: it runs v1.36.1", "wait: The API server is starting"}},
		"a new one of another patch version": {"the spec is what its writer wants", running(t, func(s *snapshot) { s.Plane.Spec.Version = "v1.36.1"; s.Process = backend.ControlPlane{} }),
			[]string{"wait: Kubernetes v1.36.1 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.36.1`, or set spec.version to one of these"}},
		"too many": {"H5: processes of the host", running(t, func(s *snapshot) {
			s.Process, s.Policy.Maxima.ControlPlanes, s.Room = backend.ControlPlane{}, policy.Maximum{Namespace: 3}, backend.PlaneCount{Known: true, Own: 3, All: 3}
		}), []string{"wait: Namespace ns may have 3 at most: delete some, or ask the operator to raise maxima.controlPlanes.namespace in the configuration file (--config of slipway up or slipway manager)"}},
		"every address": {"H6: the plane would be on all networks of the host", running(t, elsewhere("0.0.0.0", 6443)),
			[]string{"wait: Control plane endpoint 0.0.0.0:6443 is not allowed: it must be one address of this host"}},
		"loopback": {"the management cluster is there", running(t, elsewhere("127.0.0.1", 7443)),
			[]string{"wait: Control plane endpoint 127.0.0.1:7443 is not allowed: it must be the host's address in the cluster's network, 172.31.0.1, or the operator allows it in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)"}},
		"another network": {"another cluster's address", running(t, elsewhere("172.16.128.1", 6443)),
			[]string{"wait: Control plane endpoint 172.16.128.1:6443 is not allowed: it must be the host's address in the cluster's network, 172.31.0.1, or the operator allows it in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)"}},
		"port of a service": {"a service of the host could not start", running(t, elsewhere("172.31.0.1", 22)),
			[]string{"wait: Control plane endpoint 172.31.0.1:22 is not allowed: port 22 is reserved; use another, for example 6443"}},
		"port of the management cluster": {"it could not start again", running(t, elsewhere("172.31.0.1", 6440)),
			[]string{"wait: Control plane endpoint 172.31.0.1:6440 is not allowed: port 6440 is one of the management cluster's own; use another"}},
		"no network": {"", running(t, elsewhere("172.31.0.1", 7443), func(s *snapshot) { s.Gateway.Address = netip.Addr{} }),
			[]string{"wait: Control plane endpoint 172.31.0.1:7443 is not allowed: the cluster has no network on this host, and the operator does not allow the address in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)"}},
		"network not known": {"", running(t, elsewhere("172.31.0.1", 7443), func(s *snapshot) { s.Gateway = Gateway{Known: true, Problem: "Docker does not answer"} }),
			[]string{"wait: Docker does not answer"}},
		"address of the operator": {"", running(t, elsewhere("192.0.2.1", 6443), func(s *snapshot) {
			s.Policy.ControlPlanes.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
		}), []string{"do: start the control plane at v1.36.3: its configuration changed", "wait: The API server is starting"}},
		"deleting": {"", running(t, func(s *snapshot) { s.Plane.DeletionTimestamp = &metav1.Time{Time: now} }),
			[]string{"do: stop the control plane and remove its data: it is deleted", "wait: The control plane is being stopped and its data removed"}},
		"deleted": {"", running(t, func(s *snapshot) {
			s.Plane.DeletionTimestamp, s.Process = &metav1.Time{Time: now}, backend.ControlPlane{}
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAddonsFollowTheirParams(t *testing.T) {
	s := running(t, func(s *snapshot) { s.Plane.Spec.Addons.CoreDNS.Disabled = true })
	if got := decide(s).Actions; len(got) != 1 || !strings.HasPrefix(got[0].String(), "apply what nodes need") {
		t.Errorf("another set of add-ons is applied: %v", got)
	}
	p := addonsOf(running(t), clusterv1.APIEndpoint{Host: "h", Port: 1})
	if p.ServiceCIDR != defaultServices || p.PodCIDR != defaultPods || p.ServiceDomain != "cluster.local" || p.ImageRepository != "slipway.dev" || !p.CoreDNS || !p.KubeProxy {
		t.Errorf("defaults: %+v", p)
	}
}

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
			"CertificatesAvailable": "False CertificatesMissing: Secret c-ca is gone; restore it from a backup: the cluster was made with it"}},
		"authority expired": {s: running(t, func(s *snapshot) { s.Now = s.Now.AddDate(11, 0, 0) }), want: wants{
			"CertificatesAvailable": "False Invalid: The certificate in Secret c-ca expired on 2036-05-03T07:08:09Z: nothing that it signs is trusted. Put one that is valid into tls.crt, of the same " +
				"key and subject once there are nodes"}},
		"etcd down": {s: running(t, func(s *snapshot) { s.Process.EtcdReady = false }), want: wants{
			"EtcdClusterAvailable": "False NotAvailable: The API server answers, and etcd does not", "Available": "False NotAvailable: * EtcdClusterAvailable: The API server answers, and etcd does not"}},
		"starting": {s: running(t, func(s *snapshot) { s.Process.Ready, s.Process.EtcdReady = false, false }), want: wants{
			"Available": "False NotAvailable: The API server does not answer yet", "EtcdClusterAvailable": "Unknown NotYetKnown: The API server does not answer yet"}},
		"died": {s: running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Config: s.Process.Config, LastExit: "exit status 1", Log: "no space left"}
		}), want: wants{
			"ProcessRunning": "False Died: The control plane died (exit status 1) and is started again (`slipway logs control-plane p -n ns` has its log); it last said:\nno space left", "EtcdClusterAvailable": "False NotAvailable: The control plane does not run"}},
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
			s.Terms.Versions = append(s.Terms.Versions, "v1.37.0")
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
			"Deleting": "True ControlPlaneStopping: The control plane is being stopped and its data removed", "Available": "False NotAvailable: Deletion in progress"}},
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
	if !isTrue(status.Initialization.ControlPlaneInitialized) || !isTrue(status.ExternalManagedControlPlane) { // CP-08, CP-10
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
	if after := report.Status.(hostedv1.HostedControlPlaneStatus); !isTrue(after.Initialization.ControlPlaneInitialized) || after.Version != "" {
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

func TestSecrets(t *testing.T) { // SE-01, SE-02, SE-03
	s := running(t)
	for purpose, secret := range s.Secrets {
		if secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != "c" || secret.Name != "c-"+string(purpose) || !ownerOf(s.Plane).Manages(secret) {
			t.Errorf("%s: %+v", purpose, secret.ObjectMeta)
		}
	}
	ca, err := pki.ParsePair(s.Secrets[purposeCA].Data["tls.crt"], s.Secrets[purposeCA].Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	if years := ca.Cert.NotAfter.Sub(now).Hours() / 24 / 365; years < 9.9 || years > 10.1 {
		t.Errorf("the authority lives %.1f years, want 10", years)
	}
	k := s.Kubeconfig
	if !k.Readable || k.Server != "https://172.31.0.1:6443" || k.Until.Sub(now).Hours() < 364*24 {
		t.Errorf("kubeconfig %+v", k)
	}
	s.Plane.Spec.CertificateValidityDays = 30
	data, err := newKubeconfig(s, endpointOf(s))
	if err != nil {
		t.Fatal(err)
	}
	if k := secrets.ParseKubeconfig(&corev1.Secret{Data: data}); k.Until.Sub(now).Round(time.Hour) != 30*24*time.Hour {
		t.Errorf("certificate validity: %v", k.Until.Sub(now))
	}
}

// processes is a supervisor whose processes are ready at once.
type processes struct {
	p *backend.ControlPlane
	// local is where their API servers answer on this host.
	local string
}

func (f processes) Status(context.Context, string) (backend.ControlPlane, error) { return *f.p, nil }

func (f processes) Start(_ context.Context, _ string, cfg processconfig.Config, _ map[string][]byte) error {
	*f.p = backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, PID: 1, Local: f.local, Version: cfg.Version, Config: cfg.Hash()}
	return nil
}

func (f processes) Count(context.Context, string) (own, all int, err error) { return 0, 0, nil }

func (f processes) Remove(context.Context, string) error { *f.p = backend.ControlPlane{}; return nil }

func (f processes) Subscribe(func(string)) (cancel func()) { return func() {} }

func (f processes) Terms(p policy.Configuration) backend.Capabilities {
	return process.Terms(p, []string{version})
}

// backends are those that a controller has whose processes are these.
func backends(p backend.ControlPlanes) backend.Set {
	return backend.Set{hostedv1.BackendProcess: {ControlPlanes: p}}
}

// inspected says that all add-ons are available.
func inspected(context.Context, *rest.Config, addons.Params) (addons.State, error) {
	return addons.State{}, nil
}

// gateway is a host whose address in the network of the one LocalCluster is the endpoint.
type gateway struct{}

func (gateway) Gateway(_ context.Context, of types.NamespacedName) (netip.Addr, bool, error) {
	return netip.MustParseAddr("172.31.0.1"), of == types.NamespacedName{Namespace: "ns", Name: "l"}, nil
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, hostedv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func settle(t *testing.T, c client.WithWatch, p *backend.ControlPlane) {
	t.Helper()
	ctl := &controller{client: c, cache: c, backends: backends(processes{p, "127.1.2.3:6443"}), gateways: gateway{}, now: func() time.Time { return now },
		applyObjects: func(context.Context, *rest.Config, addons.Params) error { return nil }, inspect: inspected}
	r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	for range 12 { // a fixed point lies well below
		if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "p"}}); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		}
	}
}

func TestEveryWriteFailsOnce(t *testing.T) { // CP-01, CP-10, CP-14, CP-15
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(plane(), cluster()).WithStatusSubresource(&hostedv1.HostedControlPlane{})
	}
	testkit.EveryWrite(t, build, func(t *testing.T, c client.WithWatch) {
		p := &backend.ControlPlane{}
		settle(t, c, p)
		got := &hostedv1.HostedControlPlane{}
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); err != nil {
			t.Fatal(err)
		}
		if !isTrue(got.Status.Initialization.ControlPlaneInitialized) || !condition.Set(got.Status.Conditions).IsTrue("Available") || got.Annotations[hostedv1.InitializedAnnotation] == "" {
			t.Errorf("annotations %v, status %+v", got.Annotations, got.Status)
		}
		if err := c.Delete(context.Background(), got); errors.Is(err, testkit.ErrInjected) {
			return // this run's failure was the test's own write
		}
		settle(t, c, p)
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(plane()), got); !apierrors.IsNotFound(err) || p.Exists {
			t.Errorf("still there: %v, process %v", err, p.Exists)
		}
	})
}

// table is control planes of which each has its own state.
type table map[string]backend.ControlPlane

func (t table) Status(_ context.Context, name string) (backend.ControlPlane, error) {
	return t[name], nil
}

func (t table) Start(context.Context, string, processconfig.Config, map[string][]byte) error {
	return nil
}

func (t table) Count(context.Context, string) (own, all int, err error) { return 2, len(t), nil }

func (t table) Remove(context.Context, string) error { return nil }

func (t table) Subscribe(func(string)) (cancel func()) { return func() {} }

func (t table) Terms(p policy.Configuration) backend.Capabilities {
	return process.Terms(p, []string{version})
}

// Of many control planes one is restarted at a time, and the next when it is ready.
func TestTurns(t *testing.T) {
	all := table{"ns.a": {Exists: true, Running: true, Ready: true, Version: "v1.36.1"}, "ns.b": {Exists: true, Running: true, Ready: true, Version: "v1.36.1"}}
	ctl := &controller{backends: backends(all)}
	take := func(name string, at time.Time) bool {
		s := running(t, older, func(s *snapshot) { s.Plane.Name, s.Now = name, at })
		s, err := ctl.answer(t.Context(), s, backend.TakeTurn{})
		if err != nil || !s.Turn.Known {
			t.Fatal(err)
		}
		return s.Turn.Mine
	}
	first, again := take("a", now), take("a", now)
	if !first || !again || take("b", now) {
		t.Error("the first has the turn until it is ready at the new version")
	}
	all["ns.a"] = backend.ControlPlane{Exists: true, Running: true, Version: version}
	if take("b", now) {
		t.Error("the first is not ready yet")
	}
	all["ns.a"] = backend.ControlPlane{Exists: true, Running: true, Ready: true, Version: version}
	if !take("b", now) {
		t.Error("the first is ready")
	}
	all["ns.b"] = backend.ControlPlane{Exists: true}
	if take("c", now) || !take("c", now.Add(backend.TurnFor)) {
		t.Error("one that does not get ready holds the others up for a while")
	}
	delete(all, "ns.c")
	if !take("d", now.Add(backend.TurnFor)) {
		t.Error("one that was deleted holds nobody up")
	}
	s, err := ctl.answer(t.Context(), running(t), backend.CountControlPlanes{})
	if want := (backend.PlaneCount{Known: true, Own: 2, All: 2}); err != nil || s.Room != want {
		t.Errorf("%+v, %v", s.Room, err)
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

// The state of add-ons is read again when it is old, sooner where it is not what it should be.
func TestAddonsAreReadAgain(t *testing.T) {
	calls, state := 0, addons.State{Problem: "x"}
	ctl := &controller{backends: backends(processes{}), inspect: func(context.Context, *rest.Config, addons.Params) (addons.State, error) { calls++; return state, nil }}
	at := func(d time.Duration) snapshot {
		s := running(t, func(s *snapshot) { s.Now, s.Process.Local = now.Add(d), "127.1.2.3:6443" })
		s.Addons = ctl.addons.Get(nameOf(s.Plane))
		if p := decide(s); len(p.Ask) > 0 {
			answered, err := ctl.answer(t.Context(), s, p.Ask[0])
			if err != nil || len(decide(answered).Ask) > 0 {
				t.Fatalf("asked again: %v", err)
			}
			return answered
		}
		return s
	}
	if s := at(0); calls != 1 || s.Addons.Problem != "x" || decide(s).Recheck != badFor {
		t.Errorf("%d calls, %+v", calls, s.Addons)
	}
	state = addons.State{}
	if at(badFor - time.Second); calls != 1 {
		t.Error("read again too soon")
	}
	if s := at(badFor); calls != 2 || s.Addons.Problem != "" || decide(s).Recheck != goodFor {
		t.Errorf("%d calls, %+v", calls, s.Addons)
	}
	if at(badFor + goodFor - time.Second); calls != 2 {
		t.Error("read again too soon")
	}
	ctl.inspect = func(context.Context, *rest.Config, addons.Params) (addons.State, error) {
		return addons.State{}, errors.New("x")
	}
	if s := at(badFor + goodFor); s.Addons.Err == "" {
		t.Error("an error is not said")
	}
}

// A version that this host does not have is checked for again, because no watch tells when the operator has added it; what is
// no version is not put into a command.
func TestVersionThatIsNotAvailable(t *testing.T) {
	s := running(t, func(s *snapshot) { s.Plane.Spec.Version, s.Process = "v1.35.4", backend.ControlPlane{} })
	p := decide(s)
	if p.Recheck != versionAgain || len(p.Actions) > 0 {
		t.Errorf("checked again after %s, actions %v", p.Recheck, p.Actions)
	}
	s.Terms.Versions = append(s.Terms.Versions, "v1.35.4")
	if p := decide(s); len(p.Actions) != 1 || !strings.Contains(p.Actions[0].String(), "start the control plane at v1.35.4") {
		t.Errorf("added: %v", p.Actions)
	}
	s.Plane.Spec.Version = "v1.35.4; reboot"
	if message := decide(s).Waits[0].Message; strings.Contains(message, "slipway versions add") {
		t.Error(message)
	}
}

// The status says which authority is in effect: the process runs with it, and nodes that join are told of it.
func TestAuthorityInEffect(t *testing.T) { // CP-15
	another, err := secrets.Generate(purposeCA, secrets.Keys{}, now)
	must(t, err)
	changed := func(s *snapshot) {
		s.Plane.Status.Authority = "before"
		s.Secrets[purposeCA] = s.Secrets[purposeCA].DeepCopy()
		s.Secrets[purposeCA].Data = another
	}
	restarted := func(s *snapshot) { s.Process.Config = configOf(*s, endpointOf(*s)).Hash() }
	starting := func(s *snapshot) { s.Process.Ready = false }
	hash := func(s snapshot) string { return addonsOf(s, endpointOf(s)).Hash() }
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
