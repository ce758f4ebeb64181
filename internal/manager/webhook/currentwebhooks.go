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

// dialTimeout limits the connection attempt to the webhooks of another manager.
const dialTimeout = 2 * time.Second

// CurrentWebhook is the address at which the API server calls the webhooks of a provider.
type CurrentWebhook struct {
	Set providerset.Set
	// Host is the host and port that the API server calls.
	Host string

	authority []byte
}

// FindCurrentWebhooks returns the current addresses of the webhooks of the providers in a. `slipway manager` uses it to
// detect another manager, and [Certificates.Start] to take over the webhooks of a stopped one. It leaves out webhooks
// behind a Service, because they cannot be reached from here, and configurations that cannot be read, because a later
// write reports the error.
func FindCurrentWebhooks(ctx context.Context, c client.Reader, a Address) []CurrentWebhook {
	var out []CurrentWebhook
	for _, set := range a.sets() {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.Get(ctx, client.ObjectKey{Name: set.ValidatingWebhookName()}, config); err != nil {
			continue
		}
		if host, authority := addressOf(config); host != "" {
			out = append(out, CurrentWebhook{Set: set, Host: host, authority: authority})
		}
	}
	return out
}

// addressOf returns the host, port and CA of the webhooks. They are empty if the webhooks are behind a Service.
func addressOf(config *admissionregistrationv1.ValidatingWebhookConfiguration) (host string, authority []byte) {
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

// Responds reports whether a manager serves at the address with a certificate that the API server trusts,
// because another program may use the port by now.
func (p CurrentWebhook) Responds(ctx context.Context) bool {
	host := p.Host
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
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
