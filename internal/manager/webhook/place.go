package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// patience is how long the webhooks of another manager may take to accept a connection.
const patience = 2 * time.Second

// Place is where the webhooks of a provider are.
type Place struct {
	Set providerset.Set
	// Host is the host and port that the API server calls.
	Host string

	authority []byte
}

// Find returns where the webhooks of the providers of an address are. Those behind a Service are left out: they cannot be asked from here.
// A configuration that cannot be read is none: who writes it meets that again.
func Find(ctx context.Context, c client.Reader, a Address) []Place {
	var out []Place
	for _, set := range a.sets() {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.Get(ctx, client.ObjectKey{Name: set.Validation()}, config); err != nil {
			continue
		}
		if host, authority := at(config); host != "" {
			out = append(out, Place{Set: set, Host: host, authority: authority})
		}
	}
	return out
}

// at returns the host and port of the webhooks, and the authority of their certificate; empty: they are behind a Service.
func at(config *admissionregistrationv1.ValidatingWebhookConfiguration) (host string, authority []byte) {
	for _, w := range config.Webhooks {
		if w.ClientConfig.URL == nil {
			continue
		}
		if parsed, err := url.Parse(*w.ClientConfig.URL); err == nil {
			return parsed.Host, w.ClientConfig.CABundle
		}
	}
	return "", nil
}

// Answers reports whether a manager serves there, with the certificate that the API server expects: the port may be another program's now.
func (p Place) Answers(ctx context.Context) bool {
	host := p.Host
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.authority)
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "443")
	}
	connection, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", host)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
