package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// planeManifest is a Cluster whose control plane is a Pod of the management cluster, and that has no machines.
const planeManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: planes}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: tower, namespace: planes}
spec:
  controlPlaneRef: {apiGroup: controlplane.slipway.dev, kind: HostedControlPlane, name: tower}
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: tower}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {name: tower, namespace: planes}
spec: {backend: {simulated: {}}}
---
apiVersion: controlplane.slipway.dev/v1alpha1
kind: HostedControlPlane
metadata: {name: tower, namespace: planes}
spec: {version: v1.36.3}
`

// planeVolume is a volume on a node, since the nodes have no provisioner.
const planeVolume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: planes}
spec:
  capacity: {storage: 8Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: /var/planes}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [NODE]}]}]
`

const planeLabel = "controlplane.slipway.dev/hosted"

// planeInPod: a hosted control plane runs as a Pod with a volume. It says what it waits for, keeps its data when its Pod and the manager
// that leads are lost at once, is not started empty, and leaves nothing behind.
func (e elsewhere) planeInPod() {
	t := e.in.t
	t.Helper()
	if err := e.apply(planeManifest); err != nil {
		t.Fatal(err)
	}
	condition := func(name, field string) string {
		out, _ := e.try("get", "hostedcontrolplane", "tower", "-n", "planes", "-o", `jsonpath={.status.conditions[?(@.type=="`+name+`")].`+field+`}`)
		return strings.TrimSpace(out)
	}
	untilContains(t, short, "the Pod waits for a volume", "is not bound to a volume", func() string { return condition("Available", "message") })
	node := strings.Fields(e.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	docker(t, "exec", nodeContainer(t, node), "mkdir", "-p", "/var/planes")
	if err := e.apply(strings.ReplaceAll(planeVolume, "NODE", node)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	until(t, long, "the control plane is available", "True", func() string { return condition("Available", "status") })
	t.Logf("available %s after there is a volume", time.Since(began).Round(time.Second))
	tower := e.plane(t)
	tower.kubectl("create", "configmap", "before", "--from-literal=a=b")
	endpoints := tower.kubectl("get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[0].addresses[0].ip}:{.subsets[0].ports[0].port}")
	if at := e.kubectl("get", "hostedcontrolplane", "tower", "-n", "planes", "-o", "jsonpath={.spec.controlPlaneEndpoint.host}:{.spec.controlPlaneEndpoint.port}"); at != endpoints {
		t.Errorf("the endpoint is %s, and Pods of the cluster are led to %s", at, endpoints)
	}
	pod := func(field string) string {
		out, _ := e.try("get", "pods", "-n", "slipway-system", "-l", planeLabel, "-o", "jsonpath={.items[0]."+field+"}")
		return strings.TrimSpace(out)
	}
	if got := e.kubectl("get", "pods", "-n", "planes", "-o", "name"); strings.TrimSpace(got) != "" {
		t.Errorf("the tenant has %s", got)
	}

	before := pod("metadata.uid")
	for _, id := range docker(t, "ps", "--quiet", "--filter", "label=dev.slipway.cluster=default/home") {
		docker(t, "exec", id, "sh", "-c", killManagers)
	}
	e.kubectl("delete", "pod", pod("metadata.name"), "-n", "slipway-system", "--wait=false")
	eventually(t, long, "another Pod", func() error {
		if now := pod("metadata.uid"); now == before || now == "" {
			return errors.New(now)
		}
		return nil
	})
	untilContains(t, long, "what was there before", "b", func() string {
		out, _ := tower.try("get", "configmap", "before", "-o", "jsonpath={.data.a}")
		return out
	})
	until(t, long, "the control plane is available again", "True", func() string { return condition("Available", "status") })
	e.planeLost(tower, condition)
}

// planeLost: the data is lost, the Pod does not start without; then the cluster is deleted.
func (e elsewhere) planeLost(tower workload, condition func(name, field string) string) {
	t := e.in.t
	t.Helper()
	node := strings.TrimSpace(e.kubectl("get", "pods", "-n", "slipway-system", "-l", planeLabel, "-o", "jsonpath={.items[0].spec.nodeName}"))
	docker(t, "exec", nodeContainer(t, node), "sh", "-c", "rm -rf /var/planes/* /var/planes/.[a-z]*")
	e.kubectl("delete", "pod", "-n", "slipway-system", "-l", planeLabel, "--timeout", long.String())
	untilContains(t, long, "it does not start without data", "does not start it without data", func() string { return condition("ProcessRunning", "message") })
	if out, err := tower.try("get", "configmaps", "--request-timeout=5s"); err == nil {
		t.Errorf("an empty control plane answers: %s", out)
	}
	e.kubectl("delete", "cluster", "tower", "-n", "planes", "--timeout", long.String())
	if left := strings.TrimSpace(e.kubectl("get", "statefulsets,services,secrets,persistentvolumeclaims,networkpolicies,pods", "-n", "slipway-system", "-l", planeLabel, "-o", "name")); left != "" {
		t.Errorf("deletion left %s", left)
	}
	until(t, short, "the volume is released", "Released", func() string { return e.kubectl("get", "persistentvolume", "planes", "-o", "jsonpath={.status.phase}") })
}

// plane is the cluster of the control plane, with the kubeconfig of its Secret.
func (e elsewhere) plane(t *testing.T) workload {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tower.kubeconfig")
	encoded := e.kubectl("get", "secret", "tower-kubeconfig", "-n", "planes", "-o", `go-template={{.data.value | base64decode}}`)
	if err := os.WriteFile(file, []byte(encoded), 0o600); err != nil {
		t.Fatal(fmt.Errorf("writing the kubeconfig: %w", err))
	}
	return workload{e.in, file}
}
