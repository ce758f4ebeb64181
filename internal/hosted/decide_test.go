package hosted

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/policy"
)

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
		"first": {"SE-02, CP-15", running(t, func(s *snapshot) { s.Secrets, s.Process = map[secretPurpose]*corev1.Secret{}, backend.ControlPlane{} }),
			[]string{"do: create Secret c-ca: it does not exist yet", "do: create Secret c-etcd: it does not exist yet",
				"do: create Secret c-proxy: it does not exist yet", "do: create Secret c-sa: it does not exist yet"}},
		"authority lost": {"a new one would not fit what was signed", running(t, func(s *snapshot) { delete(s.Secrets, purposeSA) }),
			[]string{"wait: Secret c-sa is missing; restore it from a backup, because the cluster was created with it"}},
		"authority broken": {"SE-02: a user's Secret that cannot be used", running(t, func(s *snapshot) { s.Secrets[purposeCA].Data["tls.key"] = []byte("x") }),
			[]string{"wait: Secret c-ca cannot be used: no private key in PEM data"}},
		"no kubeconfig": {"CP-14", running(t, func(s *snapshot) { s.Kubeconfig = secrets.Kubeconfig{}; delete(s.Secrets, purposeKubeconfig) }),
			[]string{"do: write Secret c-kubeconfig: it does not exist or cannot be read"}},
		"half life": {"SE-01: the client certificate is rotated at half life", running(t, func(s *snapshot) { s.Now = now.Add(183 * 24 * time.Hour) }),
			[]string{"do: write Secret c-kubeconfig: its client certificate has passed half of its lifetime"}},
		"other endpoint": {"the kubeconfig follows; so does the process, and what it publishes", running(t, func(s *snapshot) { s.Cluster.Spec.ControlPlaneEndpoint.Port = 7443 }),
			[]string{"do: write Secret c-kubeconfig: the endpoint is https://172.31.0.1:7443", "do: start the control plane at v1.36.3: its configuration changed", "wait: The API server is starting"}},
		"owners lost": {"OR-01: what was made here gets its owner back", running(t, func(s *snapshot) {
			s.Secrets[purposeCA].OwnerReferences = nil
			s.Secrets[purposeSA].OwnerReferences[0].UID = "earlier life"
			s.Secrets[purposeKubeconfig].OwnerReferences[0].APIVersion = "controlplane.slipway.dev/v1alpha0"
		}), []string{"do: own Secret c-ca: it has no owner that deletes it", "do: own Secret c-sa: it has no owner that deletes it",
			"do: own Secret c-kubeconfig: it has no owner that deletes it"}},
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
			[]string{"wait: The control plane is at v1.36.3 and cannot be downgraded to v1.35.4, because etcd has data of the newer version; set spec.version to v1.36.3"}},
		"start": {"", running(t, func(s *snapshot) { s.Process = backend.ControlPlane{} }), []string{"do: start the control plane at v1.36.3: it has not run yet", "wait: The API server is starting"}},
		"another version": {"CP-04: restarted in place", running(t, func(s *snapshot) {
			s.Plane.Spec.Version = "v1.37.0"
			s.Capabilities.Versions = append(s.Capabilities.Versions, "v1.37.0")
		}),
			[]string{"do: start the control plane at v1.37.0: it runs v1.36.3", "wait: The API server is starting"}},
		"slipway restarted": {"the process is taken over", running(t, func(s *snapshot) { s.Process.Config, s.Process.Ready = "", false }),
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a running process is adopted", "wait: The API server is starting"}},
		"died": {"the supervisor starts it again", running(t, func(s *snapshot) {
			s.Process.Running, s.Process.Ready, s.Process.EtcdReady, s.Process.LastExit = false, false, false, "signal: killed"
		}), []string{"wait: The control plane exited (signal: killed) and is being restarted"}},
		"starting": {"", running(t, func(s *snapshot) { s.Process.Ready = false }), []string{"wait: The API server is not ready yet"}},
		"bad host": {"the endpoint must be of this machine", running(t, func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneEndpoint.Host = "api.example"
			s.Kubeconfig.Server = "https://api.example:6443"
		}), []string{`wait: control plane endpoint "api.example:6443" must be an IP address of this machine and a port, for example 172.31.0.1:6443`}},
		"data gone": {"H9: it is not started empty", running(t, func(s *snapshot) {
			yes := true
			s.Process = backend.ControlPlane{}
			s.Plane.Status.Initialization.ControlPlaneInitialized = &yes
		}),
			[]string{"wait: The control plane was initialized, but its data is not in the data directory of this manager, which may not be the one that had it; restore it from a backup, or delete the cluster, because Slipway does not start it without data"}},
		"data gone, folder there": {"", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Version: version}}
		}),
			[]string{"wait: The data of the control plane is missing, although it ran Kubernetes v1.36.3; restore it from a backup, or delete the cluster, because Slipway does not start it without data"}},
		"data gone, restored without status": {"H9: nothing else says that it ran before", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{}
			s.Plane.Annotations = map[string]string{hostedv1.InitializedAnnotation: "true"}
		}),
			[]string{"wait: The control plane was initialized, but its data is not in the data directory of this manager, which may not be the one that had it; restore it from a backup, or delete the cluster, because Slipway does not start it without data"}},
		"data restored, too": {"H9", running(t, func(s *snapshot) {
			s.Process = backend.ControlPlane{Exists: true, Data: processconfig.Data{Exists: true, Version: version}}
			s.Plane.Annotations = map[string]string{hostedv1.InitializedAnnotation: "true"}
		}),
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a running process is adopted", "wait: The API server is starting"}},
		"initialized": {"H9: it is noted where a restore keeps it", running(t, func(s *snapshot) {
			yes := true
			s.Plane.Status.Initialization.ControlPlaneInitialized = &yes
		}), []string{"do: record in an annotation that the control plane was initialized, because a restore may lose its status"}},
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
			[]string{"do: start the control plane at v1.36.3: slipway was restarted; a running process is adopted", "wait: The API server is starting"}},
		"another patch version is included": {"a replaced binary goes on with it", running(t, older, func(s *snapshot) { s.Turn = backend.Turn{Known: true, Granted: true} }),
			[]string{"do: start the control plane at v1.36.3: it runs v1.36.1", "wait: The API server is starting"}},
		"its turn comes later": {"one after the other", running(t, older, func(s *snapshot) { s.Turn = backend.Turn{Known: true} }),
			[]string{"wait: Waiting for another hosted control plane to be ready before this one restarts at v1.36.3"}},
		"it died": {"nothing runs that could wait", running(t, older, func(s *snapshot) { s.Process.Running = false }),
			[]string{"do: start the control plane at v1.36.3: it runs v1.36.1", "wait: The API server is starting"}},
		"a new one of another patch version": {"the spec is what its writer wants", running(t, func(s *snapshot) { s.Plane.Spec.Version = "v1.36.1"; s.Process = backend.ControlPlane{} }),
			[]string{"wait: Kubernetes v1.36.1 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.36.1`, or set spec.version to one of these"}},
		"too many": {"H5: processes of the host", running(t, func(s *snapshot) {
			s.Process, s.Policy.Maxima.ControlPlanes, s.PlaneCount = backend.ControlPlane{}, policy.Maximum{Namespace: 3}, backend.PlaneCount{Known: true, Own: 3, All: 3}
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
			[]string{"wait: Control plane endpoint 172.31.0.1:6440 is not allowed: port 6440 is used by the management cluster; use another"}},
		"no network": {"", running(t, elsewhere("172.31.0.1", 7443), func(s *snapshot) { s.Gateway.Address = netip.Addr{} }),
			[]string{"wait: Control plane endpoint 172.31.0.1:7443 is not allowed: the cluster has no network on this host, and the operator does not allow the address in controlPlanes.addresses in the configuration file (--config of slipway up or slipway manager)"}},
		"network not known": {"", running(t, elsewhere("172.31.0.1", 7443), func(s *snapshot) { s.Gateway = hostGateway{Known: true, Problem: "Docker does not respond"} }),
			[]string{"wait: Docker does not respond"}},
		"address of the operator": {"", running(t, elsewhere("192.0.2.1", 6443), func(s *snapshot) {
			s.Policy.ControlPlanes.Addresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
		}), []string{"do: start the control plane at v1.36.3: its configuration changed", "wait: The API server is starting"}},
		"deleting": {"", running(t, func(s *snapshot) { s.Plane.DeletionTimestamp = &metav1.Time{Time: now} }),
			[]string{"do: stop the control plane and delete its data: it is being deleted", "wait: The control plane is being stopped and its data is being deleted"}},
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
	if got := decide(s).Actions; len(got) != 1 || !strings.HasPrefix(got[0].String(), "apply the add-ons") {
		t.Errorf("another set of add-ons is applied: %v", got)
	}
	p := addonsOf(running(t))
	if p.ServiceCIDR != defaultServices || p.PodCIDR != defaultPods || p.ServiceDomain != "cluster.local" || p.ImageRepository != "slipway.dev" || !p.CoreDNS || !p.KubeProxy {
		t.Errorf("defaults: %+v", p)
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
	s.Capabilities.Versions = append(s.Capabilities.Versions, "v1.35.4")
	if p := decide(s); len(p.Actions) != 1 || !strings.Contains(p.Actions[0].String(), "start the control plane at v1.35.4") {
		t.Errorf("added: %v", p.Actions)
	}
	s.Plane.Spec.Version = "v1.35.4; reboot"
	if message := decide(s).Waits[0].Message; strings.Contains(message, "slipway versions add") {
		t.Error(message)
	}
}
