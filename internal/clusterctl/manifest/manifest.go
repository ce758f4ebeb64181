package manifest

import (
	"bytes"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	planev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// Cluster is what has to be chosen for a local cluster.
type Cluster struct {
	// Namespace may be empty; then the manifest names none.
	Namespace string
	// Name of the Cluster and of the objects that it refers to.
	Name string
	// Version of Kubernetes, for example v1.36.3.
	Version string
	// Workers is the number of nodes in the pool "<name>-workers". 0 makes a pool without nodes.
	Workers int32
	// Subnet holds nodes, Pods and Services. An IPv4 network between /8 and /20.
	Subnet netip.Prefix
}

// Pool is the name of the MachinePool of the cluster, and of its bootstrap and infrastructure objects.
func (c Cluster) Pool() string { return c.Name + "-workers" }

// Objects returns the manifest: what others refer to comes after what refers to it, as people write it. The
// error says what is wrong with the subnet.
func (c Cluster) Objects() ([]*unstructured.Unstructured, error) {
	layout, err := subnet.Plan(c.Subnet)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, o := range []client.Object{
		c.cluster(layout.Ranges()), c.infrastructure(), c.controlPlane(),
		c.pool(), c.bootstrap(), c.machines(), c.network(), c.networkSource(),
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("encoding %T: %w", o, err)
		}
		delete(content, "status")
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

func (c Cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: name}
}

func (c Cluster) cluster(ranges subnet.Ranges) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, Labels: map[string]string{NetworkLabel: flannelNetwork}},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{ranges.Pods.String()}},
				Services: clusterv1.NetworkRanges{CIDRBlocks: []string{ranges.Services.String()}},
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: c.Name},
			ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: planev1.GroupVersion.Group, Kind: "HostedControlPlane", Name: c.Name},
		},
	}
}

func (c Cluster) infrastructure() *localv1.LocalCluster {
	return &localv1.LocalCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: localv1.GroupVersion.String(), Kind: "LocalCluster"},
		ObjectMeta: c.meta(c.Name),
		Spec: localv1.LocalClusterSpec{Backend: localv1.LocalClusterBackend{
			Container: &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: c.Subnet.String()}},
		}},
	}
}

func (c Cluster) controlPlane() *planev1.HostedControlPlane {
	return &planev1.HostedControlPlane{
		TypeMeta:   metav1.TypeMeta{APIVersion: planev1.GroupVersion.String(), Kind: "HostedControlPlane"},
		ObjectMeta: c.meta(c.Name),
		Spec:       planev1.HostedControlPlaneSpec{Version: c.Version},
	}
}

func (c Cluster) pool() *clusterv1.MachinePool {
	return &clusterv1.MachinePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool"},
		ObjectMeta: c.meta(c.Pool()),
		Spec: clusterv1.MachinePoolSpec{
			ClusterName: c.Name,
			Replicas:    &c.Workers,
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: c.Name,
				Version:     c.Version,
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: c.Pool()}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: localv1.GroupVersion.Group, Kind: "LocalMachinePool", Name: c.Pool()},
			}},
		},
	}
}

// bootstrap joins a node the ordinary way. SystemVerification is ignored because kubeadm would refuse hosts
// with the older form of control groups.
func (c Cluster) bootstrap() *bootstrapv1.KubeadmConfig {
	return &bootstrapv1.KubeadmConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: bootstrapv1.GroupVersion.String(), Kind: "KubeadmConfig"},
		ObjectMeta: c.meta(c.Pool()),
		Spec: bootstrapv1.KubeadmConfigSpec{JoinConfiguration: bootstrapv1.JoinConfiguration{
			NodeRegistration: bootstrapv1.NodeRegistrationOptions{IgnorePreflightErrors: []string{"SystemVerification"}},
		}},
	}
}

func (c Cluster) machines() *localv1.LocalMachinePool {
	return &localv1.LocalMachinePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: localv1.GroupVersion.String(), Kind: "LocalMachinePool"},
		ObjectMeta: c.meta(c.Pool()),
		Spec: localv1.LocalMachinePoolSpec{Template: localv1.LocalMachinePoolMachineTemplate{
			Backend: localv1.LocalMachineBackend{Container: &localv1.ContainerMachine{}},
		}},
	}
}

// YAML prints objects as one stream of documents.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}

// Taken returns the networks of local clusters, wanted or existing. A subnet that cannot be read is left out:
// admission does not let it in.
func Taken(clusters []localv1.LocalCluster) []netip.Prefix {
	var taken []netip.Prefix
	for _, c := range clusters {
		ranges := []string{c.Status.Network.Subnet}
		if container := c.Spec.Backend.Container; container != nil {
			ranges = append(ranges, container.Network.Subnet)
		}
		for _, r := range ranges {
			if p, err := netip.ParsePrefix(r); err == nil {
				taken = append(taken, p)
			}
		}
	}
	return taken
}
