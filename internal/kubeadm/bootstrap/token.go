package bootstrap

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

// The lifetime and the group are the defaults of the reference implementation and of kubeadm. ownerLabel must not
// change, because the tokens of a deleted owner are found by it.
const (
	// defaultTTL is the lifetime of a token unless it is extended.
	defaultTTL = 15 * time.Minute
	// tokenGroup is the group that RBAC for joining nodes is bound to (addons/before_join.go in package
	// kubeadm/controlplane).
	tokenGroup = "system:bootstrappers:kubeadm:default-node-token"
	// ownerLabel marks the tokens of a KubeadmConfig. Its value is [TokenOwner.Label].
	ownerLabel = "bootstrap.slipway.dev/kubeadmconfig"
)

// TokenOwner is the KubeadmConfig that a token is created for, or the management node (package managementnode), which
// joins with a token as well.
type TokenOwner struct{ Namespace, Name string }

// Label returns a label value that identifies the owner. It does not depend on the UID, so it remains valid when the
// owner moves to another management cluster. Existing tokens have it, so its form must not change.
func (o TokenOwner) Label() string {
	sum := sha256.Sum256([]byte(o.Namespace + "/" + o.Name))
	return hex.EncodeToString(sum[:16])
}

// tokenState is the state of a token in the workload cluster. [decide] computes the next action on the token from it.
type tokenState struct {
	// Found is true if the Secret of the token exists.
	Found bool
	// Expires is the expiration of the token, or zero if it never expires.
	Expires time.Time
}

// tokenNeed is an action on a token. [tokenRefresh] and [tokenRotate] return it, and [decide] turns it into actions of
// the plan.
type tokenNeed int

const (
	// tokenNothing means that nothing has to be done now.
	tokenNothing tokenNeed = iota
	// tokenCreate creates the Secret of the token, which does not exist.
	tokenCreate
	// tokenExtend extends the lifetime to a full TTL.
	tokenExtend
	// tokenReplace replaces the token by another one for new machines.
	tokenReplace
)

// tokenRefresh returns the action for the token of a Machine without a Node, and the time until the next check.
// [refreshToken] calls it.
func tokenRefresh(s tokenState, now time.Time, ttl time.Duration) (tokenNeed, time.Duration) {
	need := tokenNothing
	switch {
	case !s.Found:
		need = tokenCreate
	case s.Expires.IsZero():
	case s.Expires.Sub(now) < ttl*5/6:
		need = tokenExtend
	}
	return need, ttl / 3
}

// tokenRotate returns the action for the token in the data of a MachinePool, and the time until the next check. The
// token is replaced and not extended, so that old bootstrap data does not remain valid. [decideRotation] calls it.
func tokenRotate(s tokenState, now time.Time, ttl time.Duration) (tokenNeed, time.Duration) {
	if !s.Found {
		return tokenReplace, ttl / 2
	}
	if s.Expires.IsZero() {
		return tokenNothing, 0
	}
	if left := s.Expires.Sub(now) - ttl/2; left > 0 {
		return tokenNothing, left
	}
	return tokenReplace, ttl / 2
}

func tokenID(token string) string {
	id, _, _ := strings.Cut(token, ".")
	return id
}

// tokenValid reports whether the token has the form id.secret. [decide] calls it, because a user can write any token
// into the spec.
func tokenValid(token string) bool { return bootstraputil.IsValidBootstrapToken(token) }

func secretName(token string) string { return bootstraputil.BootstrapTokenSecretName(tokenID(token)) }

// TokenLifetime is the start time and duration of a token.
type TokenLifetime struct {
	From time.Time
	TTL  time.Duration
}

// Expiration returns the expiration time in the format of the Secret.
func (l TokenLifetime) Expiration() string { return l.From.Add(l.TTL).UTC().Format(time.RFC3339) }

// state returns the state of a new token with this lifetime. The cache of tokens gets it after a write.
func (l TokenLifetime) state() tokenState { return tokenState{Found: true, Expires: l.From.Add(l.TTL)} }

// TokenSecret returns the Secret of a token, which must be [tokenValid]. The KubeadmConfig controller creates it in the
// workload cluster, and package managementnode in the management cluster. Kubernetes defines its name, type and keys.
func TokenSecret(token string, owner TokenOwner, life TokenLifetime) *corev1.Secret {
	id, secret, _ := strings.Cut(token, ".")
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: secretName(token),
			Labels: map[string]string{ownerLabel: owner.Label()},
		},
		Type: bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(id),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(secret),
			bootstrapapi.BootstrapTokenExpirationKey:       []byte(life.Expiration()),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("true"),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(tokenGroup),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte("for KubeadmConfig " + owner.Namespace + "/" + owner.Name),
		},
	}
}

// stateOf returns the state of a token from its Secret, which may be nil. An invalid expiration counts as expired, so
// that it is rewritten. read calls it.
func stateOf(secret *corev1.Secret) tokenState {
	if secret == nil {
		return tokenState{}
	}
	text, limited := secret.Data[bootstrapapi.BootstrapTokenExpirationKey]
	if !limited {
		return tokenState{Found: true}
	}
	expires, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		expires = time.Unix(0, 0)
	}
	return tokenState{Found: true, Expires: expires}
}
