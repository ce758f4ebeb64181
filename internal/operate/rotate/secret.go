package rotate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// Reasons of faults.
const (
	// reasonUnsupported is the reason when the CA cannot be rotated in this way; Invalid.
	reasonUnsupported = "RotationUnsupported"
	// reasonNotNow is the reason when the rotation cannot start or continue in the current state; Invalid.
	reasonNotNow = "RotationNotPossibleNow"
	// reasonCertificate is the reason when a certificate cannot be the new CA; Invalid.
	reasonCertificate = "InvalidAuthority"
)

// Phase is the phase of a rotation. The Secret contains it as a string.
type Phase string

// The phases in order. In phaseNone there is no rotation.
const (
	phaseNone      Phase = "None"
	phaseTrustBoth Phase = "TrustBoth"
	phaseNewSigns  Phase = "NewSigns"
	phaseNewOnly   Phase = "NewAlone"
)

// Keys of the Secret in addition to tls.crt and tls.key. They and the phases are in Secrets of rotations in progress,
// so they must not change.
const (
	nextKey     = "next.key"
	previousKey = "previous.key"
	recordKey   = "rotation"
)

// record is the progress of the rotation as stored in the Secret.
type record struct {
	Phase Phase `json:"phase"`
	// InEffect means that the control plane has followed; Outdated are the Machines that existed then.
	InEffect bool     `json:"inEffect,omitempty"`
	Outdated []string `json:"outdated,omitempty"`
}

// rotationState is the state of the rotation, as read from the Secret of the CA. It is read again before each step.
// [decide] computes the next step from it.
type rotationState struct {
	Phase Phase
	// InEffect means that the control plane has followed; Outdated are the names of the Machines that existed then.
	InEffect bool
	Outdated []string

	// signer is the CA that signs. other is also trusted; it is empty outside of the phases with two CAs.
	signer, other pki.Pair
}

// read reads the state of the rotation from the Secret. The first certificate in tls.crt is the CA that signs. Several
// certificates that do not result from a rotation are an error, because their purpose is unknown.
func read(secret *corev1.Secret) (rotationState, error) {
	certs, err := split(secret.Data[corev1.TLSCertKey])
	if err != nil {
		return rotationState{}, unusable(secret, err)
	}
	signer, err := pki.ParsePair(certs[0], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return rotationState{}, unusable(secret, err)
	}
	s := rotationState{Phase: phaseNone, signer: signer}
	switch {
	case len(certs) == 2 && s.setOther(certs[1], secret.Data[nextKey]):
		s.Phase = phaseTrustBoth
	case len(certs) == 2 && s.setOther(certs[1], secret.Data[previousKey]):
		s.Phase = phaseNewSigns
	case len(certs) > 1:
		return rotationState{}, fault.New(fault.Invalid, reasonUnsupported, "Secret %s has %d certificates that do not result from a rotation: leave only the certificate for tls.key in tls.crt, "+
			"or replace the authority manually", secret.Name, len(certs))
	}
	var r record
	if len(secret.Data[recordKey]) > 0 && json.Unmarshal(secret.Data[recordKey], &r) != nil {
		r = record{} // the state is determined again
	}
	switch {
	case s.Phase == phaseNone && r.Phase == phaseNewOnly:
		s.Phase = phaseNewOnly
	case r.Phase == s.Phase && s.Phase != phaseNone:
		s.InEffect, s.Outdated = r.InEffect, r.Outdated
	}
	return s, nil
}

// next returns the new CA of a rotation in progress. [Rotator.Prepare] compares the CA of the flags with it.
func (s rotationState) next() pki.Pair {
	if s.Phase == phaseTrustBoth {
		return s.other
	}
	return s.signer
}

// setOther sets s.other if the certificate and the key match.
func (s *rotationState) setOther(cert, key []byte) bool {
	if len(key) == 0 {
		return false
	}
	pair, err := pki.ParsePair(cert, key)
	if err == nil {
		s.other = pair
	}
	return err == nil
}

func unusable(secret *corev1.Secret, err error) error {
	return fault.New(fault.Invalid, reasonUnsupported, "Secret %s cannot be used", secret.Name).From(err)
}

// split splits PEM data into its certificates, at least one, each in PEM.
func split(data []byte) ([][]byte, error) {
	clean, err := pki.ReencodeCerts(data)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for block, rest := pem.Decode(clean); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, pem.EncodeToMemory(block))
	}
	return out, nil
}

