package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/testkit"
)

const pool = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: mp, namespace: default}
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.36.2
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: mp}}
      infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachinePool, name: mp}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata: {name: mp, namespace: default}
spec: {verbosity: 1}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachinePool
metadata: {name: mp, namespace: default}
spec: {}
`

// poolWithMachines is a pool at rest whose provider makes an infrastructure machine for each instance.
func poolWithMachines(t *testing.T) Snapshot {
	t.Helper()
	_, rest := run(t, snapshot(t), Change{Apply: read(t, demo+"---"+pool)})
	var members []*unstructured.Unstructured
	for _, u := range rest.Objects {
		if u.GetKind() != "LocalMachinePool" {
			continue
		}
		if err := unstructured.SetNestedField(u.Object, "LocalMachine", "status", "infrastructureMachineKind"); err != nil {
			t.Fatal(err)
		}
		ids, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "providerIDList")
		for i, id := range ids {
			name := "mp-" + string(rune('a'+i))
			members = append(members, read(t, `
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachine
metadata:
  name: `+name+`
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: demo, cluster.x-k8s.io/pool-name: mp}
spec: {backend: {simulated: {}}, providerID: "`+id+`"}
status: {initialization: {provisioned: true}}
`)...)
		}
	}
	if len(members) != 2 {
		t.Fatalf("%d instances", len(members))
	}
	rest.Objects = append(rest.Objects, members...)
	_, rest = run(t, rest, Change{})
	return rest
}

// Another version replaces the instances of a pool, and the Machines of those that have some; else the pool would never be whole.
func TestRunPool(t *testing.T) {
	_, alone := run(t, snapshot(t), Change{Apply: read(t, demo+"---"+pool)})
	for name, rest := range map[string]Snapshot{"pool": alone, "pool machines": poolWithMachines(t)} {
		for change, pair := range map[string][2]string{
			"version": {"version: v1.36.2", "version: v1.36.3"}, "up": {"replicas: 2", "replicas: 3"}, "down": {"replicas: 2", "replicas: 1"},
		} {
			t.Run(name+" "+change, func(t *testing.T) {
				p, after := run(t, rest, Change{Apply: read(t, strings.Replace(pool, pair[0], pair[1], 1))})
				testkit.CompareGolden(t, "testdata/"+strings.ReplaceAll(name+" "+change, " ", "-")+".txt", text(p))
				for _, u := range after.Objects {
					if version, _, _ := unstructured.NestedSlice(u.Object, "status", "versions"); u.GetKind() == "MachinePool" && change == "version" &&
						(len(version) != 1 || version[0].(map[string]any)["version"] != "v1.36.3") {
						t.Errorf("the pool runs %v", version)
					}
				}
			})
		}
	}
}
