package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
)

const (
	// DefaultTTL is the lifetime of a token unless it is extended.
	DefaultTTL = 15 * time.Minute
	// TokenGroup is the group that RBAC for joining nodes is bound to.
	TokenGroup = "system:bootstrappers:kubeadm:default-node-token"
	// OwnerLabel marks the tokens of a KubeadmConfig. Its value is [Owner.Label].
	OwnerLabel = "bootstrap.slipway.dev/kubeadmconfig"
)

// Owner is the KubeadmConfig that a token is created for.
type Owner struct{ Namespace, Name string }

// Label returns a label value that identifies the owner. It does not depend on the UID, so it remains valid when the
// owner moves to another management cluster.
func (o Owner) Label() string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Name))
	return hex.EncodeToString(sum[:16])
}

// State is the state of a token in the workload cluster.
type State struct {
	// Found is true if the Secret of the token exists.
	Found bool
	// Expires is the expiration of the token, or zero if it never expires.
	Expires time.Time
}

// Need is an action on a token.
type Need int

const (
	// Nothing to do now.
	Nothing Need = iota
	// Create the Secret of the token, which does not exist.
	Create
	// Extend the lifetime to a full TTL.
	Extend
	// Replace the token by another one for new machines.
	Replace
)

// Refresh returns the action for the token of a Machine without a Node, and the time until the next check.
func Refresh(s State, now time.Time, ttl time.Duration) (Need, time.Duration) {
	need := Nothing
	switch {
	case !s.Found:
		need = Create
	case s.Expires.IsZero():
	case s.Expires.Sub(now) < ttl*5/6:
		need = Extend
	}
	return need, ttl / 3
}

// Rotate returns the action for the token in the data of a MachinePool, and the time until the next check. The token
// is replaced and not extended, so that old bootstrap data does not remain valid.
func Rotate(s State, now time.Time, ttl time.Duration) (Need, time.Duration) {
	if !s.Found {
		return Replace, ttl / 2
	}
	if s.Expires.IsZero() {
		return Nothing, 0
	}
	if left := s.Expires.Sub(now) - ttl/2; left > 0 {
		return Nothing, left
	}
	return Replace, ttl / 2
}

// ID returns the public part of a token.
func ID(token string) string {
	id, _, _ := strings.Cut(token, ".")
	return id
}

// Valid reports whether the token has the form id.secret.
func Valid(token string) bool { return bootstraputil.IsValidBootstrapToken(token) }

// SecretName returns the name of the token's Secret in kube-system.
func SecretName(token string) string { return bootstraputil.BootstrapTokenSecretName(ID(token)) }

// Lifetime is the start time and duration of a token.
type Lifetime struct {
	From time.Time
	TTL  time.Duration
}

// Expiration returns the expiration time in the format of the Secret.
func (l Lifetime) Expiration() string { return l.From.Add(l.TTL).UTC().Format(time.RFC3339) }

// State returns the state of a new token with this lifetime.
func (l Lifetime) State() State { return State{Found: true, Expires: l.From.Add(l.TTL)} }

// Secret returns the Secret of a token, which must be [Valid].
func Secret(token string, owner Owner, life Lifetime) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: SecretName(token),
			Labels: map[string]string{OwnerLabel: owner.Label()},
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(id),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(secret),
			bootstrapapi.BootstrapTokenExpirationKey:       []byte(life.Expiration()),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("true"),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(TokenGroup),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte("for KubeadmConfig " + owner.Namespace + "/" + owner.Name),
		},
	}
}

// StateOf returns the state of a token from its Secret, which may be nil. An invalid expiration counts as expired, so
// that it is rewritten.
func StateOf(secret *corev1.Secret) State {
	if secret == nil {
		return State{}
	}
	text, limited := secret.Data[bootstrapapi.BootstrapTokenExpirationKey]
	if !limited {
		return State{Found: true}
	}
	expires, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		expires = time.Unix(0, 0)
	}
	return State{Found: true, Expires: expires}
}
