package render

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/api"
)

// Init returns the payload of the machine that initializes the control plane. The KubeadmConfig controller calls it for
// the control plane Machine that holds the lock of its Cluster. JoinConfiguration is ignored. Errors are Invalid
// faults.
func Init(in Input, cluster *clusterv1.Cluster) (Payload, error) {
	p, err := in.userPayload()
	if err != nil {
		return Payload{}, err
	}
	config, err := api.MarshalInit(in.Spec.ClusterConfiguration, in.Spec.InitConfiguration, clusterValues(in, cluster))
	if err != nil {
		return Payload{}, err
	}
	p.Files = append(p.Files, in.Certificates...)
	return in.withKubeadm(p, "init", config), nil
}

// clusterValues returns the values from the Cluster and its Machine. They are only rendered and not written to the
// spec.
func clusterValues(in Input, cluster *clusterv1.Cluster) api.ClusterValues {
	network := cluster.Spec.ClusterNetwork
	return api.ClusterValues{
		ClusterName: cluster.Name, KubernetesVersion: in.KubernetesVersion, Endpoint: in.Endpoint,
		ServiceSubnet: strings.Join(network.Services.CIDRBlocks, ","),
		PodSubnet:     strings.Join(network.Pods.CIDRBlocks, ","),
		DNSDomain:     network.ServiceDomain,
	}
}
