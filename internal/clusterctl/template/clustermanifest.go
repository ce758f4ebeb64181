package template

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/subnet"
)

// SubnetVariable is the ClusterClass variable for the subnet of a container cluster. Existing Clusters set it, so the
// name must not change.
const SubnetVariable = "subnet"

// hostPods and hostServices are the ranges of clusters on machines that are reached over SSH. Every cluster may use
// them, because packets between nodes are encapsulated.
const hostPods, hostServices = "10.244.0.0/16", "10.96.0.0/16"

// workers is the name of the worker topology.
const workers = "workers"

// ClusterManifest has the options of a Cluster created from a ClusterClass by "slipway create cluster".
type ClusterManifest struct {
	// Namespace may be empty; the manifest then sets none.
	Namespace string
	// Name is the name of the Cluster.
	Name string
	// Version is the Kubernetes version, for example v1.36.3.
	Version string
	// Class is the ClusterClass. An empty namespace means the namespace of the Cluster.
	Class clusterv1.ClusterClassRef
	// ControlPlanes is the number of control plane Machines. 0 if the control plane has none, or if the class
	// determines the number.
	ControlPlanes int32
	// Workers are the worker nodes.
	Workers WorkerGroup
	// Subnet is the IPv4 network, between /8 and /20, for the nodes, Pods and Services of a container cluster. It is
	// zero if the class is for another infrastructure, which provides its own network.
	Subnet netip.Prefix
	// Hosts is set if the nodes are machines that are reached over SSH, which may be in different subnets.
	Hosts bool
	// Variables are the values of the class's variables, without Subnet.
	Variables []clusterv1.ClusterVariable
}

// WorkerGroup describes a group of identical worker nodes. [Class.Workers] returns it.
type WorkerGroup struct {
	// Kind is MachineDeployment or MachinePool; empty for no workers.
	Kind string
	// Class is the worker class in the ClusterClass.
	Class string
	// Replicas is the number of nodes. 0 creates a group without nodes.
	Replicas int32
}

// Objects returns the objects of the manifest, starting with the Cluster. The error describes an invalid subnet.
// `slipway create cluster` calls it.
func (c ClusterManifest) Objects() ([]*unstructured.Unstructured, error) {
	cluster, err := c.cluster()
	if err != nil {
		return nil, err
	}
	parts := []client.Object{cluster}
	if c.podNetwork() != "" {
		parts = append(parts, c.network(), c.networkSource())
	}
	var objects []*unstructured.Unstructured
	for _, o := range parts {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("encoding %T: %w", o, err)
		}
		delete(content, "status")
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects, nil
}

func (c ClusterManifest) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: name}
}

func (c ClusterManifest) cluster() (*clusterv1.Cluster, error) {
	cluster := &clusterv1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: c.meta(c.Name),
		Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{
			ClassRef: c.Class, Version: c.Version, Variables: c.Variables, Workers: c.Workers.topology(),
		}},
	}
	if c.ControlPlanes > 0 {
		cluster.Spec.Topology.ControlPlane.Replicas = &c.ControlPlanes
	}
	if c.podNetwork() != "" {
		cluster.Labels = map[string]string{networkLabel: c.podNetwork()}
	}
	if c.Hosts {
		cluster.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
			Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{hostPods}}, Services: clusterv1.NetworkRanges{CIDRBlocks: []string{hostServices}},
		}
	}
	if !c.Subnet.IsValid() {
		return cluster, nil
	}
	layout, err := subnet.NewLayout(c.Subnet)
	if err != nil {
		return nil, err
	}
	cluster.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{layout.Ranges().Pods.String()}},
		Services: clusterv1.NetworkRanges{CIDRBlocks: []string{layout.Ranges().Services.String()}},
	}
	value := clusterv1.ClusterVariable{Name: SubnetVariable, Value: apiextensionsv1.JSON{Raw: []byte(strconv.Quote(c.Subnet.String()))}}
	cluster.Spec.Topology.Variables = append([]clusterv1.ClusterVariable{value}, c.Variables...)
	return cluster, nil
}

func (w WorkerGroup) topology() clusterv1.WorkersTopology {
	switch w.Kind {
	case "MachineDeployment":
		return clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: w.Class, Name: workers, Replicas: &w.Replicas}}}
	case "MachinePool":
		return clusterv1.WorkersTopology{MachinePools: []clusterv1.MachinePoolTopology{{Class: w.Class, Name: workers, Replicas: &w.Replicas}}}
	}
	return clusterv1.WorkersTopology{}
}

// UsedSubnets returns the subnets in the spec and status of local clusters, which a new cluster must not use. Invalid
// subnets are skipped; admission rejects them. Package operate/create calls it to select a free subnet.
func UsedSubnets(clusters []localv1.LocalCluster) []netip.Prefix {
	var ranges []string
	for _, c := range clusters {
		ranges = append(ranges, c.Status.Network.Subnet)
		if container := c.Spec.Backend.Container; container != nil {
			ranges = append(ranges, container.Network.Subnet)
		}
	}
	return prefixes(ranges)
}

// RequestedSubnets returns the subnet that a Cluster requests in its topology, because its LocalCluster may not exist
// yet. Package operate/create calls it together with [UsedSubnets].
func RequestedSubnets(c clusterv1.Cluster) []netip.Prefix {
	var ranges []string
	for _, v := range c.Spec.Topology.Variables {
		var asked string
		if v.Name == SubnetVariable && json.Unmarshal(v.Value.Raw, &asked) == nil {
			ranges = append(ranges, asked)
		}
	}
	return prefixes(ranges)
}

func prefixes(ranges []string) []netip.Prefix {
	var taken []netip.Prefix
	for _, r := range ranges {
		if p, err := netip.ParsePrefix(r); err == nil {
			taken = append(taken, p)
		}
	}
	return taken
}
