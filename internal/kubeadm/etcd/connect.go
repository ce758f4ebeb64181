package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// maxResponseBytes limits the size of a response, in bytes.
	maxResponseBytes = 1 << 20
	// clientPort is the port on which members listen for clients.
	clientPort = "2379"
	// clientUser is the name in client certificates. kubeadm's etcd checks only the CA that signed the certificate.
	clientUser = "slipway-etcd-client"
)

// Config configures the connections to the members of an etcd cluster.
type Config struct {
	// Nodes are the names of the Nodes with a member, in the order in which they are tried. Omit the Node of a member
	// that is about to be removed. Required.
	Nodes []string
	// Dial connects to the member on a Node. Required.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// TLS contains the client certificate and the CA of the members. The certificate of each member must be valid for
	// the name of its Node. Required.
	TLS *tls.Config
	// CallTimeout limits a call to one member, and DialTimeout limits connecting to it, which is part of the call.
	// Defaults: 15 s and 10 s.
	CallTimeout, DialTimeout time.Duration
	// IdleTimeout is the time after which an unused connection is closed. It defaults to 150 s, so that reads once a
	// minute reuse the connection.
	IdleTimeout time.Duration
}

// ClientTLS returns the TLS configuration for a client of an etcd cluster, with a new client certificate signed by the
// given CA. Certificate and key are PEM. The client certificate is valid for one hour, so longer-lived clients have to
// reconnect. Package controlplane/workload and the EtcdSnapshotPolicy controller call it before they connect.
func ClientTLS(caCert, caKey []byte, now time.Time) (*tls.Config, error) {
	authority, err := pki.ParsePair(caCert, caKey)
	if err != nil {
		return nil, fault.New(fault.Invalid, "EtcdAuthorityInvalid", "the etcd CA cannot be used").From(err)
	}
	leaf, err := authority.Issue(pki.Leaf{User: clientUser, Client: true, Lifetime: time.Hour}, now)
	if err != nil {
		return nil, fault.New(fault.Invalid, "EtcdAuthorityInvalid", "the etcd CA cannot sign a client certificate").From(err)
	}
	cert, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("creating a client certificate for etcd: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Cert)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}}, nil
}

// cluster implements Cluster with one client per Node.
type cluster struct {
	cfg Config

	mu      sync.Mutex
	clients map[string]*clientv3.Client
	closed  bool
}

// Connect returns a Cluster. Connections are opened by the first call. The KubeadmControlPlane controller has one
// Cluster per workload cluster, cached by package controlplane/workload.
func Connect(cfg Config) (Cluster, error) {
	if len(cfg.Nodes) == 0 {
		return nil, fault.New(fault.Unreachable, "NoEtcdMember", "no Node with an etcd member is known")
	}
	if cfg.Dial == nil || cfg.TLS == nil {
		return nil, fault.New(fault.Bug, "EtcdConfigIncomplete", "an etcd cluster needs Dial and TLS")
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 15 * time.Second
	}
	if cfg.DialTimeout == 0 {
		cfg.DialTimeout = 10 * time.Second
	}
	if cfg.IdleTimeout == 0 {
		cfg.IdleTimeout = 150 * time.Second
	}
	return &cluster{cfg: cfg, clients: map[string]*clientv3.Client{}}, nil
}

// client returns the connection to the member on a Node, which later calls share.
func (c *cluster) client(node string) (*clientv3.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fault.New(fault.Bug, "EtcdClusterClosed", "the connection to the etcd cluster was closed")
	}
	if have := c.clients[node]; have != nil {
		return have, nil
	}
	config := c.cfg.TLS.Clone()
	config.ServerName = node
	made, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(node, clientPort)}, TLS: config, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: maxResponseBytes, MaxUnaryRetries: 1,
		DialOptions: []grpc.DialOption{
			grpc.WithIdleTimeout(c.cfg.IdleTimeout), grpc.WithDisableServiceConfig(),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
				defer cancel()
				return c.cfg.Dial(ctx, node)
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the etcd member on Node %s: %w", node, err)
	}
	c.clients[node] = made
	return made, nil
}

// Close implements Cluster.
func (c *cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for node, client := range c.clients {
		errs = append(errs, client.Close())
		delete(c.clients, node)
	}
	return errors.Join(errs...)
}
