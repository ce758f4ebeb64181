package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifest is a manifest of one Cluster with one MachinePool or MachineDeployment, possibly from its topology.
type Manifest struct {
	Namespace, Cluster string
	Workers            string // name of the MachinePool or MachineDeployment
	Replicas           int    // of the workers
	IsPool             bool   // the workers are a MachinePool
	ControlPlanes      int    // control plane Machines of a KubeadmControlPlane without a class
	OfClass            bool   // the Cluster has a topology
	OnMachines         bool   // the control plane of the class runs on Machines

	text string
}

func ReadManifest(file string) Manifest {
	var m Manifest
	Checkf(Try(func() { m = ParseManifest(string(Must(os.ReadFile(file)))) }), "%s", file)
	return m
}

// ReadTemplate parses a manifest from which a fleet is created: it must have a MachineDeployment with one replica.
func ReadTemplate(file string) Manifest {
	m := ReadManifest(file)
	if m.IsPool || m.Replicas != 1 {
		Failf("%s: %s must be a MachineDeployment with one replica", file, m.Workers)
	}
	return m
}

// ParseManifest finds the Cluster and its workers in a manifest.
func ParseManifest(text string) Manifest {
	m := Manifest{Namespace: "default", text: text}
	for _, o := range decode(text) {
		switch o.GetKind() {
		case "Cluster":
			m.Cluster, m.Namespace = o.GetName(), cmp.Or(o.GetNamespace(), m.Namespace)
			m.readTopology(o)
		case "MachinePool", "MachineDeployment":
			m.Workers, m.IsPool, m.Replicas = o.GetName(), o.GetKind() == "MachinePool", Integer(o, "spec", "replicas")
		case "KubeadmControlPlane":
			m.ControlPlanes = Integer(o, "spec", "replicas")
		case "KubeadmControlPlaneTemplate":
			m.OnMachines = true
		}
	}
	if m.Cluster == "" || m.Workers == "" || m.Replicas < 1 {
		Failf("the manifest needs a Cluster and a MachinePool or MachineDeployment with at least one replica")
	}
	return m
}

// readTopology finds the first MachineDeployment of a topology. The included classes name it after the Cluster.
func (m *Manifest) readTopology(cluster *unstructured.Unstructured) {
	deployments, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", "machineDeployments")
	if len(deployments) == 0 {
		return
	}
	first, _ := deployments[0].(map[string]any)
	m.OfClass, m.Workers = true, fmt.Sprintf("%s-%v", cluster.GetName(), first["name"])
	m.Replicas = Integer(&unstructured.Unstructured{Object: first}, "replicas")
}

func (m Manifest) Nodes() int { return m.Replicas + m.ControlPlanes }

func decode(text string) (out []*unstructured.Unstructured) {
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		Checkf(err, "parse the manifest")
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// Fleet is a number of clusters from one manifest, which differ in name.
type Fleet struct {
	Manifest
	Config *rest.Config
	Client client.Client
}

func NewFleet(m Manifest, config *rest.Config) Fleet {
	return Fleet{Manifest: m, Config: config, Client: Must(client.New(config, client.Options{}))}
}

func ClusterName(n int) string { return fmt.Sprintf("c%04d", n) }

// WorkersName is the name of the MachineDeployment of the nth Cluster.
func (m Manifest) WorkersName(n int) string {
	return strings.ReplaceAll(m.Workers, m.Cluster, ClusterName(n))
}

// Render returns the objects of the nth cluster. Objects without the name of the Cluster, such as a ClusterClass and its
// templates, are shared by all clusters and returned separately.
func (m Manifest) Render(n int) (own, shared []*unstructured.Unstructured) {
	for _, o := range decode(strings.ReplaceAll(m.text, m.Cluster, ClusterName(n))) {
		o.SetNamespace(m.Namespace)
		if strings.Contains(o.GetName(), ClusterName(n)) {
			own = append(own, o)
		} else {
			shared = append(shared, o)
		}
	}
	return own, shared
}

// Object has a kind, a name and the namespace of the fleet, for patches and deletions.
func (m Manifest) Object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(m.Namespace)
	o.SetName(name)
	return o
}

// CoreObject is an Object of Cluster API's core group.
func (m Manifest) CoreObject(kind, name string) *unstructured.Unstructured {
	return m.Object(clusterv1.GroupVersion.WithKind(kind), name)
}

// Objects are the objects of a resource of Cluster API's core group in the namespace of the fleet.
func (f Fleet) Objects(plural string) Objects {
	return Objects{Config: f.Config, Resource: clusterv1.GroupVersion.WithResource(plural), Namespace: f.Namespace}
}

func (f Fleet) KubeadmControlPlanes() Objects {
	group := schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
	return Objects{Config: f.Config, Resource: group, Namespace: f.Namespace}
}

// Workload returns the client configuration of a workload cluster, from its kubeconfig Secret.
func (f Fleet) Workload(ctx context.Context, cluster string) *rest.Config {
	secret := &corev1.Secret{}
	err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: cluster + "-kubeconfig"}, secret)
	Checkf(err, "get the kubeconfig of cluster %s", cluster)
	return Must(clientcmd.RESTConfigFromKubeConfig(secret.Data["value"]))
}

// CreateShared creates the objects that all clusters share.
func (f Fleet) CreateShared(ctx context.Context) {
	_, shared := f.Render(0)
	f.createObjects(ctx, shared)
}

// Create creates the objects of the nth cluster after they were edited.
func (f Fleet) Create(ctx context.Context, n int, edit func([]*unstructured.Unstructured)) {
	own, _ := f.Render(n)
	edit(own)
	f.createObjects(ctx, own)
}

// CreateAll creates a number of clusters without a class, several at a time. workers returns the replicas of each.
func (f Fleet) CreateAll(ctx context.Context, count int, workers func(n int) int) {
	InParallel(ctx, count, 8, func(ctx context.Context, n int) {
		f.Create(ctx, n, func(objects []*unstructured.Unstructured) {
			for _, o := range objects {
				if o.GetKind() == "MachineDeployment" {
					Check(unstructured.SetNestedField(o.Object, int64(workers(n)), "spec", "replicas"))
				}
			}
		})
	})
}

func (f Fleet) createObjects(ctx context.Context, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		Checkf(f.Client.Create(ctx, o), "create %s %s", o.GetKind(), o.GetName())
	}
}
