package webhook

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// Keys of the certificate's Secret in addition to those of kubernetes.io/tls. The first certificate in the bundle is
// the current CA. Other managers read the Secret, so the keys must stay.
const (
	bundleKey = "ca.crt"
	caKeyKey  = "ca.key"
)

// material is the content of the Secret. [Certificates] reads it, and writes it if [renew] changes it.
type material struct {
	ca     pki.Pair
	bundle []byte // the CA certificate, followed by the previous one while that is needed
	leaf   pki.Pair
}

// data returns the content in the form of the Secret's data.
func (m material) data() map[string][]byte {
	return map[string][]byte{
		bundleKey:               m.bundle,
		caKeyKey:                m.ca.KeyPEM,
		corev1.TLSCertKey:       m.leaf.CertPEM,
		corev1.TLSPrivateKeyKey: m.leaf.KeyPEM,
	}
}

// renew returns the desired content of the certificate's Secret and whether it differs from the present one. A CA is
// replaced when a third or less of its lifetime is left, but remains in the bundle, because other managers still serve
// with its certificates. A serving certificate is reissued when it is due or lacks a wanted name. Content that cannot
// be parsed is replaced. [Certificates] calls it when the manager starts, and at each later check of the Secret.
func renew(data map[string][]byte, want pki.Leaf, now time.Time) (material, bool, error) {
	kept := material{bundle: data[bundleKey]}
	ca, err := pki.ParsePair(data[bundleKey], data[caKeyKey])
	changed := err != nil || isDue(ca, now)
	if changed {
		previous := firstCertificate(data[bundleKey], err == nil)
		if ca, err = pki.NewAuthority(pki.Authority{Name: "slipway-webhook-ca"}, now); err != nil {
			return material{}, false, err
		}
		kept.bundle = append(bytes.Clone(ca.CertPEM), previous...)
	}
	kept.ca = ca
	leaf, err := pki.ParsePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil || pki.NeedsReissue(leaf, ca, want, now) {
		changed = true
		if leaf, err = ca.Issue(want, now); err != nil {
			return material{}, false, err
		}
	}
	kept.leaf = leaf
	return kept, changed, nil
}

// isDue reports whether a third or less of the CA's lifetime is left.
func isDue(ca pki.Pair, now time.Time) bool {
	life := ca.Cert.NotAfter.Sub(ca.Cert.NotBefore)
	return !now.Before(ca.Cert.NotAfter.Add(-life / 3))
}

// firstCertificate returns the first certificate of a readable bundle, which is the CA certificate.
func firstCertificate(bundle []byte, readable bool) []byte {
	if !readable {
		return nil
	}
	const end = "-----END CERTIFICATE-----\n"
	before, _, found := bytes.Cut(bundle, []byte(end))
	if !found {
		return nil
	}
	return append(bytes.Clone(before), end...)
}
