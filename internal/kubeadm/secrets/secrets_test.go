package secrets

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

var (
	now      = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	cluster  = client.ObjectKey{Namespace: "ns", Name: "c"}
	endpoint = clusterv1.APIEndpoint{Host: "fd00::1", Port: 6443}
	isTrue   = true
	owner    = Owner{Replaces: []string{"KubeadmConfig"}, Ref: metav1.OwnerReference{
		APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "kcp", UID: "2", Controller: &isTrue}}
	stacked  = bootstrapv1.ClusterConfiguration{}
	external = bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{Endpoints: []string{"https://etcd:2379"}}}}
)

func secret(t *testing.T, p Purpose, keys KeyOptions) *corev1.Secret {
	t.Helper()
	from := p
	if p == EtcdClient {
		from = CA // any pair of certificate and key
	}
	data, err := Generate(from, keys, now)
	if err != nil {
		t.Fatal(err)
	}
	return NewSecret(cluster, p, owner, data)
}

func found(t *testing.T, purposes ...Purpose) Secrets {
	out := Secrets{}
	for _, p := range purposes {
		out[p] = secret(t, p, KeyOptions{})
	}
	return out
}

// CP-15, SE-02
// CX-08: users who read no Secrets get none of a cluster by a KubeadmConfig, whatever its purpose.
func TestPurposesAreDenied(t *testing.T) {
	for _, p := range []Purpose{CA, Etcd, Proxy, SA, EtcdClient, Admin, Encryption} {
		if name := p.SecretName("c"); !p.IsKnown() || (policy.Configuration{}).DeniedSecret(name, "") == "" || policy.Default().DeniedSecret(name, "") != "" {
			t.Errorf("Secret %s is not denied, or denied to users who read Secrets", name)
		}
	}
}

func TestEvaluate(t *testing.T) {
	without := func(f Secrets, p Purpose, keys ...string) Secrets {
		for _, key := range keys {
			delete(f[p].Data, key)
		}
		return f
	}
	foreign := found(t, CA, Etcd, Proxy, SA)
	foreign[CA].Data[corev1.TLSPrivateKeyKey] = foreign[Etcd].Data[corev1.TLSPrivateKeyKey]
	all := []Purpose{CA, Etcd, Proxy, SA}
	for name, tc := range map[string]struct {
		reason   string
		config   bootstrapv1.ClusterConfiguration
		found    Secrets
		started  bool
		create   []Purpose
		problems []string
	}{
		"nothing":     {"all are generated before the first node", stacked, Secrets{}, false, all, nil},
		"one brought": {"what a user brings is used, the rest is generated", stacked, found(t, CA), false, []Purpose{Etcd, Proxy, SA}, nil},
		"complete":    {"nothing is to be done", stacked, found(t, all...), true, nil, nil},
		"gone afterwards": {"another authority would not be the one that signed the cluster", stacked, found(t, Etcd, Proxy, SA), true, nil,
			[]string{"Secret c-ca does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no Machine can join, and the kubeconfig cannot be renewed. Restore it from a backup, or from ca.crt and ca.key in /etc/kubernetes/pki on a control plane node"}},
		"all gone afterwards": {"each says what waits for it, and where it is", stacked, Secrets{}, true, nil, []string{
			"Secret c-ca does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no Machine can join, and the kubeconfig cannot be renewed",
			"Secret c-etcd does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no control plane Machine can join, and etcd members cannot be reached",
			"Secret c-proxy does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no control plane Machine can join. Restore it from a backup, or from front-proxy-ca.crt and front-proxy-ca.key in",
			"Secret c-sa does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no control plane Machine can join. Restore it from a backup, or from sa.pub and sa.key in"}},
		"CA without key": {"it serves everything but signing", stacked, without(found(t, all...), CA, "tls.key"), false, nil, nil},
		"SA without key": {"tokens have to be signed", stacked, without(found(t, all...), SA, "tls.key"), false, nil, []string{"Secret c-sa must have the keys tls.crt and tls.key"}},
		"empty":          {"said, and not overwritten", stacked, without(found(t, all...), CA, "tls.key", "tls.crt"), false, nil, []string{"Secret c-ca has no certificate in key tls.crt"}},
		"foreign key":    {"a pair must fit", stacked, foreign, false, nil, []string{"Secret c-ca cannot be used: the private key does not belong to the certificate"}},
		"external etcd": {"its authority is a person's", external, Secrets{}, false, []Purpose{CA, Proxy, SA},
			[]string{"Secret c-etcd does not exist; create it with the CA certificate", "Secret c-apiserver-etcd-client does not exist; create it with the client certificate"}},
		"external etcd, brought": {"its CA needs no key", external, without(found(t, CA, Proxy, SA, Etcd, EtcdClient), Etcd, "tls.key"), false, nil, nil},
		"external etcd, client without key": {"an API server cannot use it", external, without(found(t, CA, Proxy, SA, Etcd, EtcdClient), EtcdClient, "tls.key"), false, nil,
			[]string{"Secret c-apiserver-etcd-client must have the keys"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Evaluate(EvaluateInput{Cluster: "c", Required: Required(tc.config), Found: tc.found, Generate: !tc.started, Now: now})
			if diff := cmp.Diff(tc.create, got.Create); diff != "" {
				t.Errorf("%s: created (-want +got):\n%s", tc.reason, diff)
			}
			if len(got.Problems) != len(tc.problems) {
				t.Fatalf("%s: %v", tc.reason, got.Problems)
			}
			for i, says := range tc.problems {
				if !strings.Contains(got.Problems[i].Text, says) {
					t.Errorf("%s: %q, want %q", tc.reason, got.Problems[i].Text, says)
				}
			}
			if got.Complete() != (len(tc.create)+len(tc.problems) == 0) {
				t.Errorf("%s: complete is %v", tc.reason, got.Complete())
			}
		})
	}
}

