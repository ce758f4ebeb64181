package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/test/bench/follow"
)

// subject is what a manifest makes: a cluster with one pool of nodes, or with one MachineDeployment, of its topology or by itself.
type subject struct {
	Namespace  string
	Cluster    string
	Pool       string // name of the MachinePool, or of the MachineDeployment
	Replicas   int
	Deployment bool // Pool is a MachineDeployment
	// ControlPlanes are the nodes of a control plane on Machines; 0: it is hosted.
	ControlPlanes int
}

// nodes are all that the cluster has in the end.
func (s subject) nodes() int { return s.Replicas + s.ControlPlanes }

func (s subject) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Cluster}
}

// parseManifest finds the Cluster and its workers in a manifest.
func parseManifest(data []byte) (subject, error) {
	s := subject{Namespace: "default"}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := documents.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, fmt.Errorf("read the manifest: %w", err)
		}
		switch o.GetKind() {
		case "Cluster":
			s.Cluster = o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				s.Namespace = ns
			}
			s.ofTopology(o)
		case "MachinePool", "MachineDeployment":
			s.Pool, s.Deployment = o.GetName(), o.GetKind() == "MachineDeployment"
			s.Replicas = follow.Integer(o, "spec", "replicas")
		case "KubeadmControlPlane":
			s.ControlPlanes = follow.Integer(o, "spec", "replicas")
		}
	}
	if s.Cluster == "" || s.Pool == "" || s.Replicas < 1 {
		return s, errors.New("the manifest needs a Cluster, and a MachinePool or a MachineDeployment, of its topology or not, with at least one replica")
	}
	return s, nil
}

// ofTopology finds the one MachineDeployment of a Cluster's topology. Classes that ship name it after the Cluster.
func (s *subject) ofTopology(cluster *unstructured.Unstructured) {
	all, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", "machineDeployments")
	if len(all) != 1 {
		return
	}
	one, _ := all[0].(map[string]any)
	name, _, _ := unstructured.NestedString(one, "name")
	s.Deployment, s.Pool = true, cluster.GetName()+"-"+name
	s.Replicas = follow.Integer(&unstructured.Unstructured{Object: one}, "replicas")
}
