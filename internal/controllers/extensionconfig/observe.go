package extensionconfig

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// authorityKey is the key of a Secret that contains the certificates of an authority, as Cluster API and cert-manager
// use it.
const authorityKey = "ca.crt"

// snapshot is the input of all decisions about an ExtensionConfig. observe fills it in each reconciliation.
type snapshot struct {
	Now    time.Time
	Config *runtimev1.ExtensionConfig
	// State is the known state of the extension.
	State hook.ExtensionState
	// Asked is set if the extension was called for its handlers in this reconciliation.
	Asked bool
	// Injection is nil if the annotation is not set.
	Injection *injection
	// Catalog contains the known hooks with their deprecations.
	Catalog *hooks.Catalog
}

// injection describes the source of caBundle.
type injection struct {
	// Secret is the value of the annotation.
	Secret string
	// Bundle is the bundle to inject. It is empty if Problem explains why there is none.
	Bundle  []byte
	Problem string
}

// observe reads the snapshot of an ExtensionConfig. Package reconciler calls it at the beginning of each
// reconciliation.
func (c *controller) observe(ctx context.Context, o *runtimev1.ExtensionConfig) (snapshot, error) {
	s := snapshot{Now: c.now(), Config: o, State: c.extensions.State(o.Name), Catalog: c.catalog}
	var err error
	s.Injection, err = c.readInjection(ctx, o)
	return s, err
}

// readInjection reads the Secret and starts to watch it.
func (c *controller) readInjection(ctx context.Context, o *runtimev1.ExtensionConfig) (*injection, error) {
	text, wanted := o.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if !wanted {
		c.secrets.follow(o.Name, client.ObjectKey{})
		return nil, nil
	}
	in := &injection{Secret: text}
	key, ok := secretKey(text)
	if !ok {
		c.secrets.follow(o.Name, client.ObjectKey{})
		in.Problem = fmt.Sprintf("annotation %s is not <namespace>/<name> of a Secret; correct it",
			runtimev1.InjectCAFromSecretAnnotation)
		return in, nil
	}
	c.secrets.follow(o.Name, key)
	secret := &corev1.Secret{}
	err := c.client.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		in.Problem = fmt.Sprintf("Secret %s, which caBundle is taken from, does not exist; create it with key %s",
			key, authorityKey)
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	case len(bytes.TrimSpace(secret.Data[authorityKey])) == 0:
		in.Problem = fmt.Sprintf("Secret %s, which caBundle is taken from, has no key %s; add it", key, authorityKey)
	default:
		in.Bundle = secret.Data[authorityKey]
	}
	return in, nil
}

// secretKey parses <namespace>/<name>.
func secretKey(text string) (client.ObjectKey, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return client.ObjectKey{Namespace: namespace, Name: name},
		ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// answer calls the extension for its handlers. Package reconciler calls it when [decide] requests a discovery.
func (c *controller) answer(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	if _, ok := q.(discover); !ok {
		return s, reconciler.UnknownRead("extensionconfig", q)
	}
	var err error
	s.State, err = c.extensions.Discover(ctx, s.Config)
	s.Asked = true
	return s, err
}
