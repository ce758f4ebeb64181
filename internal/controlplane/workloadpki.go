package controlplane

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// signingCert is the name of a certificate file with only the first certificate of the CA, because
// kube-controller-manager, which signs with it, does not start with several certificates.
const signingCert = "ca-signing"

// workloadPKI manages the certificates that the process of a workload cluster's control plane issues from the given
// CAs. [RunWorkload] calls ensure before the components start, and then every hour.
type workloadPKI struct {
	config processconfig.Config
	folder pki.Folder
	local  string // loopback address and port for the components of this process
}

func (w workloadPKI) kubeconfig(component string) string {
	return w.folder.Path + "/" + component + ".kubeconfig"
}

// ensure creates or renews all files that are missing or due. It runs before the components start, then periodically
// (renewPeriodically).
func (w workloadPKI) ensure() error {
	ca, err := w.load(processconfig.CA)
	if err != nil {
		return err
	}
	proxy, err := w.load(processconfig.ProxyCA)
	if err != nil {
		return err
	}
	if _, err := datadir.WriteFile(w.folder.Cert(signingCert), ca.FirstCertPEM(), 0o644); err != nil {
		return err
	}
	if err := w.folder.SigningKey(processconfig.SigningSA, ""); err != nil {
		return err
	}
	serving, err := w.serving()
	if err != nil {
		return err
	}
	leaves := []struct {
		name string
		ca   pki.Pair
		leaf pki.Leaf
	}{
		{"apiserver", ca, serving},
		{"apiserver-kubelet-client", ca, pki.Leaf{User: "kube-apiserver-kubelet-client", Groups: []string{kubeadmAdmins}, Client: true}},
		{"front-proxy-client", proxy, pki.Leaf{User: "front-proxy-client", Client: true}},
		{"controller-manager", ca, pki.Leaf{User: "system:kube-controller-manager", Client: true}},
		{"scheduler", ca, pki.Leaf{User: "system:kube-scheduler", Client: true}},
	}
	for _, l := range leaves {
		l.leaf.Lifetime = w.lifetime()
		if _, _, err := w.folder.Leaf(l.name, l.ca, l.leaf); err != nil {
			return fmt.Errorf("certificate %s: %w", l.name, err)
		}
	}
	for _, component := range []string{"controller-manager", "scheduler"} {
		if err := w.writeKubeconfig(component, ca); err != nil {
			return err
		}
	}
	return nil
}

func (w workloadPKI) load(name string) (pki.Pair, error) {
	cert, err := os.ReadFile(w.folder.Cert(name))
	if err != nil {
		return pki.Pair{}, fmt.Errorf("authority %s: %w", name, err)
	}
	key, err := os.ReadFile(w.folder.Key(name))
	if err != nil {
		return pki.Pair{}, fmt.Errorf("authority %s: %w", name, err)
	}
	pair, err := pki.ParsePair(cert, key)
	if err != nil {
		return pki.Pair{}, fmt.Errorf("authority %s: %w", name, err)
	}
	return pair, nil
}

func (w workloadPKI) lifetime() time.Duration {
	return time.Duration(max(w.config.CertificateDays, 0)) * 24 * time.Hour // zero means the default of package pki
}

// serving returns the serving certificate with all addresses of the API server: the endpoint, the Service
// "kubernetes" and loopback.
func (w workloadPKI) serving() (pki.Leaf, error) {
	endpoint, err := w.config.Address()
	if err != nil {
		return pki.Leaf{}, err
	}
	leaf := pki.Leaf{
		User:  "kube-apiserver",
		Names: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + w.config.Domain()},
		IPs:   []net.IP{net.IPv4(127, 0, 0, 1), endpoint.Addr().AsSlice()},
	}
	if local, err := netip.ParseAddrPort(w.local); err == nil {
		leaf.IPs = append(leaf.IPs, local.Addr().AsSlice())
	}
	for _, r := range w.config.ServiceCIDRs {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			return pki.Leaf{}, err
		}
		leaf.IPs = append(leaf.IPs, p.Masked().Addr().Next().AsSlice())
	}
	names, ips := splitNamesAndIPs(w.config.Names)
	leaf.Names, leaf.IPs = append(leaf.Names, names...), append(leaf.IPs, ips...)
	slices.Sort(leaf.Names)
	leaf.Names = slices.Compact(leaf.Names)
	return leaf, nil
}

func (w workloadPKI) writeKubeconfig(component string, ca pki.Pair) error {
	data, err := pki.Access{Context: w.config.Cluster, User: component, Server: "https://" + w.local, CA: ca.CertPEM}.
		Files(w.folder.Cert(component), w.folder.Key(component))
	if err != nil {
		return err
	}
	_, err = datadir.WriteFile(w.kubeconfig(component), data, 0o600)
	return err
}
