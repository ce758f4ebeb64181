package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit"
)

// authorities are Secrets of cluster c with these purposes.
func authorities(purposes ...secrets.Purpose) secrets.Secrets {
	out := secrets.Secrets{}
	for _, p := range purposes {
		from := p
		if p == secrets.EtcdClient {
			from = secrets.CA // any pair
		}
		data, err := secrets.Generate(from, secrets.KeyOptions{}, now)
		if err != nil {
			panic(err)
		}
		out[p] = secrets.NewSecret(client.ObjectKey{Namespace: "ns", Name: "c"}, p, secrets.Owner{}, data)
	}
	return out
}

func allAuthorities() secrets.Secrets {
	return authorities(secrets.CA, secrets.Etcd, secrets.Proxy, secrets.SA)
}

// ofControlPlane is a Machine of an initialized control plane, whose lock is known to be released.
func ofControlPlane(s *snapshot) {
	s.Owner.ControlPlane, s.Lock = true, &initLockState{}
	s.RenderInput.Authorities = allAuthorities()
	s.RenderInput.CA = s.RenderInput.Authorities[secrets.CA].Data["tls.crt"]
}

// uninitialized is the same before there is a control plane, with the lock held by the Machine.
func uninitialized(s *snapshot) {
	ofControlPlane(s)
	s.Cluster.Status.Initialization.ControlPlaneInitialized = nil
	s.Connected = false
	lockedBy("m")(s)
}

func lockedBy(machine string) change {
	return func(s *snapshot) { s.Lock = &initLockState{ConfigMap: &corev1.ConfigMap{}, Holder: machine} }
}

func holderGone(s *snapshot) { s.Lock.HolderGone = true }

func unlocked(s *snapshot) { s.Lock = &initLockState{} }

func lockUnknown(s *snapshot) { s.Lock = nil }

func withPlane(s *snapshot) {
	s.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.cluster.x-k8s.io", Kind: "KubeadmControlPlane", Name: "kcp"}
}

func only(purposes ...secrets.Purpose) change {
	return func(s *snapshot) {
		for p := range s.RenderInput.Authorities {
			kept := false
			for _, keep := range purposes {
				kept = kept || keep == p
			}
			if !kept {
				delete(s.RenderInput.Authorities, p)
			}
		}
	}
}

// bundled has an authority with a certificate more.
func bundled(s *snapshot) {
	ca := s.RenderInput.Authorities[secrets.CA].DeepCopy()
	ca.Data["tls.crt"] = append(ca.Data["tls.crt"], s.RenderInput.Authorities[secrets.Etcd].Data["tls.crt"]...)
	s.RenderInput.Authorities[secrets.CA], s.RenderInput.CA = ca, ca.Data["tls.crt"]
}

func externalEtcd(s *snapshot) {
	s.Config.Spec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
		Endpoints: []string{"https://e:2379"}, CAFile: "/e/ca.crt", CertFile: "/e/client.crt", KeyFile: "/e/client.key"}
}

