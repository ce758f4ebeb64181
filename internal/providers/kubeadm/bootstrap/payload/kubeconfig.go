package payload

import (
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/yamltext"
)

const (
	// kubeconfigName names the cluster, user and context of the kubeconfig.
	kubeconfigName = "default"
	// execVersion is the credential plugin API that is used where the user names none.
	execVersion = "client.authentication.k8s.io/v1"
)

// discoveryKubeconfig writes the kubeconfig of file discovery: server and CA are the cluster's where
// the user does not say, the user entry is as given.
func discoveryKubeconfig(in bootstrapv1.FileDiscoveryKubeConfig, endpoint string, ca []byte) ([]byte, error) {
	cluster := clientcmdv1.Cluster{
		Server: in.Cluster.Server, TLSServerName: in.Cluster.TLSServerName, ProxyURL: in.Cluster.ProxyURL,
		InsecureSkipTLSVerify:    in.Cluster.InsecureSkipTLSVerify != nil && *in.Cluster.InsecureSkipTLSVerify,
		CertificateAuthorityData: in.Cluster.CertificateAuthorityData,
	}
	if cluster.Server == "" {
		cluster.Server = "https://" + endpoint
	}
	if len(cluster.CertificateAuthorityData) == 0 && !cluster.InsecureSkipTLSVerify {
		cluster.CertificateAuthorityData = ca // a client refuses a CA that it is told not to use
	}
	out, err := yamltext.Marshal(clientcmdv1.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: kubeconfigName,
		Clusters:  []clientcmdv1.NamedCluster{{Name: kubeconfigName, Cluster: cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: kubeconfigName, AuthInfo: authInfo(in.User)}},
		Contexts: []clientcmdv1.NamedContext{{
			Name: kubeconfigName, Context: clientcmdv1.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName},
		}},
	})
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeconfig", "the kubeconfig of file discovery cannot be encoded").From(err)
	}
	return out, nil
}

func authInfo(in bootstrapv1.KubeConfigUser) clientcmdv1.AuthInfo {
	var out clientcmdv1.AuthInfo
	if p := in.AuthProvider; p.IsDefined() {
		out.AuthProvider = &clientcmdv1.AuthProviderConfig{Name: p.Name, Config: p.Config}
	}
	if e := in.Exec; e.IsDefined() {
		out.Exec = &clientcmdv1.ExecConfig{
			Command: e.Command, Args: e.Args, APIVersion: e.APIVersion,
			ProvideClusterInfo: e.ProvideClusterInfo != nil && *e.ProvideClusterInfo,
			InteractiveMode:    clientcmdv1.NeverExecInteractiveMode,
		}
		if out.Exec.APIVersion == "" {
			out.Exec.APIVersion = execVersion
		}
		for _, env := range e.Env {
			out.Exec.Env = append(out.Exec.Env, clientcmdv1.ExecEnvVar{Name: env.Name, Value: env.Value})
		}
	}
	return out
}
