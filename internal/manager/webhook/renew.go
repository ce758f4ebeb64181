package webhook

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// Keys of the Secret, besides those of kubernetes.io/tls. The authority's own certificate is the first in the bundle.
const (
	bundleKey = "ca.crt"
	caKeyKey  = "ca.key"
)

// material is what the Secret holds.
type material struct {
	ca     pki.Pair
	bundle []byte // the authority's certificate, then the one before it while that is needed
	leaf   pki.Pair
}

func (m material) data() map[string][]byte {
	return map[string][]byte{
		bundleKey:               m.bundle,
		caKeyKey:                m.ca.KeyPEM,
		corev1.TLSCertKey:       m.leaf.CertPEM,
		corev1.TLSPrivateKeyKey: m.leaf.KeyPEM,
	}
}

// renew returns what the Secret should hold, and whether that differs from what it holds: an authority with a third of
// its life left or less is replaced, but stays trusted, since other managers still serve with its certificates; a
// serving certificate is issued again when it is due, or not for the names that are wanted. What cannot be read is
// made again.
func renew(data map[string][]byte, want pki.Leaf, now time.Time) (material, bool, error) {
	kept := material{bundle: data[bundleKey]}
	ca, err := pki.ParsePair(data[bundleKey], data[caKeyKey])
	changed := err != nil || due(ca, now)
	if changed {
		previous := firstCertificate(data[bundleKey], err == nil)
		if ca, err = pki.NewAuthority(pki.Authority{Name: "slipway-webhook-ca"}, now); err != nil {
			return material{}, false, err
		}
		kept.bundle = append(bytes.Clone(ca.CertPEM), previous...)
	}
	kept.ca = ca
	leaf, err := pki.ParsePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil || pki.Stale(leaf, ca, want, now) {
		changed = true
		if leaf, err = ca.Issue(want, now); err != nil {
			return material{}, false, err
		}
	}
	kept.leaf = leaf
	return kept, changed, nil
}

// due tells whether a third of an authority's life or less is left.
func due(ca pki.Pair, now time.Time) bool {
	life := ca.Cert.NotAfter.Sub(ca.Cert.NotBefore)
	return !now.Before(ca.Cert.NotAfter.Add(-life / 3))
}

// firstCertificate returns the first certificate of a readable bundle, which is that of its authority.
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
