package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestTemplate checks that the examples remain usable by the benchmark.
func TestTemplate(t *testing.T) {
	tmpl := ReadTemplate(filepath.Join("..", "..", "..", "examples", "fleet.yaml"))
	objects, _ := tmpl.Render(7)
	for _, o := range objects {
		if !strings.HasPrefix(o.GetName(), "c0007") {
			t.Errorf("%s %s does not have the name of its cluster: two clusters would share it", o.GetKind(), o.GetName())
		}
	}
	if o := tmpl.CoreObject("Machine", "m"); o.GetAPIVersion() != "cluster.x-k8s.io/v1beta2" || o.GetKind() != "Machine" || o.GetNamespace() != tmpl.Namespace {
		t.Errorf("an object is %v", o.Object)
	}
	classes := ReadTemplate(filepath.Join("..", "..", "..", "examples", "fleet-class.yaml"))
	own, shared := classes.Render(0)
	if len(shared) < 2 || shared[len(shared)-1].GetKind() != "ClusterClass" {
		t.Fatalf("all share the class and its templates: %v", shared)
	}
	if len(own) != 1 || own[0].GetName() != "c0000" || classes.WorkersName(3) != "c0003-workers" {
		t.Errorf("and nothing else: %v, %s", own, classes.WorkersName(3))
	}
	machines := ReadTemplate(filepath.Join("..", "..", "..", "examples", "fleet-kubeadm-class.yaml"))
	if !machines.OfClass || !machines.OnMachines || classes.OnMachines {
		t.Errorf("a control plane on Machines: %+v", machines)
	}
	if err := Try(func() { ReadTemplate(filepath.Join("..", "..", "..", "examples", "without-class.yaml")) }); err == nil {
		t.Error("a MachinePool of two is no template")
	}
}

// TestParseManifest checks that the example manifests remain usable by the benchmark.
func TestParseManifest(t *testing.T) {
	for file, want := range map[string]Manifest{
		"without-class.yaml": {Cluster: "quickstart", Workers: "quickstart-workers", Replicas: 2, IsPool: true},
		"quickstart.yaml":    {Cluster: "quickstart", Workers: "quickstart-workers", Replicas: 2, OfClass: true},
		"kubeadm.yaml":       {Cluster: "demo", Workers: "demo-md-0", Replicas: 1, ControlPlanes: 1},
	} {
		got := ReadManifest(filepath.Join("..", "..", "..", "examples", file))
		want.Namespace = "default"
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Manifest{})); diff != "" || got.Nodes() != want.Replicas+want.ControlPlanes {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	for name, text := range map[string]string{
		"no workers":  "kind: Cluster\nmetadata: {name: a}\n",
		"no cluster":  "kind: MachinePool\nmetadata: {name: a}\nspec: {replicas: 1}\n",
		"no replicas": "kind: Cluster\nmetadata: {name: a}\n---\nkind: MachinePool\nmetadata: {name: a}\nspec: {replicas: 0}\n",
		"not YAML":    "kind: [",
	} {
		if err := Try(func() { ParseManifest(text) }); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