// install updates the Secret to the phase after the current one. next is the new CA for phaseTrustBoth. The key that
// signs and the CAs that are trusted change in one write, so that a crash leaves a known phase. Rotator.act calls it.
func (s rotationState) install(secret *corev1.Secret, next pki.Pair) {
	data := map[string][]byte{}
	for key, value := range secret.Data {
		if key != nextKey && key != previousKey && key != recordKey {
			data[key] = value
		}
	}
	r := record{}
	switch s.Phase {
	case phaseNone:
		r.Phase = phaseTrustBoth
		data[corev1.TLSCertKey], data[nextKey] = concatCerts(s.signer, next), next.KeyPEM
	case phaseTrustBoth:
		r.Phase = phaseNewSigns
		data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = concatCerts(s.other, s.signer), s.other.KeyPEM
		data[previousKey] = s.signer.KeyPEM
	case phaseNewSigns:
		r.Phase = phaseNewOnly
		data[corev1.TLSCertKey] = s.signer.FirstCertPEM()
	}
	if r.Phase != "" {
		data[recordKey] = r.encoded()
	}
	secret.Data = data
}

// recordInEffect records in the Secret that the phase is in effect, and the Machines that existed then. Rotator.act
// calls it.
func (s rotationState) recordInEffect(secret *corev1.Secret, machines []string) {
	secret.Data[recordKey] = record{Phase: s.Phase, InEffect: true, Outdated: machines}.encoded()
}

func (r record) encoded() []byte {
	out, _ := json.Marshal(r) // strings and a bool: never fails
	return out
}

func concatCerts(first, second pki.Pair) []byte {
	return append(first.FirstCertPEM(), second.FirstCertPEM()...)
}

// generate generates a new CA with the key algorithm of the old one. Rotator.newPair calls it if the user provides no
// CA.
func (s rotationState) generate(now time.Time) (pki.Pair, error) {
	data, err := secrets.Generate(secrets.CA, secrets.KeyOptions{Algorithm: algorithmOf(s.signer.Cert)}, now)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("generating the new authority: %w", err)
	}
	return pki.ParsePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
}

// algorithmOf returns the key algorithm of a certificate. A key that Slipway does not generate counts as the default.
func algorithmOf(cert *x509.Certificate) pki.Algorithm {
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		switch {
		case key.N.BitLen() <= 2048:
			return pki.RSA2048
		case key.N.BitLen() <= 3072:
			return pki.RSA3072
		}
		return pki.RSA4096
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize > 256 {
			return pki.ECDSAP384
		}
	}
	return ""
}

// ParseCA parses a CA provided by the user as PEM data. It must be valid now, and without a chain. `slipway rotate
// authority` calls it for its flags.
func ParseCA(certPEM, keyPEM []byte, now time.Time) (pki.Pair, error) {
	certs, err := split(certPEM)
	if err != nil {
		return pki.Pair{}, fault.New(fault.Invalid, reasonCertificate, "the certificate of the new authority cannot be read").From(err)
	}
	pair, err := pki.ParsePair(certs[0], keyPEM)
	if err != nil {
		return pki.Pair{}, fault.New(fault.Invalid, reasonCertificate, "the new authority cannot be used").From(err)
	}
	problem := ""
	switch c := pair.Cert; {
	case len(certs) > 1:
		problem = fmt.Sprintf("there are %d certificates: provide only the certificate of the authority", len(certs))
	case !c.BasicConstraintsValid || !c.IsCA:
		problem = "the certificate is not a CA certificate (basic constraints CA:TRUE)"
	case c.KeyUsage&x509.KeyUsageCertSign == 0:
		problem = "the certificate cannot sign other certificates, because it lacks key usage keyCertSign"
	case now.Before(c.NotBefore) || !now.Before(c.NotAfter):
		problem = fmt.Sprintf("the certificate is valid from %s until %s", c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
	}
	if problem != "" {
		return pki.Pair{}, fault.New(fault.Invalid, reasonCertificate, "the new authority cannot be used: %s", problem)
	}
	_, key, err := pki.Reencode(certs[0], keyPEM)
	pair.KeyPEM = key
	return pair, err
}

// checkNew returns an error if the new CA cannot replace the old one. [Rotator.Prepare] calls it, and Rotator.newPair
// again before the CA is installed.
func (s rotationState) checkNew(next pki.Pair) error {
	if bytes.Equal(s.signer.Cert.RawSubjectPublicKeyInfo, next.Cert.RawSubjectPublicKeyInfo) {
		return fault.New(fault.Invalid, reasonCertificate, "the new authority has the key of the current authority, so all its certificates would stay valid: generate a new key")
	}
	return nil
}