// An authority that has expired is named with its Secret and the date; keys of service accounts do not expire.
func TestExpiredAuthority(t *testing.T) { // CP-15
	later := now.Add(10*365*24*time.Hour + time.Hour)
	got := Evaluate(EvaluateInput{Cluster: "c", Required: Required(stacked), Found: found(t, CA, Etcd, Proxy, SA), Now: later})
	if len(got.Problems) != 3 || got.Complete() {
		t.Fatalf("got %+v", got.Problems)
	}
	want := "The certificate in Secret c-ca expired on 2036-11-21T12:00:00Z: clients do not trust the certificates that it signs. " +
		"Replace tls.crt by a valid certificate, with the same key and subject if the cluster has nodes"
	if got.Problems[0].Text != want {
		t.Error(got.Problems[0].Text)
	}
}

// kube-controller-manager of a node that kubeadm makes signs with the whole file, unless it is told otherwise, or there is no key.
func TestSignedByKubeadm(t *testing.T) { // CP-15
	bundled := func(p Purpose, drop string) Secrets {
		f := found(t, CA, Etcd, Proxy, SA)
		f[p].Data[corev1.TLSCertKey] = append(f[p].Data[corev1.TLSCertKey], secret(t, p, KeyOptions{}).Data[corev1.TLSCertKey]...)
		delete(f[p].Data, drop)
		return f
	}
	spec := func(change func(*bootstrapv1.KubeadmConfigSpec)) []Requirement {
		s := bootstrapv1.KubeadmConfigSpec{}
		change(&s)
		return SignedByKubeadm(s)
	}
	plain := spec(func(*bootstrapv1.KubeadmConfigSpec) {})
	for name, tc := range map[string]struct {
		required []Requirement
		found    Secrets
		want     string
	}{
		"one each":               {plain, found(t, CA, Etcd, Proxy, SA), ""},
		"two":                    {plain, bundled(CA, ""), "Secret c-ca has 2 certificates in tls.crt, but kube-controller-manager on kubeadm nodes requires a single one"},
		"two, no key":            {plain, bundled(CA, corev1.TLSPrivateKeyKey), ""},
		"two of the front proxy": {plain, bundled(Proxy, ""), ""},
		"two, hosted":            {Required(stacked), bundled(CA, ""), ""},
		"two, told otherwise": {spec(func(s *bootstrapv1.KubeadmConfigSpec) {
			s.ClusterConfiguration.ControllerManager.ExtraArgs = []bootstrapv1.Arg{{Name: "cluster-signing-cert-file"}}
		}), bundled(CA, ""), ""},
		"two, patched":         {spec(func(s *bootstrapv1.KubeadmConfigSpec) { s.InitConfiguration.Patches.Directory = "/p" }), bundled(CA, ""), ""},
		"two, patched joining": {spec(func(s *bootstrapv1.KubeadmConfigSpec) { s.JoinConfiguration.Patches.Directory = "/p" }), bundled(CA, ""), ""},
	} {
		got := Evaluate(EvaluateInput{Cluster: "c", Required: tc.required, Found: tc.found}).MissingText("c")
		if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	a, b := secret(t, CA, KeyOptions{}), secret(t, CA, KeyOptions{})
	first, second := a.Data[corev1.TLSCertKey], b.Data[corev1.TLSCertKey]
	of := func(certs ...[]byte) string {
		return Fingerprint(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: slices.Concat(certs...)}})
	}
	if of(first) != of([]byte("text\n"), first) || of(first) == of(second) || of(first, second) == of(second, first) || of([]byte("x")) != "" || of() != "" {
		t.Error("it is that of the certificates, in their order, and of nothing else")
	}
}

