package kubeconfig

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig with these credentials for the API server of the administrator's connection. cluster
// is the name of the cluster in the file.
func (c Credentials) Kubeconfig(administrator *rest.Config, cluster, user string) ([]byte, error) {
	if c.Server != nil {
		administrator = c.Server
	}
	server := &clientcmdapi.Cluster{
		Server: administrator.Host, CertificateAuthorityData: administrator.CAData, TLSServerName: administrator.ServerName,
		DisableCompression: administrator.DisableCompression,
	}
	out, name := clientcmdapi.NewConfig(), user+"@"+cluster
	out.Clusters[cluster] = server
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Certificate, ClientKeyData: c.Key}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}