// KB-04, KB-05, KB-06, KB-23
func TestDecideControlPlane(t *testing.T) {
	take, write := takeLock{Cluster: "c", Machine: "m"}, writeData{Name: "w"}
	create := func(purposes ...secrets.Purpose) []reconciler.Action {
		var out []reconciler.Action
		for _, p := range purposes {
			out = append(out, createAuthority{Purpose: p, Cluster: "c"})
		}
		return out
	}
	for name, tc := range map[string]struct {
		reason string
		in     []change
		do     []reconciler.Action
		ask    []reconciler.ReadRequest
		wait   string
		says   string
		again  time.Duration
	}{
		"no infrastructure": {"the endpoint comes with it", []change{uninitialized, func(s *snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }}, nil, nil, waitInfrastructure, "infrastructure of Cluster c", 0},
		"no endpoint":       {"the certificate of the API server has it", []change{uninitialized, func(s *snapshot) { s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }}, nil, nil, waitControlPlane, "endpoint", 0},
		"a worker waits":    {"for the control plane, and takes no lock", []change{uninitialized, lockUnknown, func(s *snapshot) { s.Owner.ControlPlane = false }}, nil, nil, waitControlPlane, "to be initialized", 0},

		"lock not read":       {"it is read when it matters", []change{uninitialized, lockUnknown}, nil, []reconciler.ReadRequest{readLock{}}, "", "", 0},
		"no lock":             {"it is taken, and nothing else before that was seen", []change{uninitialized, unlocked}, []reconciler.Action{take}, nil, "", "", afterCreating},
		"lock of another":     {"it waits for that one", []change{uninitialized, lockedBy("other")}, nil, nil, waitControlPlane, "Waiting for Machine other to initialize the control plane of Cluster c", whileLocked},
		"lock of one gone":    {"it is released, and taken in another reconcile", []change{uninitialized, lockedBy("other"), holderGone}, []reconciler.Action{releaseLock{Cluster: "c", Why: "Machine other does not exist"}}, nil, "", "", afterCreating},
		"lock without holder": {"a person has to say", []change{uninitialized, lockedBy("")}, nil, nil, waitCorrection, "ConfigMap c-lock does not name", whileLocked},

		"own lock":             {"after a crash it is still its own", []change{uninitialized}, []reconciler.Action{write}, nil, "", "", 0},
		"no material":          {"it is asked for once the lock is held", []change{uninitialized, func(s *snapshot) { s.RenderInput = nil }}, nil, []reconciler.ReadRequest{readRenderInput{}}, "", "", 0},
		"no certificates":      {"they are created before the data", []change{uninitialized, only()}, create(secrets.CA, secrets.Etcd, secrets.Proxy, secrets.SA), nil, "", "", afterCreating},
		"a user's certificate": {"it is used, the others are created", []change{uninitialized, only(secrets.CA)}, create(secrets.Etcd, secrets.Proxy, secrets.SA), nil, "", "", afterCreating},
		"gone after the data":  {"a machine may have the old ones", []change{uninitialized, only(secrets.CA), carrying("x")}, nil, nil, waitCertificates, "Secret c-etcd does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored", unwatched},
		"of a control plane":   {"its controller creates them", []change{uninitialized, withPlane, only(secrets.CA)}, nil, nil, waitCertificates, "Waiting for KubeadmControlPlane kcp to create Secret c-etcd", unwatched},
		"broken certificate":   {"it is named", []change{uninitialized, func(s *snapshot) { s.RenderInput.Authorities[secrets.SA].Data["tls.key"] = []byte("x") }}, nil, nil, waitCertificates, "Secret c-sa cannot be used", unwatched},
		"two certificates":     {"kube-controller-manager would not start with them", []change{uninitialized, bundled}, nil, nil, waitCertificates, "Secret c-ca has 2 certificates", unwatched},
		"external etcd":        {"its certificates are a person's", []change{uninitialized, externalEtcd, only(secrets.CA, secrets.Proxy, secrets.SA)}, nil, nil, waitCertificates, "Secret c-etcd does not exist; create it", unwatched},
		"external etcd, all": {"they are there", []change{uninitialized, externalEtcd, func(s *snapshot) {
			s.RenderInput.Authorities[secrets.EtcdClient] = authorities(secrets.EtcdClient)[secrets.EtcdClient]
		}}, []reconciler.Action{write}, nil, "", "", 0},
		"no version":        {"kubeadm's API depends on it", []change{uninitialized, func(s *snapshot) { s.Owner.Version = "" }}, nil, nil, waitCorrection, "has no Kubernetes version", unwatched},
		"secret of another": {"it is not taken away", []change{uninitialized, controlled("Machine", "x")}, nil, nil, waitCorrection, "belongs to Machine x", unwatched},

		"made":                   {"it has the lock until the control plane is initialized", []change{uninitialized, made}, nil, nil, "", "", 0},
		"made, token of a user":  {"no API server knows tokens yet", []change{uninitialized, made, chosen}, nil, nil, "", "", 0},
		"initialized, lock left": {"any Machine of the control plane releases it", []change{ofControlPlane, made, lockedBy("other"), func(s *snapshot) { s.Owner.Joined = true }}, []reconciler.Action{releaseLock{Cluster: "c", Why: "its control plane is initialized"}}, nil, "", "", 0},
		"initialized, not read":  {"it is read once", []change{ofControlPlane, made, lockUnknown, func(s *snapshot) { s.Owner.Joined = true }}, nil, []reconciler.ReadRequest{readLock{}}, "", "", 0},

		"joins":                   {"with a token, as a worker does", []change{ofControlPlane, chosen, noToken}, []reconciler.Action{createToken{ID: "abcdef"}, write}, nil, "", "", ttl / 3},
		"joins, no token":         {"one is chosen first", []change{ofControlPlane}, []reconciler.Action{chooseToken{Why: "spec has none"}}, nil, "", "", 0},
		"joins, a key is gone":    {"nothing is generated again", []change{ofControlPlane, chosen, tokenLeft(ttl), only(secrets.CA, secrets.Etcd, secrets.Proxy)}, nil, nil, waitCertificates, "Secret c-sa does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored", unwatched},
		"joins, two certificates": {"its configuration is that of the control plane", []change{ofControlPlane, withPlane, fileDiscovery, bundled}, nil, nil, waitCertificates, "Secret c-ca has 2 certificates", unwatched},
		"joins others":            {"how they sign is not in its configuration", []change{ofControlPlane, fileDiscovery, bundled}, []reconciler.Action{write}, nil, "", "", 0},
		"joins, file":             {"it needs no token", []change{ofControlPlane, fileDiscovery}, []reconciler.Action{write}, nil, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(newSnapshot(tc.in...))
			if diff := cmp.Diff(tc.do, got.Actions); diff != "" {
				t.Errorf("%s: actions (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ask, got.Reads); diff != "" {
				t.Errorf("%s: questions (-want +got):\n%s", tc.reason, diff)
			}
			reason, message := "", ""
			if len(got.Waits) > 0 {
				reason, message = got.Waits[0].Reason, got.Waits[0].Message
			}
			if reason != tc.wait || !strings.Contains(message, tc.says) || len(got.Waits) > 1 {
				t.Errorf("%s: want a wait %q that says %q, got %v", tc.reason, tc.wait, tc.says, got.Waits)
			}
			if got.Recheck != tc.again {
				t.Errorf("%s: want to check again in %s, got %s", tc.reason, tc.again, got.Recheck)
			}
		})
	}
}

