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
	// DefaultTTL is how long a token lives unless it is extended.
	DefaultTTL = 15 * time.Minute
	// TokenGroup is the group that RBAC for joining nodes is bound to.
	TokenGroup = "system:bootstrappers:kubeadm:default-node-token"
	// OwnerLabel marks the tokens made for one KubeadmConfig; its value is [Owner.Label].
	OwnerLabel = "bootstrap.slipway.dev/kubeadmconfig"
)

// Owner is the KubeadmConfig that a token is made for.
type Owner struct{ Namespace, Name string }

// Label returns a label value that stands for the owner. It does not depend on its UID, so it survives a
// move of the owner to another management cluster.
func (o Owner) Label() string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Name))
	return hex.EncodeToString(sum[:16])
}

// State is what the workload cluster knows of a token.
type State struct {
	// Found: its Secret exists.
	Found bool
	// Expires is the end of its life; zero: never.
	Expires time.Time
}

// Need is what has to be done about a token.
type Need int

const (
	// Nothing has to be done now.
	Nothing Need = iota
	// Create its Secret: there is none.
	Create
	// Extend its life to a full TTL.
	Extend
	// Replace it by another one, which new machines will be given.
	Replace
)

// Refresh decides about the token of a Machine that has no Node yet, and when to look again.
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

// Rotate decides about the token that the data of a MachinePool carries, and when to look again. The
// token itself is not extended: data that was handed out long ago must not stay valid.
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

// SecretName returns the name of the token's Secret, which is in kube-system.
func SecretName(token string) string { return bootstraputil.BootstrapTokenSecretName(ID(token)) }

// Lifetime is when a token begins, and for how long it lives.
type Lifetime struct {
	From time.Time
	TTL  time.Duration
}

// Expiration returns the end of the life as it is written into the Secret.
func (l Lifetime) Expiration() string { return l.From.Add(l.TTL).UTC().Format(time.RFC3339) }

// State is what the workload cluster knows of a token that begins now.
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

// StateOf reads a token's Secret; nil means that there is none. An expiration that cannot be read counts as
// past, so that it is written again.
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
