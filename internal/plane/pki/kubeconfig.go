package pki

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access describes a kubeconfig.
type Access struct {
	Context string // name of context and cluster
	User    string // name of the user entry
	Server  string // https URL
	CA      []byte // PEM
}

// Embedded renders a kubeconfig that carries its certificate and key.
func (a Access) Embedded(p Pair) ([]byte, error) {
	return a.render(&clientcmdapi.AuthInfo{ClientCertificateData: p.CertPEM, ClientKeyData: p.KeyPEM})
}

// Files renders a kubeconfig that names its certificate and key files, which
// client-go reads again when they change.
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

// WebhookClients is the file from which an API server takes the credentials for webhooks (--admission-control-config-file): it shows the
// certificate to those at a URL, and none to those behind a Service, whose servers may refuse a certificate of an authority that they do not know.
func WebhookClients(certFile, keyFile string) ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.AuthInfos["*"] = &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile}
	c.AuthInfos["*.svc:443"] = &clientcmdapi.AuthInfo{}
	return clientcmd.Write(*c)
}
