package personal

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Kubeconfig is the kubeconfig of an administrator with these credentials in the place of the administrator's.
func (c Credentials) Kubeconfig(administrator []byte, user string) ([]byte, error) {
	from, err := clientcmd.Load(administrator)
	if err != nil {
		return nil, err
	}
	current := from.Contexts[from.CurrentContext]
	if current == nil || from.Clusters[current.Cluster] == nil {
		return nil, fault.New(fault.Invalid, ReasonInvalid, "the kubeconfig of the cluster has no current context with a cluster")
	}
	out, name := clientcmdapi.NewConfig(), user+"@"+current.Cluster
	out.Clusters[current.Cluster] = from.Clusters[current.Cluster]
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Certificate, ClientKeyData: c.Key}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: current.Cluster, AuthInfo: name, Namespace: current.Namespace}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}
