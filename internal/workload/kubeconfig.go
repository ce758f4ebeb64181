package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// reasonKubeconfigInvalid is the reason of every fault of [ParseKubeconfig] and [CheckKubeconfig]; their kind is
// Invalid.
const reasonKubeconfigInvalid = "KubeconfigInvalid"

// Limits of a kubeconfig.
const (
	// maxKubeconfigBytes is the maximum size of the file. A kubeconfig with a certificate chain and a key takes less
	// than a tenth of it.
	maxKubeconfigBytes = 256 << 10
	// maxKubeconfigEntries is the maximum number of clusters, of users and of contexts.
	maxKubeconfigEntries = 20
)

// ParseKubeconfig returns the client configuration for the current context of an untrusted kubeconfig, such as one in a
// Secret. [Clusters] calls it before it connects; package kubeadm/secrets and commands call it for kubeconfigs of
// workload clusters. A test checks that no other package parses kubeconfigs of tenants. It is not meant for kubeconfigs
// of command-line users, who may run any command anyway. The configuration is built from the allowed fields only, so
// that no other field has an effect. All entries are validated, also entries outside the current context. The error is
// a fault whose message states the necessary correction.
func ParseKubeconfig(text []byte, allowed policy.Configuration) (*rest.Config, error) {
	cfg, err := loadKubeconfig(text)
	if err != nil {
		return nil, err
	}
	cluster, user, err := currentEntries(cfg)
	if err != nil {
		return nil, err
	}
	if err := checkAddress(cluster, allowed); err != nil {
		return nil, err
	}
	out := &rest.Config{
		Host: cluster.Server, BearerToken: user.Token, Username: user.Username, Password: user.Password,
		DisableCompression: cluster.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
	}
	if err := checkTLS(out.TLSClientConfig); err != nil {
		return nil, err
	}
	switch {
	case cluster.ProxyURL != "":
		proxy, err := proxyOf(cluster.ProxyURL, allowed)
		if err != nil {
			return nil, err
		}
		out.Proxy = http.ProxyURL(proxy)
	case len(allowed.Workloads.Ranges) > 0:
		out.Proxy, out.Dial = noProxy, guardedDial(allowed)
	}
	return out, nil
}

// CheckKubeconfig returns the reason why the kubeconfig must not be given to a user, whose own programs would run its
// commands and read its files; nil if it is safe. It does not restrict addresses and proxies. Package kubeconfig calls
// it before a command writes or prints a kubeconfig.
func CheckKubeconfig(text []byte) error {
	_, err := loadKubeconfig(text)
	return err
}

// loadKubeconfig parses the kubeconfig and validates its entries.
func loadKubeconfig(text []byte) (*clientcmdapi.Config, error) {
	if len(text) > maxKubeconfigBytes {
		return nil, kubeconfigRefused("the kubeconfig has more than %d KiB: leave only the entries of this cluster in it", maxKubeconfigBytes>>10)
	}
	cfg, err := clientcmd.Load(text)
	if err != nil {
		return nil, kubeconfigRefused("the kubeconfig cannot be read: correct or replace it").From(err)
	}
	return cfg, checkEntries(cfg)
}

func kubeconfigRefused(format string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, reasonKubeconfigInvalid, format, args...)
}

// checkEntries rejects content that is not allowed in any entry.
func checkEntries(cfg *clientcmdapi.Config) error {
	if len(cfg.Clusters) > maxKubeconfigEntries || len(cfg.AuthInfos) > maxKubeconfigEntries || len(cfg.Contexts) > maxKubeconfigEntries {
		return kubeconfigRefused("the kubeconfig has more than %d clusters, users or contexts: leave only those of this cluster in it", maxKubeconfigEntries)
	}
	for _, u := range cfg.AuthInfos {
		if err := checkUser(u); err != nil {
			return err
		}
	}
	for _, c := range cfg.Clusters {
		if c.CertificateAuthority != "" {
			return kubeconfigRefused("the kubeconfig names a file for the certificate authority: embed its content instead (certificate-authority-data)")
		}
		if c.InsecureSkipTLSVerify {
			return kubeconfigRefused("the kubeconfig sets insecure-skip-tls-verify: remove it and set certificate-authority-data")
		}
	}
	return nil
}

