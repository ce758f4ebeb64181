package pki

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access describes a kubeconfig to write, for administrators and components of a management or workload cluster.
// Packages controlplane, kubeadm/secrets and controllers/cluster fill it in.
type Access struct {
	Context string // name of context and cluster
	User    string // name of the user entry
	Server  string // https URL
	CA      []byte // PEM
}

// Embedded returns a kubeconfig that contains the certificate and key.
func (a Access) Embedded(p Pair) ([]byte, error) {
	return a.render(&clientcmdapi.AuthInfo{ClientCertificateData: p.CertPEM, ClientKeyData: p.KeyPEM})
}

// Files returns a kubeconfig that refers to the certificate and key files, which client-go reloads when they
// change.
func (a Access) Files(certFile, keyFile string) ([]byte, error) {
	return a.render(&clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile})
}

func (a Access) render(user *clientcmdapi.AuthInfo) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[a.Context] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: a.CA}
	c.AuthInfos[a.User] = user
	c.Contexts[a.Context] = &clientcmdapi.Context{Cluster: a.Context, AuthInfo: a.User}
	c.CurrentContext = a.Context
	return clientcmd.Write(*c)
}

// WebhookClients returns the kubeconfig with the credentials of an API server for webhooks
// (--admission-control-config-file). It presents the certificate to webhooks at a URL only, because servers
// behind a Service may reject a certificate of an unknown CA. Package controlplane writes it for the management
// cluster.
func WebhookClients(certFile, keyFile string) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile}
	c.AuthInfos["*.svc:443"] = &clientcmdapi.AuthInfo{}
	return clientcmd.Write(*c)
}
