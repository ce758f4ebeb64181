package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

const (
	// secretName is the name of the Secret in the manager's namespace with the certificate of webhooks at a
	// URL. For webhooks behind a Service, the name is the name of the Service with secretEnding.
	secretName = "slipway-webhook" + secretEnding

	secretEnding = "-cert"

	// checkInterval is the interval between checks of the Secret, which another manager may have renewed or
	// which may be due for renewal.
	checkInterval = 10 * time.Minute

	// retryInterval is the delay after a failed check.
	retryInterval = 10 * time.Second

	// abandonedInterval is the interval between checks whether webhooks that point to another manager are
	// still served.
	abandonedInterval = 15 * time.Second

	// attempts limits the retries of Load after conflicts with other managers.
	attempts = 5
)

// Certificates creates, stores and renews the serving certificate of webhooks. The manager loads it before it serves
// and runs [Certificates.Start], unless the certificate is externally managed. Several managers can share one Secret.
// It is safe for concurrent use.
type Certificates struct {
	client    client.Client
	writer    *kube.Writer
	namespace string
	address   Address
	now       func() time.Time

	serving atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
}

// NewCertificates returns certificates for webhooks at the address, stored in the namespace. The client c
// must not read Secrets from a cache. Call Load before serving. The manager calls it before it starts.
func NewCertificates(c client.Client, namespace string, address Address) *Certificates {
	return &Certificates{
		client: c, writer: kube.NewWriter(c, FieldOwner), namespace: namespace, address: address, now: time.Now,
	}
}

// secretName returns a different name for each set of certificate names. Otherwise two managers with
// different addresses would reissue the certificate in turns.
func (c *Certificates) secretName() string {
	if c.address.URL == "" && c.address.Service.Name != "" {
		return c.address.Service.Name + secretEnding
	}
	return secretName
}

// CA returns the CA certificates that verify the serving certificate, in PEM. It is nil before Load. The manager passes
// it to [Install].
func (c *Certificates) CA() []byte {
	if bundle := c.bundle.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// Serve makes a TLS configuration use the current certificate. The manager calls it for its webhook server.
func (c *Certificates) Serve(config *tls.Config) {
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if serving := c.serving.Load(); serving != nil {
			return serving, nil
		}
		return nil, errors.New("the webhook certificate is not loaded yet")
	}
}

// Load reads the Secret, issues missing certificates, renews those that are due, and starts using the result.
// The namespace must exist.
func (c *Certificates) Load(ctx context.Context) error {
	kept, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	return c.use(kept)
}

// prepare returns the content of the Secret after issuing missing certificates and renewing those that are
// due.
func (c *Certificates) prepare(ctx context.Context) (material, error) {
	for range attempts {
		kept, done, err := c.attempt(ctx)
		if err != nil {
			return material{}, fmt.Errorf("preparing the webhook certificate: %w", err)
		}
		if done {
			return kept, nil
		}
	}
	return material{}, fmt.Errorf("preparing the webhook certificate: Secret %s/%s is written by others all the time", c.namespace, c.secretName())
}

// attempt returns false if the Secret must be read again, because it was just created or because another
// manager changed it.
func (c *Certificates) attempt(ctx context.Context) (material, bool, error) {
	secret := &corev1.Secret{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.secretName()}, secret)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return material{}, false, err
	}
	kept, changed, err := renew(secret.Data, c.leaf(), c.now())
	if err != nil || !changed {
		return kept, err == nil, err
	}
	if !exists {
		// The first manager to create the Secret wins.
		secret.Namespace, secret.Name, secret.Type, secret.Data = c.namespace, c.secretName(), corev1.SecretTypeTLS, kept.data()
		return material{}, false, c.writer.Create(ctx, secret)
	}
	err = c.writer.Patch(ctx, secret, func(object client.Object) { object.(*corev1.Secret).Data = kept.data() })
	if apierrors.IsConflict(err) {
		return material{}, false, nil
	}
	return kept, err == nil, err
}

func (c *Certificates) use(kept material) error {
	pair, err := tls.X509KeyPair(kept.leaf.CertPEM, kept.leaf.KeyPEM)
	if err != nil {
		return err
	}
	c.serving.Store(&pair)
	c.bundle.Store(&kept.bundle)
	return nil
}

// leaf returns the desired serving certificate.
func (c *Certificates) leaf() pki.Leaf {
	leaf := pki.Leaf{User: "slipway-webhook"}
	for _, name := range c.address.names() {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPs = append(leaf.IPs, ip)
			continue
		}
		leaf.Names = append(leaf.Names, name)
	}
	return leaf
}

// Start renews the certificate until ctx ends, updates the CA bundles in the cluster, and redirects webhooks
// of a manager that has ended to this one. It implements manager.Runnable and does not need leadership.
func (c *Certificates) Start(ctx context.Context) error {
	look := time.NewTimer(checkInterval)
	defer look.Stop()
	abandoned := time.NewTicker(abandonedInterval)
	defer abandoned.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-abandoned.C:
			if err := c.redirectAbandoned(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "redirecting the webhooks of a stopped manager failed")
			}
		case <-look.C:
			wait := checkInterval
			if err := c.refresh(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "renewing the webhook certificate failed, retrying")
				wait = retryInterval
			}
			look.Reset(wait)
		}
	}
}

// redirectAbandoned redirects webhooks to this manager if they point to another manager that is no longer serving,
// because every write that they match fails. Webhooks of a manager that is serving are not changed. CRDs
// retain their schemas, which may be of a newer version.
func (c *Certificates) redirectAbandoned(ctx context.Context) error {
	if c.address.URL == "" {
		return nil
	}
	left := c.address
	left.Sets = nil
	for _, p := range FindCurrentWebhooks(ctx, c.client, c.address) {
		if strings.HasSuffix(c.address.URL, "://"+p.Host) || p.Responds(ctx) {
			continue
		}
		log.FromContext(ctx).Info("redirecting webhooks to this manager, because their previous manager does not respond", "provider", p.Set.Name, "was", p.Host)
		left.Sets = append(left.Sets, p.Set)
	}
	if len(left.Sets) == 0 {
		return nil
	}
	if err := crds.Redirect(ctx, c.client, crds.Options{ConversionWebhook: left.conversionClient(c.CA()), Sets: left.Sets}); err != nil {
		return err
	}
	return configure(ctx, c.client, left, c.CA())
}

// refresh loads or renews the certificate. New CA certificates are installed in the cluster before they are used
// for serving.
func (c *Certificates) refresh(ctx context.Context) error {
	kept, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(kept.bundle, c.CA()) {
		if err := Install(ctx, c.client, c.address, kept.bundle); err != nil {
			return err
		}
	}
	return c.use(kept)
}

// NeedLeaderElection returns false because every manager serves webhooks.
func (c *Certificates) NeedLeaderElection() bool { return false }