func checkUser(u *clientcmdapi.AuthInfo) error {
	switch {
	case u.Exec != nil || u.AuthProvider != nil:
		return kubeconfigRefused("the kubeconfig asks to run a command or plugin for its credentials: embed a token or a client certificate instead")
	case u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "":
		return kubeconfigRefused("the kubeconfig names files for its credentials: embed their content instead (client-certificate-data, client-key-data, token)")
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		return kubeconfigRefused("the kubeconfig impersonates another user (as): embed credentials of that user instead")
	}
	return nil
}

// currentEntries returns the entries that the current context references. A context without a user has no credentials.
func currentEntries(cfg *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	context := cfg.Contexts[cfg.CurrentContext]
	if context == nil {
		return nil, nil, kubeconfigRefused("the kubeconfig has no current context: set current-context to the name of one of its contexts")
	}
	cluster, user := cfg.Clusters[context.Cluster], cfg.AuthInfos[context.AuthInfo]
	if cluster == nil {
		return nil, nil, kubeconfigRefused("the current context of the kubeconfig names a cluster that it does not contain: correct or replace it")
	}
	if user == nil && context.AuthInfo != "" {
		return nil, nil, kubeconfigRefused("the current context of the kubeconfig names a user that it does not contain: correct or replace it")
	}
	if user == nil {
		user = &clientcmdapi.AuthInfo{}
	}
	return cluster, user, nil
}

// checkTLS rejects TLS data with which every connection would fail.
func checkTLS(c rest.TLSClientConfig) error {
	if len(c.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CAData) {
		return kubeconfigRefused("certificate-authority-data of the kubeconfig contains no certificate: correct or replace it")
	}
	if len(c.CertData) == 0 && len(c.KeyData) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		return kubeconfigRefused("client-certificate-data and client-key-data of the kubeconfig are not a certificate and its key: correct or replace them").From(err)
	}
	return nil
}

// proxyOf returns the proxy if the operator's policy allows it.
func proxyOf(text string, allowed policy.Configuration) (*url.URL, error) {
	if !slices.Contains(allowed.Workloads.Proxies, text) {
		return nil, kubeconfigRefused("the kubeconfig uses a proxy (proxy-url): remove it, or ask the operator to allow it in workloads.proxies in the configuration file (--config of slipway up or slipway manager)")
	}
	proxy, err := url.Parse(text)
	if err == nil && proxy.Host == "" {
		err = errors.New("it names no host")
	}
	if err != nil {
		return nil, kubeconfigRefused("proxy-url of the kubeconfig cannot be used: correct it, here and in workloads.proxies").From(fmt.Errorf("parsing it: %w", err))
	}
	return proxy, nil
}

// checkAddress validates the server URL. The addresses of a host name are checked when a connection is opened; see
// guardedDial.
func checkAddress(cluster *clientcmdapi.Cluster, allowed policy.Configuration) error {
	server, err := url.Parse(cluster.Server)
	if err != nil || server.Scheme != "https" || server.Hostname() == "" || server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return kubeconfigRefused("server of the kubeconfig must be an https:// URL of a host without user, query and fragment: correct or replace it")
	}
	literal, err := netip.ParseAddr(server.Hostname())
	switch {
	case err == nil:
		if why := allowed.DeniedWorkload(literal.WithZone("")); why != "" {
			return kubeconfigRefused("%s", why)
		}
	case cluster.ProxyURL != "" && len(allowed.Workloads.Ranges) > 0:
		return kubeconfigRefused("the kubeconfig names a host that its proxy would resolve, so that it cannot be compared with workloads.ranges: use an IP address")
	}
	return nil
}

// guardedDial connects only to addresses that the operator's policy allows. It checks them after the name was resolved,
// so that DNS rebinding cannot bypass the check.
func guardedDial(allowed policy.Configuration) func(context.Context, string, string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if why := allowed.DeniedWorkload(at.Addr().WithZone("")); why != "" {
			return kubeconfigRefused("%s", why)
		}
		return nil
	}
	return dialer.DialContext
}

// noProxy disables the proxy of the environment, which would connect to unchecked addresses.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }
