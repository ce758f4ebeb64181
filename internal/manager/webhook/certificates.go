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

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/plane/pki"
)

const (
	// SecretName is the name of the Secret that holds the certificates of webhooks at a URL, in the manager's namespace.
	// Those behind a Service have one of the Service's name, with the same ending.
	SecretName = "slipway-webhook" + secretEnding

	secretEnding = "-cert"

	// lookInterval is the time between two looks at the Secret: another manager may have renewed it, or it is due.
	lookInterval = 10 * time.Minute

	// retryInterval follows a look that failed.
	retryInterval = 10 * time.Second

	// abandonedInterval is the time between two looks at whether webhooks that another manager took still answer.
	abandonedInterval = 15 * time.Second

	// attempts bounds how often Load starts again because another manager wrote at the same time.
	attempts = 5
)

// Certificates makes, keeps and renews the certificate that webhooks are served with. Any number of managers may use
// the same Secret. It is safe for concurrent use.
type Certificates struct {
	client    client.Client
	writer    *kube.Writer
	namespace string
	address   Address
	now       func() time.Time

	serving atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
}

// NewCertificates returns certificates for webhooks at an address, kept in the namespace. c must read Secrets from
// the API server. Call Load before anything is served.
func NewCertificates(c client.Client, namespace string, address Address) *Certificates {
	return &Certificates{
		client: c, writer: kube.NewWriter(c, Writer), namespace: namespace, address: address, now: time.Now,
	}
}

// secretName is one for each set of names that a certificate is for, so that two managers do not issue it in turns.
func (c *Certificates) secretName() string {
	if c.address.URL == "" && c.address.Service.Name != "" {
		return c.address.Service.Name + secretEnding
	}
	return SecretName
}

// CA returns the authorities that the serving certificate can be checked with, in PEM; nil before Load.
func (c *Certificates) CA() []byte {
	if bundle := c.bundle.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// Serve makes a TLS configuration use the certificate, whichever is current.
func (c *Certificates) Serve(config *tls.Config) {
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if serving := c.serving.Load(); serving != nil {
			return serving, nil
		}
		return nil, errors.New("the webhook certificate is not loaded yet")
	}
}

// Load reads the Secret, makes or renews what is missing or due, and serves with it. The namespace must exist.
func (c *Certificates) Load(ctx context.Context) error {
	kept, err := c.prepare(ctx)
	if err != nil {
		return err
	}
	return c.use(kept)
}

// prepare returns what the Secret holds, after making or renewing what is missing or due.
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

// attempt is false when the Secret must be read again, since it is new or another manager wrote it in between.
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
		// Whoever creates it first decides.
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

// leaf describes the serving certificate.
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

// Start renews the certificate in time until ctx ends, tells the API server about new authorities, and takes over the webhooks that a
// manager that ended has left behind. It is a manager.Runnable that does not need leadership.
func (c *Certificates) Start(ctx context.Context) error {
	look := time.NewTimer(lookInterval)
	defer look.Stop()
	abandoned := time.NewTicker(abandonedInterval)
	defer abandoned.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-abandoned.C:
			if err := c.takeOver(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Taking over the webhooks of a manager that ended")
			}
		case <-look.C:
			wait := lookInterval
			if err := c.look(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Renewing the webhook certificate")
				wait = retryInterval
			}
			look.Reset(wait)
		}
	}
}

// takeOver points the webhooks at this manager where those of another one do not answer: it has ended, and every write that they look
// at fails. While that one answers they stay with it. CRDs keep their schemas, which may be those of a newer version.
func (c *Certificates) takeOver(ctx context.Context) error {
	if c.address.URL == "" {
		return nil
	}
	left := c.address
	left.Sets = nil
	for _, p := range Find(ctx, c.client, c.address) {
		if strings.HasSuffix(c.address.URL, "://"+p.Host) || p.Answers(ctx) {
			continue
		}
		log.FromContext(ctx).Info("the webhooks come to this manager: the one that had them does not answer", "provider", p.Set.Name, "was", p.Host)
		left.Sets = append(left.Sets, p.Set)
	}
	if len(left.Sets) == 0 {
		return nil
	}
	if err := crds.Redirect(ctx, c.client, crds.Options{ConversionWebhook: left.conversionClient(c.CA()), Sets: left.Sets}); err != nil {
		return err
	}
	return Configure(ctx, c.client, left, c.CA())
}

// look reads or renews the certificate. New authorities are trusted before anything is served with them.
func (c *Certificates) look(ctx context.Context) error {
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

// NeedLeaderElection says that every manager serves webhooks.
func (c *Certificates) NeedLeaderElection() bool { return false }
