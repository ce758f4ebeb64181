package template_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// The example must stay what the benchmark can use.
func TestTemplate(t *testing.T) {
	tmpl, err := template.Read(filepath.Join("..", "..", "..", "examples", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := tmpl.Render(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if !strings.HasPrefix(o.GetName(), "c0007") {
			t.Errorf("%s %s keeps its name: two clusters would share it", o.GetKind(), o.GetName())
		}
	}
	if o := tmpl.Object(follow.Kind("Machine"), "m"); o.GetAPIVersion() != "cluster.x-k8s.io/v1beta2" || o.GetKind() != "Machine" || o.GetNamespace() != tmpl.Namespace {
		t.Errorf("an object is %v", o.Object)
	}
	classes, err := template.Read(filepath.Join("..", "..", "..", "examples", "fleet-class.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := classes.Shared()
	if err != nil || len(shared) < 2 || shared[len(shared)-1].GetKind() != "ClusterClass" {
		t.Fatalf("all share the class and its templates: %v %v", shared, err)
	}
	if own, err := classes.Render(0); err != nil || len(own) != 1 || own[0].GetName() != "c0000" || classes.Deployment(3) != "c0003-workers" {
		t.Errorf("and nothing else: %v %v, %s", own, err, classes.Deployment(3))
	}
	if machines, err := template.Read(filepath.Join("..", "..", "..", "examples", "fleet-kubeadm-class.yaml")); err != nil || !machines.OfClass || !machines.OnMachines || classes.OnMachines {
		t.Errorf("a control plane on machines: %+v, %v", machines, err)
	}
	for name, bad := range map[string]string{
		"no deployment":  "kind: Cluster\nmetadata: {name: a}\n",
		"two workers":    "kind: Cluster\nmetadata: {name: a}\n---\nkind: MachineDeployment\nmetadata: {name: a-md}\nspec: {replicas: 2}\n",
		"two of a class": "kind: Cluster\nmetadata: {name: a}\nspec: {topology: {workers: {machineDeployments: [{name: md, replicas: 2}]}}}\n",
		"no YAML":        "{",
	} {
		if _, err := template.Parse(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
