package simulated

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"

	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// tenant is one cluster for the shared api: the state that the api needs to serve its requests. A context with a tenant
// selects the cluster.
type tenant struct {
	// Keys stores its objects.
	Keys *store.Keyspace
	// Version is the response of GET /version, for example v1.36.3.
	Version string
	// Delay returns how long to delay each request; nil: not at all.
	Delay func() time.Duration

	// Forward serves connections to ports of Pods. It is nil if no Pod listens.
	Forward forward

	certificates *certificates

	mu sync.Mutex
	// eviction is created at the first eviction.
	eviction *podstore.EvictionREST
}

// newTenant returns a cluster whose users authenticate with client certificates of the authorities. The Server creates
// one whenever it starts a cluster.
func newTenant(keys *store.Keyspace, version string, authorities *x509.CertPool, delay func() time.Duration) *tenant {
	options := x509request.DefaultVerifyOptions()
	options.Roots = authorities
	return &tenant{
		Keys: keys, Version: version, Delay: delay,
		certificates: &certificates{
			verify: x509request.New(options, x509request.CommonNameUserConversion), known: map[[sha256.Size]byte]cachedUser{},
		},
	}
}

// errNoCluster indicates a bug: the context of a call has no cluster.
var errNoCluster = errors.New("the call is about no cluster")

type tenantKey struct{}

// withTenant returns a context for requests to the cluster.
func withTenant(ctx context.Context, t *tenant) context.Context {
	return store.WithKeyspace(context.WithValue(ctx, tenantKey{}, t), t.Keys)
}

// tenantFrom returns the cluster of a context, or nil.
func tenantFrom(ctx context.Context) *tenant {
	t, _ := ctx.Value(tenantKey{}).(*tenant)
	return t
}

// certificates caches the users of verified certificates, because verifying a signature costs more than a request.
type certificates struct {
	verify authenticator.Request
	mu     sync.Mutex
	known  map[[sha256.Size]byte]cachedUser
}

type cachedUser struct {
	response *authenticator.Response
	until    time.Time
}

// maxKnown limits the cache; clusters have few nodes and users.
const maxKnown = 64

func (c *certificates) authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	sum := sha256.Sum256(leaf.Raw)
	c.mu.Lock()
	v, ok := c.known[sum]
	c.mu.Unlock()
	if ok && time.Now().Before(v.until) {
		return v.response, true, nil
	}
	response, ok, err := c.verify.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[sum] = cachedUser{response, leaf.NotAfter}
	return response, true, nil
}

// fullAccessKey marks internal requests of this process.
type fullAccessKey struct{}

// withFullAccess returns a context for internal requests with full access. The loopback transport and the reads of RBAC
// objects use it.
func withFullAccess(ctx context.Context) context.Context {
	return context.WithValue(ctx, fullAccessKey{}, true)
}

// authenticate implements authenticator.Request for all clusters.
func authenticate(r *http.Request) (*authenticator.Response, bool, error) {
	if r.Context().Value(fullAccessKey{}) != nil {
		return &authenticator.Response{User: &user.DefaultInfo{
			Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated},
		}}, true, nil
	}
	t := tenantFrom(r.Context())
	if t == nil {
		return nil, false, nil
	}
	response, ok, err := t.certificates.authenticate(r)
	if err != nil || !ok {
		return nil, false, err
	}
	return withGroup(response), true, nil
}

// withGroup adds the group of authenticated users.
func withGroup(r *authenticator.Response) *authenticator.Response {
	groups := append([]string{}, r.User.GetGroups()...)
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: r.User.GetName(), UID: r.User.GetUID(), Groups: append(groups, user.AllAuthenticated), Extra: r.User.GetExtra(),
	}}
}
