package workload

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	kubeadmsecrets "github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

const (
	// port of etcd members for clients.
	port = 2379
	// maxConnectionAge is the maximum age of a connection. It is shorter than the validity of the client certificate.
	maxConnectionAge = 45 * time.Minute
)

// EtcdForwarder connects to ports of Pods of workload clusters. The manager passes its connections.
type EtcdForwarder interface {
	Forward(ctx context.Context, cluster client.ObjectKey, to portforward.Target) (net.Conn, error)
}

// EtcdTimeouts limits connecting to members and calling them. Zero selects the defaults of package etcd. Flags of
// `slipway manager` set them.
type EtcdTimeouts struct{ Dial, Call time.Duration }

// EtcdConnections caches the connections to the etcd members of all workload clusters. The KubeadmControlPlane
// controller has one, and uses it in each read of a workload cluster and to change the membership.
type EtcdConnections struct {
	Forwarder EtcdForwarder
	// Secrets lists the readers that are tried in order.
	Secrets []client.Reader
	Now     func() time.Time
	EtcdTimeouts

	mu   sync.Mutex
	open map[client.ObjectKey]*connection
}

// connection is the cached connection to the members of one cluster. It is replaced if the Nodes or the etcd CA change,
// or at [maxConnectionAge].
type connection struct {
	etcd.Cluster
	nodes []string
	ca    []byte
	since time.Time
}

// Etcd returns the members on Nodes of a cluster. The caller must not close the result.
func (c *EtcdConnections) Etcd(ctx context.Context, cluster client.ObjectKey, nodes []string) (etcd.Cluster, error) {
	found, err := kubeadmsecrets.Read(ctx, cluster, []kubeadmsecrets.Purpose{kubeadmsecrets.Etcd}, c.Secrets...)
	if err != nil {
		return nil, err
	}
	secret := found[kubeadmsecrets.Etcd]
	if secret == nil || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return nil, fault.New(fault.Unreachable, "EtcdAuthorityMissing", "Secret %s has no key, which is required to sign client certificates for etcd", kubeadmsecrets.Etcd.SecretName(cluster.Name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, have := range c.open { // the cluster does not exist, or was not read for a long time
		if c.Now().Sub(have.since) >= 2*maxConnectionAge {
			c.close(other)
		}
	}
	if have := c.open[cluster]; have != nil {
		if slices.Equal(have.nodes, nodes) && bytes.Equal(have.ca, secret.Data[corev1.TLSCertKey]) && c.Now().Sub(have.since) < maxConnectionAge {
			return have, nil
		}
		c.close(cluster)
	}
	made, err := c.connect(cluster, nodes, secret)
	if err != nil {
		return nil, err
	}
	if c.open == nil {
		c.open = map[client.ObjectKey]*connection{}
	}
	c.open[cluster] = made
	return made, nil
}

// connect opens a connection with a new client certificate, through forwarded ports of the static Pods of etcd.
func (c *EtcdConnections) connect(cluster client.ObjectKey, nodes []string, secret *corev1.Secret) (*connection, error) {
	config, err := etcd.ClientTLS(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], c.Now())
	if err != nil {
		return nil, err
	}
	made, err := etcd.Connect(etcd.Config{
		Nodes: slices.Clone(nodes), TLS: config, CallTimeout: c.Call, DialTimeout: c.Dial,
		Dial: func(ctx context.Context, node string) (net.Conn, error) {
			return c.Forwarder.Forward(ctx, cluster, portforward.Target{Namespace: metav1.NamespaceSystem, Pod: "etcd-" + node, Port: port})
		},
	})
	if err != nil {
		return nil, err
	}
	return &connection{Cluster: made, nodes: slices.Clone(nodes), ca: secret.Data[corev1.TLSCertKey], since: c.Now()}, nil
}

// close closes a connection, which aborts calls in progress.
func (c *EtcdConnections) close(cluster client.ObjectKey) {
	have := c.open[cluster]
	delete(c.open, cluster)
	go func() { _ = have.Close() }()
}
