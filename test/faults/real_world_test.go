package faults

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shared is the namespace and the name of the cluster of containers whose machines get most of the real faults.
const shared = "real"

// networks are the first halves of the address ranges that the clusters of this test use.
type networks struct {
	// shared is the range of the shared cluster.
	shared string

	mu   sync.Mutex
	used map[string]bool
}

// take returns the first half of a /16 range that no Docker network uses. Other tests search from the other end.
func (a *networks) take(t testing.TB) string {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	names := strings.Fields(docker(t, "network", "ls", "--quiet"))
	taken := docker(t, append([]string{"network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}"}, names...)...)
	for n := 18; n < 30; n++ {
		if half := fmt.Sprintf("172.%d.", n); !a.used[half] && !strings.Contains(taken, half) {
			a.used[half] = true
			return half
		}
	}
	t.Fatalf("Docker networks use every range that tests may use: %s", taken)
	return ""
}

func docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// containers creates the cluster of examples/without-class.yaml in the namespace without nodes, on an address range that
// is free or given.
func (n *namespace) containers(name, network string, changes ...string) {
	n.Helper()
	text := strings.NewReplacer("quickstart", name, "172.30.", network, "replicas: 2", "replicas: 0").Replace(n.file("examples", "without-class.yaml"))
	n.apply(text, changes...)
}

// workers creates a MachineDeployment of containers in the shared cluster. The changes are merge patches of the specs of
// its KubeadmConfigs and LocalMachines.
func (n *namespace) workers(name string, replicas int, config, machine string) {
	n.Helper()
	n.apply(fmt.Sprintf(`{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, metadata: {name: %[1]s}, spec: {template: {spec: {joinConfiguration: {nodeRegistration: {ignorePreflightErrors: [SystemVerification]}}}}}}
---
{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, metadata: {name: %[1]s}, spec: {template: {spec: {backend: {container: {}}}}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineDeployment, metadata: {name: %[1]s}, spec: {clusterName: %[2]s, replicas: %[3]d, selector: {matchLabels: {cluster.x-k8s.io/deployment-name: %[1]s}}, template: {
  metadata: {labels: {cluster.x-k8s.io/deployment-name: %[1]s}}, spec: {clusterName: %[2]s, version: v1.36.3, bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: %[1]s}},
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: %[1]s}}}}}`, name, shared, replicas),
		"KubeadmConfigTemplate", "{spec: {template: {spec: "+config+"}}}", "LocalMachineTemplate", "{spec: {template: {spec: "+machine+"}}}")
}

// scripted creates a Machine in the shared cluster whose bootstrap data is a Secret of the user.
func (n *namespace) scripted(name, data string) {
	n.Helper()
	n.apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {name: %[1]s, labels: {cluster.x-k8s.io/cluster-name: %[2]s}}, data: {format: %[4]s, value: %[3]s}}
---
{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, metadata: {name: %[1]s}, spec: {backend: {container: {}}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {name: %[1]s}, spec: {clusterName: %[2]s, version: v1.36.3, bootstrap: {dataSecretName: %[1]s},
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachine, name: %[1]s}}}`, name, shared, encoded([]byte(data)), encoded([]byte("cloud-config"))))
}

// untilBootstrapped waits until the bootstrap data has ended in the LocalMachine whose name begins with a prefix, because the
// time limits of a row begin with the fault, and not with the creation of a container.
func (n *namespace) untilBootstrapped(prefix string) {
	n.Helper()
	eventually(n, "the bootstrap data of "+prefix+" ends", func() error {
		for _, m := range n.list("LocalMachine", 1) {
			conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
			for _, c := range conditions {
				fields, _ := c.(map[string]any)
				reason, _ := fields["reason"].(string)
				isEnd := fields["status"] == "True" || strings.HasSuffix(reason, "Failed") || strings.HasSuffix(reason, "Fails") || strings.HasPrefix(reason, "Invalid")
				if strings.HasPrefix(m.GetName(), prefix) && fields["type"] == "BootstrapExecSucceeded" && isEnd {
					return nil
				}
			}
		}
		return errors.New("it has not ended")
	})
}

// untilCrashed waits until the kube-apiserver has exited in the LocalMachine whose name begins with a prefix: kubeadm may give
// up before.
func (n *namespace) untilCrashed(prefix string) {
	n.Helper()
	eventually(n, "the kube-apiserver of "+prefix+" exits", func() error {
		for _, m := range n.list("LocalMachine", 1) {
			id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
			if !strings.HasPrefix(m.GetName(), prefix) || id == "" {
				continue
			}
			return exec.Command("docker", "exec", strings.TrimPrefix(id, "slipway:///"), "sh", "-c", "grep -q 'command failed' /var/log/pods/kube-system_kube-apiserver-*/kube-apiserver/*.log").Run()
		}
		return errors.New("there is no machine")
	})
}

// container returns the name of the container of a Machine, and the name of its Node.
func (n *namespace) container(machine string) (container, node string) {
	n.Helper()
	o := n.get("Machine", machine)
	id, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
	node, _, _ = unstructured.NestedString(o.Object, "status", "nodeRef", "name")
	container = strings.TrimPrefix(id, "slipway:///")
	if container == "" || node == "" {
		n.Fatalf("Machine %s has provider ID %q and Node %q", machine, id, node)
	}
	return container, node
}

// untilNode waits until the Ready condition of a Node has a status.
func (n *namespace) untilNode(name string, want corev1.ConditionStatus) {
	n.Helper()
	c := n.workload(shared)
	eventually(n, fmt.Sprintf("Ready of Node %s is %s", name, want), func() error {
		node := &corev1.Node{}
		if err := c.Get(n.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == want {
				return nil
			}
		}
		return fmt.Errorf("%v", node.Status.Conditions)
	})
}