// KB-06, KB-08, KB-22, KB-23: what each role gets of the same spec.
func TestRenderRoles(t *testing.T) {
	spec := func(s *snapshot) {
		chosen(s)
		s.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.244.0.0/16"}
		s.Config.Spec.InitConfiguration.SkipPhases = []string{"init-phase"}
		s.Config.Spec.JoinConfiguration.SkipPhases = []string{"join-phase"}
	}
	keys := []string{"/etc/kubernetes/pki/ca.key", "/etc/kubernetes/pki/etcd/ca.key", "/etc/kubernetes/pki/front-proxy-ca.key", "/etc/kubernetes/pki/sa.key"}
	inits := []string{"kind: ClusterConfiguration", "kind: InitConfiguration", "podSubnet:", "clusterName: c", "init-phase",
		`controlPlaneEndpoint: "10.0.0.1:6443"`, "kubeadm init --config /run/kubeadm/kubeadm.yaml"}
	joins := []string{"kind: JoinConfiguration", "join-phase", "token: " + token, "sha256:", "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml"}
	for name, tc := range map[string]struct {
		in        []change
		has, lack []string
	}{
		"init":          {[]change{uninitialized, spec}, append(keys, inits...), append(joins, "uninitialized")},
		"control plane": {[]change{ofControlPlane, spec}, append(append(keys, joins...), "controlPlane: {}"), append(inits, "uninitialized")},
		"worker":        {[]change{spec}, append(joins, "node.cluster.x-k8s.io/uninitialized"), append(keys, append(inits, "controlPlane", "PRIVATE KEY")...)},
	} {
		s := newSnapshot(tc.in...)
		before := s.Config.DeepCopy()
		got, err := render(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, want := range tc.has {
			if !bytes.Contains(got.Value, []byte(want)) {
				t.Errorf("%s: want %q in\n%s", name, want, got.Value)
			}
		}
		for _, not := range tc.lack {
			if bytes.Contains(got.Value, []byte(not)) {
				t.Errorf("%s: %q is in\n%s", name, not, got.Value)
			}
		}
		if diff := cmp.Diff(before, s.Config); diff != "" {
			t.Errorf("%s: what is filled in is never written back (-want +got):\n%s", name, diff)
		}
		if _, err := cloudinit.RenderScript(cloudinit.BootstrapData{Value: got.Value}, cloudinit.NodeSettings{}, time.Minute); err != nil {
			t.Errorf("%s: a machine cannot read it: %v", name, err)
		}
	}
}

// KB-14: the gate lets the format in, and kubeadm's configuration is where commands of users expect it.
func TestRenderIgnition(t *testing.T) {
	s := newSnapshot(uninitialized, func(s *snapshot) { s.Config.Spec.Format, s.Ignition = bootstrapv1.Ignition, true })
	got, err := render(s)
	if err != nil || got.Format != bootstrapv1.Ignition || !bytes.Contains(got.Value, []byte(`"/etc/kubeadm.yml"`)) || bytes.Contains(got.Value, []byte("/run/kubeadm")) {
		t.Errorf("%v, %s\n%s", err, got.Format, got.Value)
	}
	s.Ignition = false
	if _, err := render(s); err == nil || !strings.Contains(err.Error(), "requires the feature gate KubeadmBootstrapFormatIgnition") {
		t.Errorf("without the gate: %v", err)
	}
}

func controlPlaneMachine() *clusterv1.Machine {
	return machine(func(m *clusterv1.Machine) { m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} })
}

