package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWorkers gives examples/machinedeployment.yaml the life of real nodes: a rollout of another node image while an
// application keeps its available replicas, then a node whose kubelet is stopped.
func TestWorkers(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.apply(machineDeployment(t, "fleet"))
	w := in.untilReady("fleet", 2)
	untilContains(t, long, "Cluster Available", "True", func() string { return in.condition("cluster/fleet", "Available") })
	w.deployApplication(t)

	next := "slipway.dev/node:e2e-" + strconv.Itoa(os.Getpid())
	docker(t, "tag", "slipway.dev/node:v1.36.3", next)
	t.Cleanup(func() { docker(t, "rmi", next) })

	t.Run("a rollout keeps the application available", func(t *testing.T) { rollsOut(t, in.with(t), w.with(t), next) })
	t.Run("a node whose kubelet stopped is replaced", func(t *testing.T) { kubeletStopped(t, in.with(t), w.with(t)) })
	t.Run("scaling by kubectl", func(t *testing.T) { deploymentScales(t, in.with(t), w.with(t)) })
	t.Run("deletion leaves nothing", func(t *testing.T) {
		instance := in.instance()
		in.with(t).run("delete", "cluster", "fleet")
		if left := in.with(t).leftovers(instance); len(left) > 0 {
			t.Errorf("left on the host: %v", left)
		}
	})
}

// machineDeployment is examples/machinedeployment.yaml with its own name on a range that is free.
func machineDeployment(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/machinedeployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "workers-md-0", name+"-md-0")
	text = strings.ReplaceAll(text, "name: workers\n", "name: "+name+"\n")
	text = strings.ReplaceAll(text, "clusterName: workers\n", "clusterName: "+name+"\n")
	return strings.ReplaceAll(text, "172.31.", freeNetwork(t))
}

// application is spread over the nodes, and may never have less than two replicas of three.
const application = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: %s
        imagePullPolicy: Never
        command: [sh, -c, "mkdir -p /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
`

func (w workload) deployApplication(t *testing.T) {
	t.Helper()
	cmd := exec.Command(w.in.binary, "kubectl", "--kubeconfig", w.kubeconfig, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(application, busyboxImage))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until(t, long, "application", "3", func() string { return w.available() })
}

// available is how many replicas of the application are available; empty where the API does not answer.
func (w workload) available() string {
	out, err := w.try("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// machines of the deployment, by name.
func (in *installation) machines() []string {
	return strings.Fields(in.get("machines", "{.items[*].metadata.name}"))
}

// rollsOut changes the node image to next. It is the same under another name: what counts is that every node is replaced.
func rollsOut(t *testing.T, in *installation, w workload, next string) {
	before := in.machines()
	if len(before) != 2 {
		t.Fatalf("machines: %v", before)
	}
	in.apply(fmt.Sprintf(`
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachineTemplate
metadata: {name: fleet-next}
spec: {template: {spec: {backend: {container: {image: %s}}}}}
`, next))
	in.kubectl("patch", "machinedeployment", "fleet-md-0", "--type=merge", "-p",
		`{"spec":{"template":{"spec":{"infrastructureRef":{"name":"fleet-next"}}}}}`)
	fewest, most := 3, 0
	eventually(t, long, "two new machines", func() error {
		if n, err := strconv.Atoi(w.available()); err == nil {
			fewest = min(fewest, n)
		}
		now := in.machines()
		most = max(most, len(now))
		if len(now) != 2 || slices.ContainsFunc(before, func(name string) bool { return slices.Contains(now, name) }) {
			return fmt.Errorf("have %v, had %v\n%s", now, before, in.picture("fleet"))
		}
		if ready := w.readyNodes(); len(ready) != 2 {
			return fmt.Errorf("ready nodes %v", ready)
		}
		return nil
	})
	if fewest < 2 {
		t.Errorf("%d replicas of the application were available at one time; its budget says two", fewest)
	}
	if most > 3 {
		t.Errorf("%d machines at one time; the surge is one", most)
	}
	for _, machine := range in.machines() {
		ref := in.get("machine/"+machine, "{.spec.infrastructureRef.name}")
		if got := in.get("localmachine/"+ref, "{.spec.backend.container.image}"); got != next {
			t.Errorf("machine %s runs image %q", machine, got)
		}
	}
	untilContains(t, long, "the rollout is over", "False", func() string { return in.condition("machinedeployment/fleet-md-0", "RollingOut") })
	until(t, long, "application", "3", func() string { return w.available() })
}

// kubeletStopped stops the kubelet of one node: its Node becomes NotReady, the health check marks the Machine, the
// MachineSet replaces it.
func kubeletStopped(t *testing.T, in *installation, w workload) {
	victim := in.machines()[0]
	// The budget forbids to evict from a node that is dead while others of its Pods are missing. A timeout of the drain
	// reaches Machines that exist, without a rollout (MS-08).
	in.kubectl("patch", "machinedeployment", "fleet-md-0", "--type=merge", "-p",
		`{"spec":{"template":{"spec":{"deletion":{"nodeDrainTimeoutSeconds":20}}}}}`)
	until(t, short, "drain timeout of the Machine", "20", func() string {
		return in.get("machine/"+victim, "{.spec.deletion.nodeDrainTimeoutSeconds}")
	})
	node := in.get("machine/"+victim, "{.status.nodeRef.name}")
	container := docker(t, "ps", "-q", "--filter", "label=dev.slipway.instance="+in.instance(), "--filter", "name="+node)
	if len(container) != 1 {
		t.Fatalf("container of node %s: %v", node, container)
	}
	docker(t, "exec", container[0], "systemctl", "stop", "kubelet")
	began := time.Now()
	untilContains(t, long, "the health check marks the Machine", "False", func() string {
		if !slices.Contains(in.machines(), victim) {
			return "False: it is gone already"
		}
		return in.condition("machine/"+victim, "HealthCheckSucceeded")
	})
	eventually(t, long, "another machine in its place", func() error {
		now := in.machines()
		if slices.Contains(now, victim) || len(now) != 2 {
			return fmt.Errorf("machines %v\n%s", now, in.picture("fleet"))
		}
		if ready := w.readyNodes(); len(ready) != 2 || slices.Contains(ready, node) {
			return fmt.Errorf("ready nodes %v", ready)
		}
		return nil
	})
	t.Logf("replaced %v after its kubelet was stopped", time.Since(began).Round(time.Second))
	until(t, long, "application", "3", func() string { return w.available() })
}

func deploymentScales(t *testing.T, in *installation, w workload) {
	for _, n := range []int{3, 1} {
		in.kubectl("scale", "machinedeployment", "fleet-md-0", "--replicas", strconv.Itoa(n))
		eventually(t, long, fmt.Sprintf("%d nodes", n), func() error {
			if ready := w.readyNodes(); len(ready) != n || len(in.machines()) != n {
				return fmt.Errorf("ready nodes %v, machines %v\n%s", ready, in.machines(), in.picture("fleet"))
			}
			return nil
		})
	}
}
