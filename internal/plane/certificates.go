package plane

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

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// Identities of the management cluster.
const (
	AdminUser   = "admin"           // the person who ran "slipway up"
	AdminGroup  = "slipway:admins"  // bound to cluster-admin; not system:masters, so that it can be revoked
	ManagerUser = "slipway:manager" // the manager; of each of its providers, with the name behind a colon
	Context     = "slipway"         // of DIR/kubeconfig
	// ExtensionsUser is the manager as Runtime Extensions see it.
	ExtensionsUser = "slipway:extensions"
	// WebhookUser is the API server as webhooks see it.
	WebhookUser = "slipway:apiserver"

	managerGroup = "slipway:managers" // the manager and its providers: their requests do not wait
)

// checkEvery is how often certificates are checked while the plane runs.
const checkEvery = time.Hour

// managementPKI is the certificates and kubeconfig files of a management
// cluster.
type managementPKI struct {
	dir    datadir.Dir
	folder pki.Folder
	server string   // https URL
	hosts  []net.IP // where the API server is reached
	names  []string // by which names, besides the usual ones
	// providers have identities of their own.
	providers []string
	nodes     *Nodes // nil: there are none
}

func newManagementPKI(cfg ManagementConfig, address *net.TCPAddr) managementPKI {
	names, ips := sorted(slices.Concat(cfg.Addresses, cfg.Names))
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

// sorted tells host names from addresses, as a certificate has them.
func sorted(all []string) (names []string, ips []net.IP) {
	for _, one := range all {
		if ip := net.ParseIP(one); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, one)
		}
	}
	return names, ips
}

// webhookClient is the name of the files with the certificate that the API server shows to webhooks.
const webhookClient = "webhooks"

// webhookCredentials keeps that certificate and the file that names it.
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

// ensure makes everything that is missing or old. It is run at start and every
// hour; the running components read their files again.
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
	admin, _, err := m.folder.Leaf("admin", ca, pki.Leaf{User: AdminUser, Groups: []string{AdminGroup}, Client: true})
	if err != nil {
		return err
	}
	data, err := pki.Access{Context: Context, User: AdminUser, Server: m.server, CA: ca.CertPEM}.Embedded(admin)
	if err != nil {
		return err
	}
	if _, err := datadir.WriteFile(m.dir.Kubeconfig(), data, 0o600); err != nil {
		return err
	}
	if err := m.client(ca, "manager", pki.Leaf{User: ManagerUser, Groups: []string{managerGroup}}, m.dir.ManagerKubeconfig()); err != nil {
		return err
	}
	manager := pki.Leaf{User: "slipway-manager", Names: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if _, _, err := m.folder.Leaf(datadir.Diagnostics, ca, manager); err != nil {
		return err
	}
	// Nothing is bound to this name: an extension learns who calls it, and the certificate opens no API.
	if _, _, err := m.folder.Leaf(datadir.Extensions, ca, pki.Leaf{User: ExtensionsUser, Client: true}); err != nil {
		return err
	}
	// Nor to this one: webhooks learn that the API server calls them.
	if err := m.webhookCredentials(ca); err != nil {
		return err
	}
	if err := m.nodeCertificates(ca); err != nil {
		return err
	}
	for _, name := range m.providers {
		leaf := pki.Leaf{User: ManagerUser + ":" + name, Groups: []string{managerGroup}}
		if err := m.client(ca, "manager-"+name, leaf, m.dir.ProviderKubeconfig(name)); err != nil {
			return err
		}
	}
	return m.client(ca, "controllers", pki.Leaf{User: "system:kube-controller-manager"}, m.controllersKubeconfig())
}

// authorities refuses to recreate an authority that has issued certificates: certificates, tokens and webhooks that rely on it would
// fail without a word.
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

// client keeps a client certificate and the kubeconfig that names its files.
func (m managementPKI) client(ca pki.Pair, name string, leaf pki.Leaf, kubeconfig string) error {
	leaf.Client = true
	if _, _, err := m.folder.Leaf(name, ca, leaf); err != nil {
		return err
	}
	data, err := pki.Access{Context: Context, User: leaf.User, Server: m.server, CA: ca.CertPEM}.
		Files(m.folder.Cert(name), m.folder.Key(name))
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(kubeconfig, data, 0o600)
	return err
}

// keepFresh runs ensure every checkEvery until ctx ends.
func keepFresh(ctx context.Context, ensure func() error) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := ensure(); err != nil {
				klog.FromContext(ctx).Error(err, "certificates could not be renewed; trying again", "in", fmt.Sprint(checkEvery))
			}
		}
	}
}
