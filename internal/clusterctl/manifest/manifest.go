package manifest

import (
	"bytes"
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
	"sigs.k8s.io/yaml"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// Subnet is the variable of a ClusterClass that takes the network of a cluster of containers.
const Subnet = "subnet"

// workers is the name of the workers in the topology.
const workers = "workers"

// Cluster is what has to be chosen for a cluster of a ClusterClass.
type Cluster struct {
	// Namespace may be empty; then the manifest names none.
	Namespace string
	// Name of the Cluster.
	Name string
	// Version of Kubernetes, for example v1.36.3.
	Version string
	// Class is the ClusterClass. An empty namespace is that of the Cluster.
	Class clusterv1.ClusterClassRef
	// ControlPlanes is how many nodes the control plane has; 0: it has none, or the class says how many.
	ControlPlanes int32
	// Workers are the other nodes.
	Workers Workers
	// Subnet holds nodes, Pods and Services of a cluster of containers: an IPv4 network between /8 and /20. Zero: the class is of
	// another kind, and brings its own network.
	Subnet netip.Prefix
	// Variables are the values of the class's variables, Subnet left out.
	Variables []clusterv1.ClusterVariable
}

// Workers are nodes that are alike.
type Workers struct {
	// Kind is MachineDeployment or MachinePool; empty: there are none.
	Kind string
	// Class is that of the ClusterClass for workers of the kind.
	Class string
	// Replicas is their number. 0 makes a group without nodes.
	Replicas int32
}

// Objects returns the manifest, the Cluster first. The error says what is wrong with the subnet.
func (c Cluster) Objects() ([]*unstructured.Unstructured, error) {
	cluster, err := c.cluster()
	if err != nil {
		return nil, err
	}
	parts := []client.Object{cluster}
	if c.Subnet.IsValid() {
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

func (c Cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.Namespace, Name: name}
}

func (c Cluster) cluster() (*clusterv1.Cluster, error) {
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
	if !c.Subnet.IsValid() {
		return cluster, nil
	}
	layout, err := subnet.Plan(c.Subnet)
	if err != nil {
		return nil, err
	}
	cluster.Labels = map[string]string{NetworkLabel: flannelNetwork}
	cluster.Spec.ClusterNetwork = clusterv1.ClusterNetwork{
		Pods:     clusterv1.NetworkRanges{CIDRBlocks: []string{layout.Ranges().Pods.String()}},
		Services: clusterv1.NetworkRanges{CIDRBlocks: []string{layout.Ranges().Services.String()}},
	}
	value := clusterv1.ClusterVariable{Name: Subnet, Value: apiextensionsv1.JSON{Raw: []byte(strconv.Quote(c.Subnet.String()))}}
	cluster.Spec.Topology.Variables = append([]clusterv1.ClusterVariable{value}, c.Variables...)
	return cluster, nil
}

func (w Workers) topology() clusterv1.WorkersTopology {
	switch w.Kind {
	case "MachineDeployment":
		return clusterv1.WorkersTopology{MachineDeployments: []clusterv1.MachineDeploymentTopology{{Class: w.Class, Name: workers, Replicas: &w.Replicas}}}
	case "MachinePool":
		return clusterv1.WorkersTopology{MachinePools: []clusterv1.MachinePoolTopology{{Class: w.Class, Name: workers, Replicas: &w.Replicas}}}
	}
	return clusterv1.WorkersTopology{}
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

// Taken returns the networks of local clusters, wanted or existing. A subnet that cannot be read is left out: admission does not let
// it in.
func Taken(clusters []localv1.LocalCluster) []netip.Prefix {
	var ranges []string
	for _, c := range clusters {
		ranges = append(ranges, c.Status.Network.Subnet)
		if container := c.Spec.Backend.Container; container != nil {
			ranges = append(ranges, container.Network.Subnet)
		}
	}
	return prefixes(ranges)
}

// Asked returns the network that a Cluster asks for in its topology: its LocalCluster may not be there yet.
func Asked(c clusterv1.Cluster) []netip.Prefix {
	var ranges []string
	for _, v := range c.Spec.Topology.Variables {
		var asked string
		if v.Name == Subnet && json.Unmarshal(v.Value.Raw, &asked) == nil {
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
