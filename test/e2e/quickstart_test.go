package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestQuickstart follows the README: from nothing to pods on real nodes, then the life of a pool.
func TestQuickstart(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.apply(quickstart(t, "quick", 2))
	w := in.untilReady("quick", 2)
	untilContains(t, long, "Cluster Available", "True", func() string { return in.condition("cluster/quick", "Available") })

	t.Run("pods run, log and find each other", func(t *testing.T) { podsWork(t, w.with(t)) })
	t.Run("kubectl reads well", func(t *testing.T) { readsWell(t, in.with(t)) })
	t.Run("old and new API versions", func(t *testing.T) { versionsAgree(t, in.with(t)) })
	t.Run("the contract of the pool", func(t *testing.T) { poolContract(t, in.with(t)) })
	t.Run("scale up and down", func(t *testing.T) { scales(t, in.with(t), w.with(t)) })
	t.Run("a node removed by hand is replaced", func(t *testing.T) { nodeRemoved(t, in.with(t), w.with(t)) })
	t.Run("a killed control plane comes back with its data", func(t *testing.T) { controlPlaneKilled(t, in.with(t), w.with(t)) })
	t.Run("a version that is not supported", func(t *testing.T) { versionNotSupported(t, in.with(t), w.with(t)) })
	t.Run("deletion leaves nothing", func(t *testing.T) { deletion(t, in.with(t)) })
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: hello, labels: {app: hello}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: hello
    image: %s
    imagePullPolicy: Never
    command: [sh, -c, "echo hello from $(hostname); mkdir -p /www; echo served > /www/index.html; exec httpd -f -p 8080 -h /www"]
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {selector: {app: hello}, ports: [{port: 80, targetPort: 8080}]}
`

func podsWork(t *testing.T, w workload) {
	cmd := exec.Command(w.in.binary, "kubectl", "--kubeconfig", w.kubeconfig, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(pod, busyboxImage))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	untilContains(t, short, "log of the pod", "hello from hello", func() string {
		out, err := w.try("logs", "hello")
		if err != nil {
			return err.Error()
		}
		return out
	})
	untilContains(t, short, "the Service by its name, from the pod", "served", func() string {
		out, err := w.try("exec", "hello", "--", "wget", "-qO-", "http://hello.default.svc.cluster.local/")
		if err != nil {
			return err.Error()
		}
		return out
	})
}

func readsWell(t *testing.T, in *installation) { // Z-06
	out := in.kubectl("get", "cluster,machinepool,machine,localmachinepool", "-o", "wide")
	for _, want := range []string{"cluster.cluster.x-k8s.io/quick", "machinepool.cluster.x-k8s.io/quick-workers", "machine.cluster.x-k8s.io/quick-workers", "localmachinepool.infrastructure.slipway.dev/quick-workers", "v1.36.3"} {
		if !strings.Contains(out, want) {
			t.Errorf("kubectl get -o wide has no %q:\n%s", want, out)
		}
	}
	if out := in.kubectl("get", "cluster-api"); !strings.Contains(out, "hostedcontrolplane") {
		t.Errorf("category cluster-api:\n%s", out)
	}
	for short, long := range map[string]string{"cl": "quick", "mp": "quick-workers", "ma": "quick-workers"} {
		if out := in.kubectl("get", short); !strings.Contains(out, long) {
			t.Errorf("kubectl get %s:\n%s", short, out)
		}
	}
	out = in.kubectl("explain", "cluster.spec")
	if !strings.Contains(out, "controlPlaneEndpoint") || strings.Contains(out, "<no description>") {
		t.Errorf("kubectl explain:\n%s", out)
	}
	tree := in.run("describe", "cluster", "quick") // CX-09
	for _, want := range []string{"Cluster/quick", "LocalCluster/quick", "HostedControlPlane/quick", "MachinePool/quick-workers"} {
		if !strings.Contains(tree, want) {
			t.Errorf("describe has no %s:\n%s", want, tree)
		}
	}
}

func versionsAgree(t *testing.T, in *installation) { // CV-01
	in.apply(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: older}
spec:
  paused: true
  clusterNetwork: {pods: {cidrBlocks: [172.28.128.0/17]}}
  infrastructureRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalCluster, name: older}
`)
	if got := in.get("clusters.v1beta2.cluster.x-k8s.io/older", "{.spec.infrastructureRef.apiGroup}"); got != "infrastructure.slipway.dev" {
		t.Errorf("v1beta2 reads apiGroup %q", got)
	}
	if got := in.get("clusters.v1beta1.cluster.x-k8s.io/older", "{.spec.infrastructureRef.apiVersion}"); got != "infrastructure.slipway.dev/v1alpha1" {
		t.Errorf("v1beta1 reads apiVersion %q", got)
	}
	untilContains(t, short, "Paused condition", "True Paused", func() string { return in.condition("cluster/older", "Paused") }) // CL-02
	if refs := in.get("cluster/older", "{.status.initialization}"); refs != "" {
		t.Errorf("a paused Cluster is left alone, has %s", refs)
	}
	in.kubectl("delete", "cluster", "older")
	if out, err := in.try("kubectl", "create", "-f", "testdata/invalid.yaml"); err == nil || !strings.Contains(out, "clusterNetwork") {
		t.Errorf("a range that is none must be refused with its field named: %v %s", err, out)
	}
}

