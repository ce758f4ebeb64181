package faults

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestFaultsReal injects the faults that need containers and processes. SLIPWAY_FAULTS_ONLY selects rows with a regular
// expression.
func TestFaultsReal(t *testing.T) {
	if os.Getenv("SLIPWAY_FAULTS_REAL") == "" {
		t.Skip("set SLIPWAY_FAULTS_REAL=1, or run make test-faults")
	}
	found := &results{}
	only := regexp.MustCompile("^(" + cmp.Or(os.Getenv("SLIPWAY_FAULTS_ONLY"), ".*") + ")$")
	t.Cleanup(func() { t.Log(table(found.all)) })
	t.Run("processes", func(t *testing.T) { t.Parallel(); found.checkProcesses(t, only) })
	t.Run("disk", func(t *testing.T) { t.Parallel(); found.checkDisk(t, only) })
	t.Run("containers", func(t *testing.T) { t.Parallel(); found.checkContainers(t, only) })
}

// checkContainers injects the faults of containers in parallel.
func (r *results) checkContainers(t *testing.T, only *regexp.Regexp) {
	rows := selected(slices.Concat(containerRows(), bootstrapRows()), only)
	if len(rows) == 0 {
		return
	}
	w := startWorld(t)
	w.networks = &networks{used: map[string]bool{}}
	w.networks.shared = w.networks.take(t)
	common := w.newNamespace(t, shared)
	common.containers(shared, w.networks.shared)
	common.workers("nodes", 3, "{}", "{}")
	common.await("MachineDeployment", "nodes", "Available")
	slots := make(chan struct{}, 4) // more machines at a time start slowly on two cores
	t.Run("parallel", func(t *testing.T) {
		for _, fault := range rows {
			t.Run(fault.id, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				n := common.with(t)
				if fault.hasCluster {
					n = w.newNamespace(t, fault.id)
				}
				r.check(n, fault)
			})
		}
	})
}

func selected(rows []row, only *regexp.Regexp) []row {
	return slices.DeleteFunc(rows, func(r row) bool { return !only.MatchString(r.id) })
}

// with returns the namespace for a subtest.
func (n *namespace) with(t *testing.T) *namespace { return &namespace{n.world, t, n.name} }

// lostNode injects a fault into the container of one of the Machines of MachineDeployment nodes.
func lostNode(index int, injure func(n *namespace, container, node string)) func(*namespace) string {
	return func(n *namespace) string {
		var names []string
		for _, m := range n.list("Machine", 3) {
			if strings.HasPrefix(m.GetName(), "nodes-") {
				names = append(names, m.GetName())
			}
		}
		container, node := n.container(names[index])
		injure(n, container, node)
		return "Machine/" + names[index]
	}
}

// badConfig creates a worker with a changed KubeadmConfig, and waits until its bootstrap data has ended.
func badConfig(name, config, machine string) func(*namespace) string {
	return func(n *namespace) string {
		n.workers(name, 1, config, machine)
		n.untilBootstrapped(name + "-")
		return "MachineDeployment/" + name
	}
}

// badData creates a Machine with bootstrap data of the user, and waits until it has ended.
func badData(name, data string) func(*namespace) string {
	return func(n *namespace) string {
		n.scripted(name, data)
		n.untilBootstrapped(name)
		return "Machine/" + name
	}
}

// realRows are the faults of real containers, processes and disks.
func realRows() []row {
	return slices.Concat(containerRows(), bootstrapRows(), processRows(), []row{diskRow()})
}