// What travels to a machine is certificates and keys alone.
func TestContent(t *testing.T) {
	for _, p := range []Purpose{CA, SA} {
		s := secret(t, p, KeyOptions{})
		want := string(s.Data[corev1.TLSCertKey])
		for key, value := range s.Data {
			s.Data[key] = append([]byte("runcmd: [evil]\n"), value...)
		}
		cert, key, err := Content(p, s)
		if err != nil || string(cert) != want || !strings.HasPrefix(string(key), "-----BEGIN EC PRIVATE KEY-----") {
			t.Errorf("%s: %q, %v", p, cert, err)
		}
	}
	s := secret(t, CA, KeyOptions{})
	delete(s.Data, corev1.TLSPrivateKeyKey)
	if cert, key, err := Content(CA, s); err != nil || len(cert) == 0 || key != nil {
		t.Errorf("without key: %q, %q, %v", cert, key, err)
	}
}

func TestGenerate(t *testing.T) {
	keys := KeyOptionsOf(bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmRSA2048,
		CACertificateValidityPeriodDays: 100, CertificateValidityPeriodDays: 10})
	ca := secret(t, CA, keys)
	pair, err := pki.ParsePair(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if pair.Cert.PublicKeyAlgorithm.String() != "RSA" || pair.Cert.NotAfter != now.AddDate(0, 0, 100) || !pair.Cert.IsCA {
		t.Errorf("the configuration's algorithm and days: %s until %s", pair.Cert.PublicKeyAlgorithm, pair.Cert.NotAfter)
	}
	if ca.Name != "c-ca" || ca.Type != clusterv1.ClusterSecretType || ca.Labels[clusterv1.ClusterNameLabel] != "c" || !metav1.IsControlledBy(ca, &metav1.ObjectMeta{UID: "2"}) {
		t.Errorf("name, type, label and owner: %v", ca.ObjectMeta)
	}
	if _, err := Generate(EtcdClient, KeyOptions{}, now); fault.KindOf(err) != fault.Bug {
		t.Errorf("what a person brings is not generated: %v", err)
	}
}

