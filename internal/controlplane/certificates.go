package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Identities of the management cluster. Certificates, roles (config/rbac) and FlowSchemas of existing data directories
// contain them, so they must not change. Package clusterctl/install recognizes a management cluster of `slipway up` by
// the ClusterRoleBinding with the name adminGroup.
const (
	adminUser         = "admin"           // the user who ran "slipway up"
	adminGroup        = "slipway:admins"  // bound to cluster-admin; not system:masters, so that it can be revoked
	managerUser       = "slipway:manager" // the manager; provider identities append a colon and the provider name
	kubeconfigContext = "slipway"         // of DIR/kubeconfig
	// extensionsUser is the manager's identity for Runtime Extensions.
	extensionsUser = "slipway:extensions"
	// WebhookUser is the API server's identity for webhooks. The webhook server of the manager accepts only this
	// caller.
	WebhookUser = "slipway:apiserver"

	managerGroup = "slipway:managers" // the manager and its providers, exempt from request queues
)

// checkEvery is the interval between checks of certificates.
const checkEvery = time.Hour

// managementPKI manages the certificates and kubeconfig files of a management cluster. [StartManagement] calls ensure
// before the components start, and then every hour.
type managementPKI struct {
	dir    datadir.Dir
	folder pki.Folder
	server string   // https URL
	hosts  []net.IP // addresses of the API server
	names  []string // host names in addition to the usual ones
	// providers have separate identities.
	providers []string
	nodes     *Nodes // nil without nodes
}

// newManagementPKI returns the certificates of a management cluster, without writing a file. newManagement calls it.
func newManagementPKI(cfg ManagementConfig, address *net.TCPAddr) managementPKI {
	names, ips := splitNamesAndIPs(slices.Concat(cfg.Addresses, cfg.Names))
	return managementPKI{
		dir:       cfg.Dir,
		folder:    pki.Folder{Path: cfg.Dir.PKI(), Now: cfg.Now},
		server:    "https://" + address.String(),
		hosts:     slices.Concat([]net.IP{address.IP, net.IPv4(127, 0, 0, 1), net.IPv6loopback}, cfg.Nodes.hosts(), ips),
		names:     names,
		providers: cfg.Providers,
		nodes:     cfg.Nodes,
	}
}

// splitNamesAndIPs separates host names from IP addresses for a certificate.
func splitNamesAndIPs(all []string) (names []string, ips []net.IP) {
	for _, one := range all {
		if ip := net.ParseIP(one); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, one)
		}
	}
	return names, ips
}

// webhookClient is the file name of the API server's client certificate for webhooks.
const webhookClient = "webhooks"

// webhookCredentials issues the API server's client certificate for webhooks and writes the kubeconfig that refers to
// it.
func (m managementPKI) webhookCredentials(ca pki.Pair) error {
	if _, _, err := m.folder.Leaf(webhookClient, ca, pki.Leaf{User: WebhookUser, Client: true}); err != nil {
		return err
	}
	data, err := pki.WebhookClients(m.folder.Cert(webhookClient), m.folder.Key(webhookClient))
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(m.webhookKubeconfig(), data, 0o600)
	return err
}

func (m managementPKI) webhookKubeconfig() string { return m.dir.Path("pki", "webhooks.kubeconfig") }

func (m managementPKI) controllersKubeconfig() string {
	return m.dir.Path("pki", "controllers.kubeconfig")
}

// ensure creates or renews all files that are missing or due. Running components reload their files. It runs before the
// API server starts, then periodically (renewPeriodically). [StartManagement] calls it.
func (m managementPKI) ensure() error {
	if err := m.authorities(); err != nil {
		return err
	}
	ca, err := m.folder.Authority("ca", pki.Authority{Name: "slipway-management-ca"})
	if err != nil {
		return err
	}
	if err := m.folder.SigningKey("sa", ""); err != nil {
		return err
	}
	serving := pki.Leaf{User: "kube-apiserver", IPs: m.hosts, Names: append([]string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}, m.names...)}
	if _, _, err := m.folder.Leaf("apiserver", ca, serving); err != nil {
		return err
	}
	admin, _, err := m.folder.Leaf("admin", ca, pki.Leaf{User: adminUser, Groups: []string{adminGroup}, Client: true})
	if err != nil {
		return err
	}
	data, err := pki.Access{Context: kubeconfigContext, User: adminUser, Server: m.server, CA: ca.CertPEM}.Embedded(admin)
	if err != nil {
		return err
	}
	if _, err := datadir.WriteFile(m.dir.Kubeconfig(), data, 0o600); err != nil {
		return err
	}
	if err := m.client(ca, "manager", pki.Leaf{User: managerUser, Groups: []string{managerGroup}}, m.dir.ManagerKubeconfig()); err != nil {
		return err
	}
	manager := pki.Leaf{User: "slipway-manager", Names: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if _, _, err := m.folder.Leaf(datadir.Diagnostics, ca, manager); err != nil {
		return err
	}
	// No role is bound to this user. The certificate only identifies the manager to extensions.
	if _, _, err := m.folder.Leaf(datadir.Extensions, ca, pki.Leaf{User: extensionsUser, Client: true}); err != nil {
		return err
	}
	// Likewise, this certificate only identifies the API server to webhooks.
	if err := m.webhookCredentials(ca); err != nil {
		return err
	}
	if err := m.nodeCertificates(ca); err != nil {
		return err
	}
	for _, name := range m.providers {
		leaf := pki.Leaf{User: managerUser + ":" + name, Groups: []string{managerGroup}}
		if err := m.client(ca, "manager-"+name, leaf, m.dir.ProviderKubeconfig(name)); err != nil {
			return err
		}
	}
	return m.client(ca, "controllers", pki.Leaf{User: "system:kube-controller-manager"}, m.controllersKubeconfig())
}

// authorities rejects a data directory with data but without its CA or signing key. They are not recreated,
// because certificates, tokens and webhooks that depend on them would fail silently.
func (m managementPKI) authorities() error {
	if _, err := os.Stat(filepath.Join(m.dir.Etcd(), "member")); err != nil {
		return nil // the first start
	}
	for _, path := range []string{m.folder.Cert("ca"), m.folder.Key("ca"), m.folder.Key("sa")} {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.Invalid, "AuthorityMissing",
				"%s is missing, and the management cluster in %s has data that relies on it: restore the folder %s from a backup, or start over with another --data-dir",
				path, m.dir, m.dir.PKI())
		}
	}
	return nil
}

// client issues a client certificate and writes a kubeconfig that refers to its files.
func (m managementPKI) client(ca pki.Pair, name string, leaf pki.Leaf, kubeconfig string) error {
	leaf.Client = true
	if _, _, err := m.folder.Leaf(name, ca, leaf); err != nil {
		return err
	}
	data, err := pki.Access{Context: kubeconfigContext, User: leaf.User, Server: m.server, CA: ca.CertPEM}.
		Files(m.folder.Cert(name), m.folder.Key(name))
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(kubeconfig, data, 0o600)
	return err
}

// renewPeriodically calls ensure every checkEvery until ctx ends, for the certificates of a management or workload
// cluster.
func renewPeriodically(ctx context.Context, ensure func() error) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := ensure(); err != nil {
				klog.FromContext(ctx).Error(err, "renewing certificates failed, retrying", "in", fmt.Sprint(checkEvery))
			}
		}
	}
}
