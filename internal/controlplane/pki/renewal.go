package pki

import (
	"crypto/x509"
	"net"
	"slices"
	"time"
)

// NeedsReissue reports whether a stored pair, of a [Folder] or of the webhook server's Secret, must be reissued: a
// third or less of its lifetime is left, another CA signed it, or it does not match l.
func NeedsReissue(p, ca Pair, l Leaf, now time.Time) bool {
	return !now.Before(renewAt(p, 2.0/3)) ||
		p.Cert.CheckSignatureFrom(ca.Cert) != nil ||
		!describes(p.Cert, l)
}

// renewAt returns the time at which the given part of a certificate's lifetime is over.
func renewAt(p Pair, part float64) time.Time {
	life := p.Cert.NotAfter.Sub(p.Cert.NotBefore)
	return p.Cert.NotBefore.Add(time.Duration(float64(life) * part))
}

func describes(c *x509.Certificate, l Leaf) bool {
	return c.Subject.CommonName == l.User &&
		sameSet(c.Subject.Organization, l.Groups) &&
		sameSet(c.DNSNames, l.Names) &&
		sameSet(texts(c.IPAddresses), texts(l.IPs)) &&
		slices.Equal(c.ExtKeyUsage, l.usages())
}

func sameSet(a, b []string) bool {
	return slices.Equal(sorted(a), sorted(b))
}

func sorted(s []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(s)))
}

func texts(ips []net.IP) []string {
	out := make([]string, 0, len(ips))
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}