func uninitializedCluster() *clusterv1.Cluster {
	c := cluster()
	c.UID = "cluster"
	c.Status.Initialization.ControlPlaneInitialized = nil
	return c
}

// lock returns the holder of the lock; empty: there is none.
func (w *world) lock() string {
	w.t.Helper()
	lock := &corev1.ConfigMap{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "c-lock"}, lock)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return lock.Data["lock-information"]
}

// KB-05, KB-23: a crash at any write leaves one lock, one set of certificates, and data that was made once with them.
func TestFirstMachineWhileWritesFail(t *testing.T) {
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		return build(t, ownedBy("Machine", "m"), controlPlaneMachine(), uninitializedCluster())
	}, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.remote.down = true
		w.settle()
		if got := w.lock(); got != `{"machineName":"m"}` {
			t.Errorf("the lock says %q", got)
		}
		value := string(w.data().Data["value"])
		for _, name := range []string{"c-ca", "c-etcd", "c-proxy", "c-sa"} {
			s, err := getSecret(context.Background(), c, client.ObjectKey{Namespace: "ns", Name: name})
			if err != nil || s == nil {
				t.Fatalf("Secret %s: %v", name, err)
			}
			owner := metav1.GetControllerOf(s)
			if owner == nil || owner.Kind != "KubeadmConfig" || owner.Name != "w" || s.Labels[clusterv1.ClusterNameLabel] != "c" || s.Type != clusterv1.ClusterSecretType {
				t.Errorf("%s: %+v", name, s.ObjectMeta)
			}
			line := strings.Split(string(s.Data["tls.crt"]), "\n")[1]
			if !strings.Contains(value, line) {
				t.Errorf("the data has another %s", name)
			}
		}
		if config := w.config(); config.Status.DataSecretName != "w" || conditionOf(config, "CertificatesAvailable") != "True" || !cmp.Equal(config.Spec, bootstrapv1.KubeadmConfigSpec{}) {
			t.Errorf("status %+v, spec %+v", config.Status, config.Spec)
		}

		initialized := cluster()
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(initialized), initialized); err != nil {
			t.Fatal(err)
		}
		initialized.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		if err := c.Status().Update(context.Background(), initialized); err != nil && !errors.Is(err, testkit.ErrInjected) {
			t.Fatal(err)
		} else if err != nil {
			return // this run's failure was the test's own write
		}
		w.settle()
		if got := w.lock(); got != "" {
			t.Errorf("initialized, and still locked by %s", got)
		}
		if string(w.data().Data["value"]) != value {
			t.Error("the data was made a second time")
		}
	})
}

// KB-05: the second Machine waits while the first one exists, and takes over when it is gone.
func TestSecondMachineWaits(t *testing.T) {
	other := controlPlaneMachine()
	other.Name, other.UID = "other", "other"
	lock, err := newInitLock(uninitializedCluster(), "other")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, build(t, ownedBy("Machine", "m"), controlPlaneMachine(), other, uninitializedCluster(), lock).WithReturnManagedFields().Build())
	w.remote.down = true
	if again := w.settle(); again != 30*time.Second || w.config().Status.DataSecretName != "" || w.lock() != `{"machineName":"other"}` {
		t.Errorf("checks again in %s, lock %s, status %+v", again, w.lock(), w.config().Status)
	}
	if err := w.client.Delete(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.lock(); got != `{"machineName":"m"}` || w.config().Status.DataSecretName != "w" {
		t.Errorf("lock %s, status %+v", got, w.config().Status)
	}
}

// The lock of an initialized Cluster is read once, however many Machines its control plane has.
func TestReleasesAreRemembered(t *testing.T) {
	c := cluster()
	c.UID = "one"
	var r releases
	if r.has(c) {
		t.Error("nothing is known yet")
	}
	r.note(c)
	again := c.DeepCopy()
	again.UID = "two"
	if !r.has(c) || r.has(again) {
		t.Error("a Cluster that was created again has a lock of its own")
	}
	if r.forget(client.ObjectKeyFromObject(c)); r.has(c) {
		t.Error("forgotten")
	}
}