func poolContract(t *testing.T, in *installation) {
	pool, infra := "machinepool/quick-workers", "localmachinepool/quick-workers"
	want := map[string]string{
		infra + " {.status.ready}":                                   "true",         // IP2-06
		infra + " {.status.initialization.provisioned}":              "true",         // IP2-06
		infra + " {.status.infrastructureMachineKind}":               "LocalMachine", // IP2-03
		infra + " {.status.replicas}":                                "2",            // IP2-08
		pool + " {.status.replicas}":                                 "2",            // MP-04
		pool + " {.status.readyReplicas}":                            "2",            // MP-11
		pool + " {.status.availableReplicas}":                        "2",            // MP-11
		pool + " {.status.upToDateReplicas}":                         "2",            // MP-11
		pool + " {.status.versions[0].version}":                      "v1.36.3",      // MP-11
		pool + " {.status.phase}":                                    "Running",      // MP-10
		pool + " {.status.initialization.infrastructureProvisioned}": "true",         // MP-03
	}
	for question, answer := range want {
		object, path, _ := strings.Cut(question, " ")
		until(t, short, question, answer, func() string { return in.get(object, path) })
	}
	ids := in.get(infra, "{.spec.providerIDList}") // IP2-05
	until(t, short, "provider IDs of the pool", ids, func() string { return in.get(pool, "{.spec.providerIDList}") })
	for _, condition := range []string{"Available", "BootstrapConfigReady", "InfrastructureReady", "MachinesReady", "MachinesUpToDate"} { // MP-12
		untilContains(t, short, condition, "True", func() string { return in.condition(pool, condition) })
	}
	for _, condition := range []string{"ScalingUp", "ScalingDown", "Remediating", "Deleting", "Paused"} {
		untilContains(t, short, condition, "False", func() string { return in.condition(pool, condition) })
	}
	if got := in.get(infra, "{.status.instances[*].addresses[*].type}"); !strings.Contains(got, "InternalIP") { // IP2-02
		t.Errorf("instances have addresses %q", got)
	}
}

func scales(t *testing.T, in *installation, w workload) { // MP-04, IP2-05
	in.kubectl("scale", "machinepool", "quick-workers", "--replicas", "3")
	in.untilReady("quick", 3)
	victim := strings.Fields(in.get("machines", "{.items[*].metadata.name}"))[1]
	in.kubectl("annotate", "machine", victim, "cluster.x-k8s.io/delete-machine=yes")
	node := in.get("machine/"+victim, "{.status.nodeRef.name}")
	in.kubectl("scale", "machinepool", "quick-workers", "--replicas", "2")
	in.untilReady("quick", 2)
	until(t, short, "the annotated Machine is the one that went", "", func() string { return in.get("machine/"+victim, "{.metadata.name}") })
	until(t, short, "its Node is deleted", "", func() string { // MD-15
		out, err := w.try("get", "node", node, "--ignore-not-found", "-o", "name")
		if err != nil {
			return err.Error()
		}
		return out
	})
}

func nodeRemoved(t *testing.T, in *installation, w workload) {
	containers := docker(t, "ps", "-q", "--filter", "label=dev.slipway.instance="+in.instance())
	before := in.get("machines", "{.items[*].metadata.name}")
	docker(t, "rm", "-f", "-v", containers[0])
	untilContains(t, short, "a Machine says why", "removed", func() string {
		return in.get("machines", `{range .items[*].status.conditions[*]}{.message}{"\n"}{end}`) + in.get("events", `{range .items[*]}{.note}{.message}{"\n"}{end}`)
	})
	eventually(t, long, "another Machine in its place", func() error {
		if after := in.get("machines", "{.items[*].metadata.name}"); after == before || len(strings.Fields(after)) != 2 {
			return fmt.Errorf("Machines %s", after)
		}
		return nil
	})
	in.untilReady("quick", 2)
}

func controlPlaneKilled(t *testing.T, in *installation, w workload) {
	w.kubectl("create", "configmap", "kept", "--from-literal=a=b")
	old := in.get("hostedcontrolplane/quick", "{.status.process.pid}")
	if out, err := exec.Command("kill", "-9", old).CombinedOutput(); err != nil {
		t.Fatalf("kill: %v %s", err, out)
	}
	eventually(t, short, "the API server answers again, with its data", func() error {
		_, err := w.try("get", "configmap", "kept")
		return err
	})
	eventually(t, short, "another process is reported", func() error {
		if now := in.get("hostedcontrolplane/quick", "{.status.process.pid}"); now == old || now == "" {
			return fmt.Errorf("pid %s", now)
		}
		return nil
	})
	in.untilReady("quick", 2)
}

func versionNotSupported(t *testing.T, in *installation, w workload) { // CP-04
	in.kubectl("patch", "hostedcontrolplane", "quick", "--type", "merge", "-p", `{"spec":{"version":"v1.35.0"}}`)
	untilContains(t, short, "the condition names what is supported", "v1.36.3", func() string { return in.condition("hostedcontrolplane/quick", "VersionSupported") })
	w.kubectl("get", "configmap", "kept") // what runs goes on running
	in.kubectl("patch", "hostedcontrolplane", "quick", "--type", "merge", "-p", `{"spec":{"version":"v1.36.3"}}`)
	untilContains(t, short, "and all is well again", "True", func() string { return in.condition("hostedcontrolplane/quick", "VersionSupported") })
}

func deletion(t *testing.T, in *installation) { // CL-12
	in.run("delete", "cluster", "quick")
	for _, kind := range []string{"clusters", "machinepools", "machines", "localmachines", "localmachinepools", "localclusters", "hostedcontrolplanes", "kubeadmconfigs"} {
		if left := in.get(kind, "{.items[*].metadata.name}"); left != "" {
			t.Errorf("%s left: %s", kind, left)
		}
	}
	if left := in.leftovers(in.instance()); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
	if left := in.get("secrets", "{.items[*].metadata.name}"); left != "" {
		t.Errorf("Secrets left: %s", left)
	}
}
