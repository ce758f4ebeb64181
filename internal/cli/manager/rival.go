package manager

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// rivalPatience is how long the webhooks of another manager may take to accept a connection.
const rivalPatience = 2 * time.Second

// checkRival fails where another manager runs the same providers: its webhooks are those of the management cluster, and answer. This manager
// would point them at itself, and leave none behind when it ends. Managers that elect a leader are meant to share a cluster; one
// whose webhooks are a Service cannot be asked from here. What cannot be read is no reason either: the manager itself meets it again.
func checkRival(ctx context.Context, cfg manager.Config) error {
	if cfg.LeaderElection.Enabled || cfg.Webhook.CertDir != "" {
		return nil
	}
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cfg.REST, client.Options{Scheme: scheme})
	if err != nil {
		return nil
	}
	return rival(ctx, c, cfg)
}

func rival(ctx context.Context, c client.Reader, cfg manager.Config) error {
	own := net.JoinHostPort(cfg.Webhook.Host, strconv.Itoa(cfg.Webhook.Port))
	for _, set := range cfg.Policy.Sets() {
		config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := c.Get(ctx, client.ObjectKey{Name: set.Validation()}, config); err != nil {
			continue
		}
		if at, authority := address(config); at != "" && at != own && answers(ctx, at, authority) {
			return fault.New(fault.Invalid, "AnotherManager",
				"another manager runs provider %s of this management cluster: its webhooks answer at %s, with the certificate that the API server expects. Stop that manager first, or name with --providers those that it does not run", set.Name, at)
		}
	}
	return nil
}

// address is the host and port of the webhooks, and the authority of their certificate; empty: they are behind a Service.
func address(config *admissionregistrationv1.ValidatingWebhookConfiguration) (at string, authority []byte) {
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

// answers reports whether what listens there is the manager that the API server calls: its port may be another program's now.
func answers(ctx context.Context, address string, authority []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, rivalPatience)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	connection, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
