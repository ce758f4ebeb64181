package hosted

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// A control plane sees at once when its authorities or its keys change: a rotation waits for it, and who puts lost keys back.
func TestSecretsThatAreWatched(t *testing.T) {
	of := func(name, v string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "HostedControlPlane", Name: "demo", UID: "u", Controller: new(true)}}},
			Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"secretbox": []byte(v)},
		}
	}
	p := reconciler.OrphanedOrChangedSecrets(watchedPurposes()...)
	for name, want := range map[string]bool{"demo-ca": true, "demo-etcd": true, "demo-proxy": true, "demo-sa": true, "demo-encryption": true, "demo-kubeconfig": false, "other-encryption": false} {
		if got := p.Update(event.UpdateEvent{ObjectOld: of(name, "a"), ObjectNew: of(name, "b")}); got != want {
			t.Errorf("%s: seen %t", name, got)
		}
		if p.Update(event.UpdateEvent{ObjectOld: of(name, "a"), ObjectNew: of(name, "a")}) {
			t.Errorf("%s: nothing has changed", name)
		}
	}
}

// Names that clients know the API server by are in its certificate: the process is told of them, and restarts for them.
func TestCertificateNames(t *testing.T) {
	s := running(t)
	before := configOf(s)
	s.Plane.Spec.CertificateNames = []string{"demo.example.com", "192.0.2.7"}
	after := configOf(s)
	if diff := cmp.Diff(s.Plane.Spec.CertificateNames, after.Names); diff != "" || before.Hash() == after.Hash() {
		t.Errorf("restarted %t (-want +got):\n%s", before.Hash() != after.Hash(), diff)
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
	data, err := newKubeconfig(s)
	if err != nil {
		t.Fatal(err)
	}
	if k := secrets.ParseKubeconfig(&corev1.Secret{Data: data}); k.Until.Sub(now).Round(time.Hour) != 30*24*time.Hour {
		t.Errorf("certificate validity: %v", k.Until.Sub(now))
	}
}
