package payload

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/providers/kubeadm/kubeadmapi"
)

// Init returns what the first machine of a control plane does to make the cluster. The section of the spec that
// belongs to kubeadm join is ignored. Errors are Invalid faults.
func Init(in Input, cluster *clusterv1.Cluster) (Payload, error) {
	p, err := in.ofUser()
	if err != nil {
		return Payload{}, err
	}
	config, err := kubeadmapi.MarshalInit(in.Spec.ClusterConfiguration, in.Spec.InitConfiguration, factsOf(in, cluster))
	if err != nil {
		return Payload{}, err
	}
	p.Files = append(p.Files, in.Certificates...)
	return in.withKubeadm(p, "init", config), nil
}

// factsOf is what the Cluster and its Machine know. It is rendered only: nothing of it is written into the spec.
func factsOf(in Input, cluster *clusterv1.Cluster) kubeadmapi.Facts {
	network := cluster.Spec.ClusterNetwork
	return kubeadmapi.Facts{
		ClusterName: cluster.Name, KubernetesVersion: in.KubernetesVersion, Endpoint: in.Endpoint,
		ServiceSubnet: strings.Join(network.Services.CIDRBlocks, ","),
		PodSubnet:     strings.Join(network.Pods.CIDRBlocks, ","),
		DNSDomain:     network.ServiceDomain,
	}
}
