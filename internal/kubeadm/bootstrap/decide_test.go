package bootstrap

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	bootstraprender "github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	token = "abcdef.0123456789abcdef"
	ttl   = 12 * time.Minute
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// certificate returns a CA certificate in PEM.
func certificate() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: now}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func config() *bootstrapv1.KubeadmConfig {
	return &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "w", UID: "config", Generation: 3, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
	}}
}

func cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	return c
}

// change is a deviation from a snapshot in which everything is there, and nothing done.
type change func(*snapshot)

func newSnapshot(changes ...change) snapshot {
	s := snapshot{
		Now: now, TTL: ttl, Config: config(), Cluster: cluster(), Connected: true,
		Owner:       &configOwner{Kind: kindMachine, Name: "m", ClusterName: "c", Version: "v1.36.3"},
		RenderInput: &renderInput{CA: certificate(), Secrets: bootstraprender.Secrets{}},
	}
	for _, c := range changes {
		c(&s)
	}
	return s
}

func chosen(s *snapshot) { s.Config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = token }

func tokenLeft(d time.Duration) change {
	return func(s *snapshot) { s.Token = &tokenState{Found: true, Expires: now.Add(d)} }
}

func noToken(s *snapshot) { s.Token = &tokenState{} }

func made(s *snapshot) { s.Config.Status.DataSecretName = "w" }

func clusterGoes(s *snapshot) { s.Cluster.DeletionTimestamp = &metav1.Time{Time: now} }

func pool(s *snapshot) { s.Owner.Kind, s.Owner.Name = kindMachinePool, "p" }

// carrying puts data with a token into the data Secret.
func carrying(token string) change {
	return func(s *snapshot) {
		s.RenderInput.Data = &corev1.Secret{Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("token: " + token)}}
	}
}

func data(f func(*corev1.Secret)) change {
	return func(s *snapshot) {
		s.RenderInput.Data = &corev1.Secret{Type: clusterv1.ClusterSecretType}
		f(s.RenderInput.Data)
	}
}

func fileDiscovery(s *snapshot) {
	s.Config.Spec.JoinConfiguration.Discovery.File = bootstrapv1.FileDiscovery{KubeConfigPath: "/mine"}
}

func controlled(kind, name string) change {
	return data(func(s *corev1.Secret) {
		s.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: "other", Controller: ptr.To(true)}}
	})
}

