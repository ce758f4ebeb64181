package template_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
)

// The quickstart is what `create cluster` would apply, the class first, with comments.
func TestQuickstartIsWhatTheCommandWrites(t *testing.T) {
	want, _, err := classes.Objects(classes.Local, "")
	if err != nil {
		t.Fatal(err)
	}
	checkExample(t, "quickstart.yaml", want, template.ClusterManifest{
		Name: "quickstart", Version: "v1.36.3", Class: clusterv1.ClusterClassRef{Name: classes.Local}, Subnet: netip.MustParsePrefix("172.30.0.0/16"),
		Workers: template.WorkerGroup{Kind: "MachineDeployment", Class: "default-worker", Replicas: 2},
	})
}

// A cluster on hosts needs a class that is applied before, and brings a Pod network that encapsulates packets.
func TestHostsAreWhatTheCommandWrites(t *testing.T) {
	checkExample(t, "ssh.yaml", nil, template.ClusterManifest{
		Name: "hosts", Version: "v1.36.3", Class: clusterv1.ClusterClassRef{Name: classes.SSH}, Hosts: true,
		Workers: template.WorkerGroup{Kind: "MachineDeployment", Class: "default-worker", Replicas: 2},
	})
	checkExample(t, "ssh-kubeadm.yaml", nil, template.ClusterManifest{
		Name: "hosts", Version: "v1.36.3", Class: clusterv1.ClusterClassRef{Name: classes.SSHKubeadm}, Hosts: true, ControlPlanes: 3,
		Variables: []clusterv1.ClusterVariable{{Name: "virtualIP", Value: apiextensionsv1.JSON{Raw: []byte(`"192.0.2.10"`)}}},
		Workers:   template.WorkerGroup{Kind: "MachineDeployment", Class: "default-worker", Replicas: 2},
	})
}

func checkExample(t *testing.T, name string, want []*unstructured.Unstructured, m template.ClusterManifest) {
	t.Helper()
	data, err := os.ReadFile("../../../examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, u)
	}
	if d := cmp.Diff(append(want, cluster...), got); d != "" {
		t.Errorf("examples/%s differs from the manifest of the command (-command +example):\n%s", name, d)
	}
}

// Every example of a cluster of containers brings the network that the command would write.
func TestExamplesBringTheNetwork(t *testing.T) {
	for _, name := range []string{"quickstart.yaml", "without-class.yaml", "without-class-v1beta1.yaml", "machinedeployment.yaml", "kubeadm.yaml"} {
		data, err := os.ReadFile("../../../examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		labelled, sourced, selected := false, false, false
		for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := d.Decode(u); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			text, _, _ := unstructured.NestedString(u.Object, "data", "flannel.yaml")
			labelled = labelled || u.GetKind() == "Cluster" && u.GetLabels()[template.NetworkLabel] == "flannel"
			sourced = sourced || template.IsShared(u) && text == classes.FlannelManifest()
			selected = selected || template.IsShared(u) && u.GetKind() == "ClusterResourceSet"
		}
		if !labelled || !sourced || !selected {
			t.Errorf("%s: label %t, manifest as in the program %t, ClusterResourceSet %t", name, labelled, sourced, selected)
		}
	}
}
