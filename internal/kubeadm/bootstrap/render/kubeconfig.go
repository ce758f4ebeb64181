package render

import (
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

const (
	// kubeconfigName is the name of the cluster, user and context in the kubeconfig.
	kubeconfigName = "default"
	// execVersion is the default API version of credential plugins.
	execVersion = "client.authentication.k8s.io/v1"
)

// discoveryKubeconfig returns the kubeconfig of file discovery (spec.joinConfiguration.discovery.file), which is
// written to the machine and with which kubeadm join finds the cluster. Server and CA default to the values of the
// cluster, and the user entry is copied. [Join] and [JoinControlPlane] add the file to the payload.
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
		cluster.CertificateAuthorityData = ca // clients reject a CA together with insecureSkipTLSVerify
	}
	out, err := api.YAMLMarshal(clientcmdv1.Config{
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