func TestDecide(t *testing.T) {
	create, extend, write := createToken{ID: "abcdef"}, extendToken{ID: "abcdef"}, writeData{Name: "w"}
	choose, rotate := chooseToken{Why: "spec has none"}, chooseToken{Why: "the present one has passed half of its lifetime"}
	askToken := readToken{ID: "abcdef"}
	cases := map[string]struct {
		reason string
		in     []change
		do     []reconciler.Action
		ask    []reconciler.ReadRequest
		wait   string // the reason of the wait
		says   string // what its message contains
		again  time.Duration
	}{
		// KB-01, BC-10
		"no owner":               {"nothing is made for nobody", []change{func(s *snapshot) { s.Owner = nil }}, nil, nil, waitOwner, "Machine or MachinePool", 0},
		"no cluster":             {"it may come", []change{func(s *snapshot) { s.Cluster = nil }}, nil, nil, waitCluster, "Cluster c to exist", 0},
		"cluster deleting":       {"no more machines", []change{clusterGoes}, nil, nil, waitCluster, "being deleted", 0},
		"made, cluster deleting": {"nobody waits for anything: the status stays, and with it the Machine's", []change{made, chosen, noToken, clusterGoes}, nil, nil, "", "", 0},
		// KB-04
		"no infrastructure": {"first the network", []change{func(s *snapshot) { s.Cluster.Status.Initialization.InfrastructureProvisioned = nil }}, nil, nil, waitInfrastructure, "infrastructure of Cluster c", 0},
		"no control plane":  {"workers wait for it", []change{func(s *snapshot) { s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(false) }}, nil, nil, waitControlPlane, "control plane of Cluster c", 0},
		"no endpoint":       {"nowhere to join", []change{func(s *snapshot) { s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{} }}, nil, nil, waitControlPlane, "endpoint", 0},

		"no material": {"it is asked for when it is needed", []change{func(s *snapshot) { s.RenderInput = nil }}, nil, []reconciler.ReadRequest{readRenderInput{}}, "", "", 0},
		"no CA":       {"its Secret is named", []change{func(s *snapshot) { s.RenderInput.CA = nil }}, nil, nil, waitCertificates, "Secret c-ca", unwatched}, // KB-23
		"broken CA":   {"a machine is never told to trust anybody because of it", []change{func(s *snapshot) { s.RenderInput.CA = []byte("x") }}, nil, nil, waitCertificates, "Secret c-ca", unwatched},
		// KB-15
		"no content": {"what is missing is named", []change{func(s *snapshot) {
			s.Config.Spec.Files = []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "x", Key: "y"}}}}
		}}, nil, nil, waitCorrection, "File /f comes from Secret x, which does not exist", unwatched},
		// CX-08
		"content denied": {"credentials of a cluster, where users read none", []change{func(s *snapshot) {
			s.Config.Spec.Files = []bootstrapv1.File{{Path: "/f", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "x", Key: "y"}}}}
			s.RenderInput.Denied = map[string]string{"x": "Secret x is not for you"}
		}}, nil, nil, waitCorrection, "File /f: Secret x is not for you", unwatched},
		"password denied": {"as a file", []change{func(s *snapshot) {
			s.Config.Spec.Users = []bootstrapv1.User{{Name: "u", PasswdFrom: bootstrapv1.PasswdSource{Secret: bootstrapv1.SecretPasswdSource{Name: "x", Key: "y"}}}}
			s.RenderInput.Denied = map[string]string{"x": "Secret x is not for you"}
		}}, nil, nil, waitCorrection, "The password of user u: Secret x is not for you", unwatched},
		"keys of a hosted control plane": {"the label of the control plane is anyone's to set", []change{func(s *snapshot) {
			s.Owner.ControlPlane, s.Cluster.Spec.ControlPlaneRef.Kind, s.Lock = true, "HostedControlPlane", &initLockState{}
		}}, nil, nil, waitCorrection, "create the Machine without label cluster.x-k8s.io/control-plane", 0},
		"no version":                 {"kubeadm's API depends on it", []change{func(s *snapshot) { s.Owner.Version = "" }}, nil, nil, waitCorrection, "Machine m has no Kubernetes version", unwatched},
		"unknown format":             {"there are two", []change{func(s *snapshot) { s.Config.Spec.Format = "x" }}, nil, nil, waitCorrection, `"x" is not available`, unwatched},
		"worker that controls":       {"a contradiction", []change{func(s *snapshot) { s.Config.Spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{} }}, nil, nil, waitCorrection, "is a worker", unwatched},
		"secret of somebody":         {"it is not taken away", []change{controlled("Machine", "x")}, nil, nil, waitCorrection, "belongs to Machine x", unwatched},
		"secret of another config":   {"nor this", []change{controlled("KubeadmConfig", "x")}, nil, nil, waitCorrection, "belongs to KubeadmConfig x", unwatched},
		"secret of another type":     {"the type cannot be changed", []change{data(func(s *corev1.Secret) { s.Type = "Opaque" })}, nil, nil, waitCorrection, "has type Opaque", unwatched},
		"token of a wrong form":      {"kubeadm would refuse it", []change{func(s *snapshot) { s.Config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "x" }}, nil, nil, waitCorrection, "must have the form", 0},
		"token not chosen":           {"it is recorded first", nil, []reconciler.Action{choose}, nil, "", "", 0}, // KB-09
		"not connected":              {"the token has to be made known there", []change{chosen, func(s *snapshot) { s.Connected, s.Problem = false, "refused" }}, nil, nil, waitConnection, "API server of Cluster c to respond (refused)", 0},
		"token unknown":              {"it is asked for", []change{chosen}, nil, []reconciler.ReadRequest{askToken}, "", "", 0},
		"token missing":              {"then the data", []change{chosen, noToken}, []reconciler.Action{create, write}, nil, "", "", ttl / 3},
		"token old":                  {"a crash lies between", []change{chosen, tokenLeft(time.Minute)}, []reconciler.Action{extend, write}, nil, "", "", ttl / 3},
		"token there":                {"only the data is missing", []change{chosen, tokenLeft(ttl)}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"own secret":                 {"an existing one is adopted (KB-02)", []change{chosen, tokenLeft(ttl), carrying(token)}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"secret of an earlier life":  {"it is adopted (KB-02)", []change{chosen, tokenLeft(ttl), controlled("KubeadmConfig", "w")}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"file discovery":             {"needs no token and no connection (KB-12)", []change{fileDiscovery, func(s *snapshot) { s.Connected = false }}, []reconciler.Action{write}, nil, "", "", 0},
		"pool for the first time":    {"as a Machine", []change{pool, chosen, noToken}, []reconciler.Action{create, write}, nil, "", "", ttl / 3},
		"in-place update going on":   {"nothing is made again (KB-25)", []change{func(s *snapshot) { s.Config.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""} }}, nil, nil, waitUpdate, "Machine m", 0},
		"changed after it was made":  {"nothing is made again (KB-25, BC-05)", []change{made, chosen, tokenLeft(ttl), func(s *snapshot) { s.Config.Spec.PreKubeadmCommands = []string{"new"} }}, nil, nil, "", "", ttl / 3},
		"restored":                   {"the Machine has it already (KB-27)", []change{chosen, tokenLeft(ttl), func(s *snapshot) { s.Owner.DataSecretName = "w" }}, nil, nil, "", "", ttl / 3},
		"restored without a token":   {"nothing to keep alive (KB-27)", []change{func(s *snapshot) { s.Owner.DataSecretName, s.RenderInput = "w", nil }}, nil, nil, "", "", 0},
		"joined":                     {"the token may expire (KB-10)", []change{made, chosen, func(s *snapshot) { s.Owner.Joined, s.RenderInput = true, nil }}, nil, nil, "", "", 0},
		"not joined, token young":    {"look again after a third of its life (KB-10)", []change{made, chosen, tokenLeft(ttl * 5 / 6)}, nil, nil, "", "", ttl / 3},
		"not joined, token old":      {"it is extended (KB-10)", []change{made, chosen, tokenLeft(ttl/6*5 - time.Second)}, []reconciler.Action{extend}, nil, "", "", ttl / 3},
		"not joined, token missing":  {"the same is created again (KB-10)", []change{made, chosen, noToken}, []reconciler.Action{create}, nil, "", "", ttl / 3},
		"not joined, not connected":  {"it is said", []change{made, chosen, func(s *snapshot) { s.Connected = false }}, nil, nil, waitConnection, "to respond", 0},
		"not joined, token not read": {"it is asked for", []change{made, chosen}, nil, []reconciler.ReadRequest{askToken}, "", "", 0},

		// BC-05: data that was deleted is made again as long as it may have to be read.
		"data deleted":                {"its Machine has no Node", []change{made, chosen, gone, tokenLeft(ttl)}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"data deleted, not connected": {"it is said", []change{made, chosen, gone, func(s *snapshot) { s.Connected = false }}, nil, nil, waitConnection, "to respond", 0},
		"data deleted, joined":        {"nothing reads it any more", []change{made, chosen, gone, func(s *snapshot) { s.Owner.Joined = true }}, nil, nil, "", "", 0},
		"data of others deleted":      {"it is theirs", []change{chosen, gone, tokenLeft(ttl), func(s *snapshot) { s.Owner.DataSecretName = "theirs" }}, nil, nil, "", "", ttl / 3},

		// KB-11
		"pool, material unknown":      {"the data is looked at", []change{pool, made, chosen, func(s *snapshot) { s.RenderInput = nil }}, nil, []reconciler.ReadRequest{readRenderInput{}}, "", "", 0},
		"pool, token unknown":         {"it is asked for", []change{pool, made, chosen, carrying(token)}, nil, []reconciler.ReadRequest{askToken}, "", "", 0},
		"pool, token young":           {"look again when half its life is over", []change{pool, made, chosen, carrying(token), tokenLeft(ttl)}, nil, nil, "", "", ttl / 2},
		"pool, token half":            {"another one", []change{pool, made, chosen, carrying(token), tokenLeft(ttl / 2)}, []reconciler.Action{rotate}, nil, "", "", 0},
		"pool, token missing":         {"another one", []change{pool, made, chosen, carrying(token), noToken}, []reconciler.Action{chooseToken{Why: reasonTokenMissing}}, nil, "", "", 0},
		"pool, another token chosen":  {"it is created, then the data has it", []change{pool, made, chosen, carrying("old"), noToken}, []reconciler.Action{create, write}, nil, "", "", ttl / 3},
		"pool, another token created": {"the data has it", []change{pool, made, chosen, carrying("old"), tokenLeft(ttl)}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"pool, data deleted":          {"it is written again", []change{pool, made, chosen, tokenLeft(ttl)}, []reconciler.Action{write}, nil, "", "", ttl / 3},
		"pool, restored, no token":    {"one is chosen", []change{pool, made, carrying("old")}, []reconciler.Action{choose}, nil, "", "", 0},
		"pool, not connected":         {"it is said", []change{pool, made, chosen, carrying(token), func(s *snapshot) { s.Connected = false }}, nil, nil, waitConnection, "to respond", 0},
		"pool, data unusable":         {"a token is not chosen for data that cannot be made", []change{pool, made, chosen, carrying(token), noToken, func(s *snapshot) { s.Owner.Version = "" }}, nil, nil, waitCorrection, "version", unwatched},
		"pool, file discovery":        {"nothing rotates", []change{pool, made, fileDiscovery, func(s *snapshot) { s.RenderInput = nil }}, nil, nil, "", "", 0},

		"owner goes":                  {"its tokens are looked for", []change{made, chosen, ends}, nil, []reconciler.ReadRequest{listLeftoverTokens{}}, "", "", 0},
		"owner goes, tokens left":     {"they go too", []change{made, chosen, ends, left("bootstrap-token-a", "bootstrap-token-b")}, []reconciler.Action{deleteToken{"bootstrap-token-a"}, deleteToken{"bootstrap-token-b"}}, nil, "", "", 0},
		"owner goes, none left":       {"done", []change{made, chosen, ends, left()}, nil, nil, "", "", 0},
		"owner goes, unreachable":     {"they expire by themselves", []change{made, chosen, ends, func(s *snapshot) { s.Connected = false }}, nil, nil, "", "", 0},
		"owner goes with its cluster": {"so do they", []change{made, chosen, ends, func(s *snapshot) { s.Cluster = nil }}, nil, nil, "", "", 0},
		"owner goes, never had one":   {"nothing to look for", []change{ends}, nil, nil, "", "", 0},
	}
	for name, tc := range cases {
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
				t.Errorf("%s: want to look again in %s, got %s", tc.reason, tc.again, got.Recheck)
			}
		})
	}
}

