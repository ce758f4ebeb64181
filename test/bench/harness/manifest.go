package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
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

func ReadManifest(file string) (Manifest, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	m, err := ParseManifest(string(text))
	if err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// ReadTemplate parses a manifest from which a fleet is created: it must have a MachineDeployment with one replica.
func ReadTemplate(file string) (Manifest, error) {
	m, err := ReadManifest(file)
	if err == nil && (m.IsPool || m.Replicas != 1) {
		err = fmt.Errorf("%s: %s must be a MachineDeployment with one replica", file, m.Workers)
	}
	return m, err
}

// ParseManifest finds the Cluster and its workers in a manifest.
func ParseManifest(text string) (Manifest, error) {
	m := Manifest{Namespace: "default", text: text}
	objects, err := decode(text)
	if err != nil {
		return m, err
	}
	for _, o := range objects {
		switch o.GetKind() {
		case "Cluster":
			m.Cluster = o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				m.Namespace = ns
			}
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
		return m, errors.New("the manifest needs a Cluster and a MachinePool or MachineDeployment with at least one replica")
	}
	return m, nil
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

func decode(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parse the manifest: %w", err)
		}
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

func NewFleet(m Manifest, config *rest.Config) (Fleet, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return Fleet{}, fmt.Errorf("create a client: %w", err)
	}
	return Fleet{Manifest: m, Config: config, Client: c}, nil
}

func ClusterName(n int) string { return fmt.Sprintf("c%04d", n) }

// WorkersName is the name of the MachineDeployment of the nth Cluster.
func (m Manifest) WorkersName(n int) string {
	return strings.ReplaceAll(m.Workers, m.Cluster, ClusterName(n))
}

// Render returns the objects of the nth cluster. Objects without the name of the Cluster, such as a ClusterClass and its
// templates, are shared by all clusters and returned separately.
func (m Manifest) Render(n int) (own, shared []*unstructured.Unstructured, err error) {
	objects, err := decode(strings.ReplaceAll(m.text, m.Cluster, ClusterName(n)))
	for _, o := range objects {
		o.SetNamespace(m.Namespace)
		if strings.Contains(o.GetName(), ClusterName(n)) {
			own = append(own, o)
		} else {
			shared = append(shared, o)
		}
	}
	return own, shared, err
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
	return Objects{Config: f.Config, Resource: CoreResource(plural), Namespace: f.Namespace}
}

// Workload returns the client configuration of the nth workload cluster.
func (f Fleet) Workload(ctx context.Context, n int) (*rest.Config, error) {
	return WorkloadConfig(ctx, f.Config, types.NamespacedName{Namespace: f.Namespace, Name: ClusterName(n)})
}

// CreateShared creates the objects that all clusters share.
func (f Fleet) CreateShared(ctx context.Context) error {
	_, shared, err := f.Render(0)
	if err != nil {
		return err
	}
	return f.createObjects(ctx, shared)
}

// Create creates the objects of the nth cluster after they were edited.
func (f Fleet) Create(ctx context.Context, n int, edit func([]*unstructured.Unstructured) error) error {
	own, _, err := f.Render(n)
	if err != nil {
		return err
	}
	if err := edit(own); err != nil {
		return fmt.Errorf("edit the manifest of %s: %w", ClusterName(n), err)
	}
	return f.createObjects(ctx, own)
}

// CreateAll creates a number of clusters without a class, several at a time. workers returns the replicas of each.
func (f Fleet) CreateAll(ctx context.Context, count int, workers func(n int) int) error {
	return InParallel(ctx, count, 8, func(ctx context.Context, n int) error {
		return f.Create(ctx, n, func(objects []*unstructured.Unstructured) error {
			for _, o := range objects {
				if o.GetKind() == "MachineDeployment" {
					return unstructured.SetNestedField(o.Object, int64(workers(n)), "spec", "replicas")
				}
			}
			return nil
		})
	})
}

func (f Fleet) createObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := f.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}
