package rotate

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

// FuzzRead: whatever a tenant's Secret has in the place of an authority is refused as unsupported, or is a phase of which the next ones
// follow, up to the last one, and that says the same when it is recorded and read again.
func FuzzRead(f *testing.F) {
	var pairs []pki.Pair
	for range 3 {
		pair, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, began)
		if err != nil {
			f.Fatal(err)
		}
		pairs = append(pairs, pair)
	}
	one, two, next := pairs[0], pairs[1], pairs[2]
	recorded := func(r record) []byte {
		out, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		return out
	}
	none := []byte{}
	f.Add(one.CertPEM, one.KeyPEM, none, none, none)
	f.Add(one.CertPEM, two.KeyPEM, none, none, none)
	f.Add(concatCerts(one, two), one.KeyPEM, two.KeyPEM, none, recorded(record{Phase: phaseTrustBoth, InEffect: true, Outdated: []string{"m1"}}))
	f.Add(concatCerts(two, one), two.KeyPEM, none, one.KeyPEM, recorded(record{Phase: phaseNewSigns, InEffect: true}))
	f.Add(concatCerts(one, one), one.KeyPEM, one.KeyPEM, one.KeyPEM, []byte(`{"phase":"TrustBoth","outdated":["\ud800"]}`))
	f.Add(two.CertPEM, two.KeyPEM, one.KeyPEM, none, recorded(record{Phase: phaseNewOnly, Outdated: []string{"m1"}}))
	f.Add(append(concatCerts(one, two), next.CertPEM...), one.KeyPEM, two.KeyPEM, none, []byte("{"))
	f.Add(append([]byte("a: b\n"), concatCerts(one, two)...), one.KeyPEM, []byte("x"), none, []byte(`{"phase":"None","inEffect":true}`))
	f.Fuzz(func(t *testing.T, cert, key, nextKeyPEM, previousKeyPEM, rotation []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{
			corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, nextKey: nextKeyPEM, previousKey: previousKeyPEM, recordKey: rotation, "other": []byte("x"),
		}}
		s, err := read(secret)
		if err != nil {
			if found := fault.As(err); found == nil || found.Kind != fault.Invalid || found.Reason != reasonUnsupported || s.Phase != "" {
				t.Errorf("refused as something else than unsupported: %v", err)
			}
			return
		}
		noted := secret.DeepCopy()
		s.recordInEffect(noted, s.Outdated)
		again, err := read(noted)
		if err != nil || again.Phase != s.Phase || !again.signer.Cert.Equal(s.signer.Cert) {
			t.Errorf("phase %s is %s when it is read again: %v", s.Phase, again.Phase, err)
		}
		if s.Phase == phaseTrustBoth || s.Phase == phaseNewSigns {
			if diff := cmp.Diff(s.Outdated, again.Outdated, cmpopts.EquateEmpty()); diff != "" || !again.InEffect || !again.other.Cert.Equal(s.other.Cert) {
				t.Errorf("recorded, and read again (-want +got):\n%s", diff)
			}
		} else if s.InEffect || len(s.Outdated) > 0 {
			t.Errorf("%s has no nodes to wait for: %+v", s.Phase, s.Outdated)
		}
		checkPhases(t, secret, s, next)
	})
}

// checkPhases installs the phases that follow.
func checkPhases(t *testing.T, secret *corev1.Secret, s rotationState, next pki.Pair) {
	t.Helper()
	if s.Phase != phaseNone {
		next = s.next()
	}
	follows := map[Phase]Phase{phaseNone: phaseTrustBoth, phaseTrustBoth: phaseNewSigns, phaseNewSigns: phaseNewOnly}
	for phase := s.Phase; follows[phase] != ""; phase = s.Phase {
		s.install(secret, next)
		var err error
		if s, err = read(secret); err != nil || s.Phase != follows[phase] || s.InEffect {
			t.Fatalf("%s follows %s, in effect %t: %v", s.Phase, phase, s.InEffect, err)
		}
		if !s.next().Cert.Equal(next.Cert) {
			t.Errorf("in %s another authority than the new one is the next", s.Phase)
		}
	}
	if !s.signer.Cert.Equal(next.Cert) || string(secret.Data["other"]) != "x" {
		t.Error("the new authority does not sign in the end, or what else is in the Secret is gone")
	}
}