func gone(s *snapshot) { s.Deleted = true }

func ends(s *snapshot) { s.Owner.Deleted = true }

func left(names ...string) change {
	return func(s *snapshot) {
		list := []corev1.Secret{}
		for _, n := range names {
			list = append(list, corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: n}})
		}
		s.Leftovers = &list
	}
}

// KB-07, KB-08, KB-22: what ends up in the file of a worker.
func TestRender(t *testing.T) {
	got, err := render(newSnapshot(chosen, func(s *snapshot) { s.Config.Spec.Format = bootstrapv1.CloudConfig }))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## template: jinja\n#cloud-config\n", "apiVersion: kubeadm.k8s.io/v1beta4", "token: " + token,
		`apiServerEndpoint: "10.0.0.1:6443"`, "sha256:", "node.cluster.x-k8s.io/uninitialized",
	} {
		if !strings.Contains(string(got.Value), want) {
			t.Errorf("want %q in\n%s", want, got.Value)
		}
	}
	if got.Format != bootstrapv1.CloudConfig || strings.Contains(string(got.Value), "unsafeSkip") {
		t.Errorf("format %s, data\n%s", got.Format, got.Value)
	}
}

func TestSentences(t *testing.T) {
	for _, a := range []reconciler.Action{chooseToken{Why: "x"}, createToken{ID: "x"}, extendToken{ID: "x"}, deleteToken{Name: "x"}, writeData{Name: "x"},
		ownData{Name: "x"}, takeLock{}, releaseLock{Why: "x"}, createAuthority{}} {
		if before, why, ok := strings.Cut(a.String(), ": "); !ok || before == "" || why == "" {
			t.Errorf("%T must say what and why, says %q", a, a)
		}
	}
	for _, q := range []reconciler.ReadRequest{readRenderInput{}, readToken{ID: "x"}, listLeftoverTokens{}, readLock{}} {
		if q.String() == "" {
			t.Errorf("%T says nothing", q)
		}
	}
}
