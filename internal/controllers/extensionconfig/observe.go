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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// authorityKey is the key of a Secret that holds the certificates of an authority.
const authorityKey = "ca.crt"

// Snapshot is everything that a decision about an ExtensionConfig reads.
type Snapshot struct {
	Now    time.Time
	Config *runtimev1.ExtensionConfig
	// State is what is known of the extension.
	State hook.State
	// Asked is set once the extension was called for its handlers in this reconcile.
	Asked bool
	// Injection is nil where the annotation does not ask for one.
	Injection *Injection
	// Catalog of the hooks, for what is deprecated.
	Catalog *hooks.Catalog
}

// Injection is where caBundle comes from.
type Injection struct {
	// Secret as the annotation says it.
	Secret string
	// Bundle to inject; empty where Problem says why there is none.
	Bundle  []byte
	Problem string
}

func (c *Controller) observe(ctx context.Context, o *runtimev1.ExtensionConfig) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Config: o, State: c.extensions.State(o.Name), Catalog: c.catalog}
	var err error
	s.Injection, err = c.readInjection(ctx, o)
	return s, err
}

// readInjection reads the Secret, which is watched from now on.
func (c *Controller) readInjection(ctx context.Context, o *runtimev1.ExtensionConfig) (*Injection, error) {
	text, wanted := o.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if !wanted {
		c.secrets.follow(o.Name, client.ObjectKey{})
		return nil, nil
	}
	in := &Injection{Secret: text}
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

// secretKey reads <namespace>/<name>.
func secretKey(text string) (client.ObjectKey, bool) {
	namespace, name, ok := strings.Cut(text, "/")
	return client.ObjectKey{Namespace: namespace, Name: name},
		ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// answer asks the extension for its handlers.
func (c *Controller) answer(ctx context.Context, s Snapshot, q loop.Question) (Snapshot, error) {
	if _, ok := q.(Discover); !ok {
		return s, fmt.Errorf("no answer to %s", q)
	}
	var err error
	s.State, err = c.extensions.Discover(ctx, s.Config)
	s.Asked = true
	return s, err
}