// CP-14
func TestKubeconfig(t *testing.T) {
	ca := secret(t, CA, KeyOptions{})
	data, err := Issue(Access{"c", endpoint}, ca, KeyOptions{}, now)
	if err != nil {
		t.Fatal(err)
	}
	k := ParseKubeconfig(NewSecret(cluster, Admin, owner, data))
	elsewhere := endpoint
	elsewhere.Host = "other"
	for name, tc := range map[string]struct {
		k        Kubeconfig
		endpoint clusterv1.APIEndpoint
		ca       *corev1.Secret
		at       time.Time
		want     string
	}{
		"fresh":         {k, endpoint, ca, now, ""},
		"before half":   {k, endpoint, ca, now.AddDate(0, 0, 182), ""},
		"after half":    {k, endpoint, ca, now.AddDate(0, 0, 183), "its client certificate has passed half of its lifetime"},
		"endpoint":      {k, elsewhere, ca, now, "the endpoint is https://other:6443"},
		"authority":     {k, endpoint, secret(t, CA, KeyOptions{}), now, "the CA has changed"},
		"none":          {ParseKubeconfig(nil), endpoint, ca, now, "it does not exist or cannot be read"},
		"another thing": {ParseKubeconfig(&corev1.Secret{Data: map[string][]byte{kubeconfigKey: []byte("x")}}), endpoint, ca, now, "it does not exist or cannot be read"},
	} {
		if got := tc.k.ReissueReason(tc.endpoint, tc.ca, tc.at); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	delete(ca.Data, corev1.TLSPrivateKeyKey)
	if _, err := Issue(Access{"c", endpoint}, ca, KeyOptions{}, now); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "create Secret c-kubeconfig") {
		t.Errorf("a CA without key: %v", err)
	}
}

// Secrets of what the owner replaces are taken over, those of users are not.
func TestOwner(t *testing.T) {
	ref := func(kind, name, uid string) metav1.OwnerReference {
		r := owner.Ref
		r.Kind, r.Name, r.UID = kind, name, types.UID(uid)
		return r
	}
	for name, tc := range map[string]struct {
		refs          []metav1.OwnerReference
		kind          corev1.SecretType
		manages, lost bool
	}{
		"own":                {[]metav1.OwnerReference{owner.Ref}, clusterv1.ClusterSecretType, true, false},
		"own, earlier":       {[]metav1.OwnerReference{ref("KubeadmControlPlane", "kcp", "1")}, clusterv1.ClusterSecretType, true, true},
		"of a KubeadmConfig": {[]metav1.OwnerReference{ref("KubeadmConfig", "x", "9")}, clusterv1.ClusterSecretType, true, true},
		"of another":         {[]metav1.OwnerReference{ref("KubeadmControlPlane", "other", "9")}, clusterv1.ClusterSecretType, false, false},
		"restored":           {nil, clusterv1.ClusterSecretType, true, true},
		"of a user":          {nil, corev1.SecretTypeOpaque, false, false},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.refs}, Type: tc.kind}
		if owner.Manages(s) != tc.manages || owner.NeedsOwner(s) != tc.lost {
			t.Errorf("%s: manages %v, lost %v", name, owner.Manages(s), owner.NeedsOwner(s))
		}
		if !tc.lost {
			continue
		}
		owner.Adopt(s)
		if diff := cmp.Diff([]metav1.OwnerReference{owner.Ref}, s.OwnerReferences); diff != "" || owner.NeedsOwner(s) {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}

func TestRead(t *testing.T) {
	cached, brought := secret(t, CA, KeyOptions{}), secret(t, SA, KeyOptions{})
	cache := fake.NewClientBuilder().WithObjects(cached).Build()
	api := fake.NewClientBuilder().WithObjects(brought, cached.DeepCopy()).Build()
	got, err := Read(context.Background(), cluster, Purposes(Required(stacked)), cache, api)
	if err != nil || len(got) != 2 || got[CA] == nil || got[SA] == nil {
		t.Errorf("each from the first reader that has it: %v, %v", got, err)
	}
}