func containerRows() []row {
	return []row{
		{id: "I2", fault: "node image missing", inject: func(n *namespace) string {
			n.workers("i2", 1, "{}", "{backend: {container: {image: \"slipway.dev/node:v9.9.9\"}}}")
			return "MachineDeployment/i2"
		}, object: "LocalMachine i2-", cause: "slipway.dev/node:v9.9.9 is not", remedy: "Build the node image"},
		{id: "I3", fault: "subnet of another cluster", hasCluster: true, inject: func(n *namespace) string {
			n.containers("i3", n.networks.shared)
			return "Cluster/i3"
		}, object: "LocalCluster i3", cause: "the network of Cluster real/real", remedy: "other address ranges"},
		{id: "I4", fault: "container removed", inject: lostNode(0, func(n *namespace, container, _ string) {
			docker(n, "rm", "--force", "--volumes", container)
		}), object: "LocalMachine nodes-|Machine nodes-", cause: "was removed from the host", remedy: "Delete Machine nodes-"},
		{id: "I5", fault: "container stopped", inject: lostNode(1, func(n *namespace, container, _ string) {
			docker(n, "stop", container)
		}), object: "LocalMachine nodes-|Machine nodes-", cause: "does not run", remedy: "or delete Machine nodes-"},
		{id: "W3", fault: "kubelet stopped", inject: lostNode(2, func(n *namespace, container, node string) {
			docker(n, "exec", container, "systemctl", "stop", "kubelet")
			n.untilNode(node, corev1.ConditionUnknown)
		}), object: "LocalMachine nodes-|Machine nodes-", cause: "is stopped", remedy: "Start the kubelet"},
		{id: "I6", fault: "Node with DiskPressure", inject: badConfig("i6", `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: eviction-hard, value: "nodefs.available<99%"}]}}}`, "{}"),
			object: "Machine i6-", cause: "has disk pressure", remedy: "Free space on the disk of Node i6-"},
		{id: "I7", fault: "port of the control plane endpoint taken", hasCluster: true, inject: func(n *namespace) string {
			l, err := net.Listen("tcp", ":0")
			n.must(err)
			n.Cleanup(func() { _ = l.Close() })
			network := n.networks.take(n)
			n.containers("i7", network, "HostedControlPlane", fmt.Sprintf("{spec: {controlPlaneEndpoint: {host: %s0.1, port: %d}}}", network, l.Addr().(*net.TCPAddr).Port))
			return "Cluster/i7"
		}, object: "HostedControlPlane i7", cause: "is taken by another program", remedy: "End the program that uses the"},
		{id: "C4", fault: "kube-apiserver of a KubeadmControlPlane crashes", hasCluster: true, inject: func(n *namespace) string {
			text := strings.NewReplacer("demo", "c4", "172.29.", n.networks.take(n)).Replace(n.file("examples", "kubeadm.yaml"))
			n.apply(text, "MachineDeployment", "{spec: {replicas: 0}}", "MachineHealthCheck", "{spec: {checks: {nodeStartupTimeoutSeconds: 3600}}}", "KubeadmControlPlane", `{spec: {kubeadmConfigSpec: {clusterConfiguration: {apiServer: {extraArgs: [{name: enable-admission-plugins, value: "NodeRestriction,PodSecurityPolicy"}]}},
  initConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 30}}, joinConfiguration: {timeouts: {controlPlaneComponentHealthCheckSeconds: 30}}}}}`)
			n.untilBootstrapped("c4-")
			n.untilCrashed("c4-")
			return "KubeadmControlPlane/c4"
		}, object: "LocalMachine c4-|Machine c4-", cause: "PodSecurityPolicy", remedy: "flags of the kube-apiserver"},
		{id: "C8", fault: "hosted control plane cannot start", hasCluster: true, inject: func(n *namespace) string {
			n.containers("c8", n.networks.take(n), "HostedControlPlane", "{spec: {apiServer: {extraArgs: [{name: runtime-config, value: nosuch.example.com/v1=true}]}}}")
			return "Cluster/c8"
		}, object: "HostedControlPlane c8", cause: "nosuch.example.com", remedy: "orrect"},
	}
}

func bootstrapRows() []row {
	return []row{
		{id: "B1", fault: "preKubeadmCommands fail", inject: badConfig("b1", `{preKubeadmCommands: ["echo proxy configuration missing; exit 7"]}`, "{}"),
			object: "LocalMachine b1-", cause: "ended with code 7", remedy: "Correct the command"},
		{id: "B2", fault: "caCertHashes wrong", inject: badConfig("b2", fmt.Sprintf(`{joinConfiguration: {discovery: {bootstrapToken: {caCertHashes: ["sha256:%064d"]}}}}`, 0), "{}"),
			object: "LocalMachine b2-", cause: "pinned", remedy: "caCertHashes"},
		{id: "B3", fault: "cloud-config is not YAML", inject: badData("b3", "#cloud-config\nruncmd: [\n  - a: b: c\n"),
			object: "LocalMachine b3", cause: "YAML", remedy: "Correct the cloud-config in the Secret"},
		{id: "B4", fault: "unsupported section of a cloud-config", inject: badData("b4", "#cloud-config\nsnap: {commands: [snap install kubectl]}\nruncmd: [\"mkdir -p /run/cluster-api && touch /run/cluster-api/bootstrap-success.complete\"]\n"),
			object: "LocalMachine b4", cause: "snap", remedy: "use files and runcmd"},
		{id: "B6", fault: "sentinel file never written", inject: badData("b6", "#cloud-config\nruncmd: [echo all done]\n"),
			object: "LocalMachine b6", cause: "bootstrap-success.complete", remedy: "Let the last command"},
		{id: "B7", fault: "bootstrap data runs too long", inject: badConfig("b7", `{preKubeadmCommands: ["sleep 600"]}`, "{backend: {container: {bootstrapTimeoutSeconds: 90}}}"),
			object: "LocalMachine b7-", cause: "did not end within 90 seconds", remedy: "Raise spec.backend.container.bootstrapTimeoutSeconds"},
		{id: "B8", fault: "unknown kubelet flag", inject: badConfig("b8", `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: eviction-hardd, value: "a"}]}}}`, "{}"),
			object: "LocalMachine b8-", cause: "eviction-hardd", remedy: "Correct kubeletExtraArgs"},
	}
}
