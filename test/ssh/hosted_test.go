package ssh

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// hostedEndpoint is the address of this host in the network of the test hosts, where hosted control planes listen.
const hostedEndpoint = "198.18.0.1"

// TestHosted runs a cluster with a hosted control plane on four hosts of Debian 13: it is created while the manager is killed at
// each stage, scaled, rolled out, repaired after the loss of a host, moved to another management cluster, and deleted there.
func TestHosted(t *testing.T) {
	enabled(t)
	machines := startHosts(t, "trixie", 4)
	in, other := startInstallation(t), startInstallation(t)
	in.add(machines[:3])
	testWrongHostKey(in, machines)
	eventually(t, "the hosts to be available", patience, func() error { return in.available(4) })

	demo := testCreate(in, machines)
	testSecondManager(other, machines)
	testScale(in, demo, machines)
	testRollout(in, demo)
	testLostHost(in, demo, machines)
	testMove(in, other, demo)

	testDelete(other)
	for _, m := range machines {
		if left := run(t, "docker", "exec", m.name, "sh", "-c",
			"ls -A /etc/slipway /etc/kubernetes /var/lib/kubelet /etc/cni/net.d 2>/dev/null; ls /etc/systemd/system/slipway-* 2>/dev/null; pgrep -a 'kubelet|containerd'; echo end"); left != "end" {
			t.Errorf("%s: %s", m.name, left)
		}
	}
}

// testDelete deletes the cluster, and kills the manager while it cleans the hosts.
func testDelete(in installation) {
	in.Helper()
	began, done := time.Now(), make(chan error, 1)
	go func() {
		out, err := in.try("delete", "cluster", "demo")
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		done <- err
	}()
	eventually(in.T, "a host to be cleaned", patience, func() error {
		if states := in.get("sshhosts", "{.items[*].status.state}"); !strings.Contains(states, "Cleaning") {
			return fmt.Errorf("the states are %q", states)
		}
		return nil
	})
	in.killManager("a host is being cleaned")
	if err := <-done; err != nil {
		in.Fatal(err)
	}
	eventually(in.T, "the hosts to be clean", patience, func() error { return in.available(3) })
	in.Logf("%-40s %6.1f s", "delete, three hosts, the manager killed", time.Since(began).Seconds())
}

// testWrongHostKey adds the last host with the host key of another one, and corrects it.
func testWrongHostKey(in installation, machines []host) {
	in.Helper()
	m, key := machines[3], func(m host) string { return strings.Join(strings.Fields(m.hostKey)[:2], " ") }
	in.run("hosts", "add", m.address, "--name", m.name, "--user", "root", "--key", in.path("key"), "--host-key", key(machines[0]), "--no-check")
	eventually(in.T, "the wrong host key to be refused", patience, func() error {
		if got := in.get("sshhost/"+m.name, `{.status.state} {.status.conditions[?(@.type=="Reachable")].reason}`); got != "Unreachable HostKeyMismatch" {
			return errors.New(got)
		}
		return nil
	})
	in.run("hosts", "update", m.name, "--host-key", key(m))
}

// testCreate creates a cluster with three workers, and kills the manager at each stage.
func testCreate(in installation, machines []host) api {
	in.Helper()
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		out, err := in.try("create", "cluster", "demo", "--class", "ssh", "--workers", "3", "--wait-timeout", "30m",
			"--set", `hostCleaning={"unreachableTimeoutSeconds": 20}`,
			"--set", fmt.Sprintf(`controlPlaneEndpoint={"host": %q, "port": 6443}`, hostedEndpoint))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		done <- err
	}()
	isTrue := func(condition string) func() bool {
		return func() bool {
			return strings.Contains(in.get("sshmachines", fmt.Sprintf(`{.items[*].status.conditions[?(@.type==%q)].status}`, condition)), "True")
		}
	}
	for _, stage := range []struct {
		name string
		seen func() bool
	}{
		{"a machine has a claim ID", func() bool { return in.get("sshmachines", "{.items[*].spec.claimID}") != "" }},
		{"a host is recorded", isTrue("HostClaimed")},
		{"a host is prepared", isTrue("HostPrepared")},
		{"a machine is provisioned", func() bool { return in.get("sshmachines", "{.items[*].status.initialization.provisioned}") != "" }},
	} {
		eventually(in.T, stage.name, patience, func() error {
			if !stage.seen() {
				return errors.New(in.get("sshmachines", "{.items[*].status.conditions}"))
			}
			return nil
		})
		in.killManager(stage.name)
		for _, m := range machines {
			m.cutConnections()
		}
	}
	if err := <-done; err != nil {
		in.Fatal(err)
	}
	in.Logf("%-40s %6.1f s", "create, the manager killed at four stages", time.Since(began).Seconds())
	in.run("get", "kubeconfig", "demo", "--output-file", in.path("demo.kubeconfig"))
	demo := clusterAt(in.T, in.path("demo.kubeconfig"), hostedEndpoint)
	eventually(in.T, "CoreDNS to be Ready", patience, demo.dnsReady)
	return demo
}

// killManager kills the manager, and waits for the next one.
func (in installation) killManager(when string) {
	in.Helper()
	pid := in.managerProcess()
	in.Logf("the manager is killed when %s", when)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		in.Fatal(err)
	}
	eventually(in.T, "another manager", patience, func() error {
		if now := in.currentManager(); now == 0 || now == pid {
			return fmt.Errorf("process %d", now)
		}
		return nil
	})
}

// testSecondManager adds a host in use to another management cluster, which must leave it unchanged.
func testSecondManager(other installation, machines []host) {
	other.Helper()
	used := slices.IndexFunc(machines, func(m host) bool {
		_, err := command("docker", "exec", m.name, "test", "-e", "/etc/slipway/machine.json")
		return err == nil
	})
	if used < 0 {
		other.Fatal("no host has a record")
	}
	m := machines[used]
	before := run(other.T, "docker", "exec", m.name, "cat", "/etc/slipway/machine.json")
	other.add(machines[used : used+1])
	eventually(other.T, "the host to be quarantined", patience, func() error {
		if state := other.get("sshhost/"+m.name, "{.status.state}"); state != "Quarantined" {
			return errors.New(state)
		}
		return nil
	})
	if reason := other.get("sshhost/"+m.name, `{.status.conditions[?(@.type=="Available")].message}`); !strings.Contains(reason, "default/demo-") {
		other.Errorf("the message does not name the machine: %s", reason)
	}
	out, err := other.try("create", "cluster", "second", "--class", "ssh", "--workers", "1",
		"--set", fmt.Sprintf(`controlPlaneEndpoint={"host": %q, "port": 6444}`, hostedEndpoint))
	if err == nil || !strings.Contains(out, "1 SSHHost is missing") {
		other.Errorf("a cluster on a host of another management cluster: %v\n%s", err, out)
	}
	if after := run(other.T, "docker", "exec", m.name, "cat", "/etc/slipway/machine.json"); after != before {
		other.Errorf("the record was changed from %s to %s", before, after)
	}
	other.run("hosts", "remove", m.name, "--leave-bundles", "--yes")
}

// testScale removes a worker, and creates one again.
func testScale(in installation, demo api, machines []host) {
	in.Helper()
	scale := func(n int) {
		in.scale("demo", n)
		began := time.Now()
		eventually(in.T, fmt.Sprintf("%d workers", n), patience, func() error {
			if err := demo.count(n); err != nil {
				return err
			}
			return in.available(len(machines) - n)
		})
		in.Logf("scaled to %-31d %6.1f s", n, time.Since(began).Seconds())
	}
	scale(2)
	scale(3)
}

// scale changes the number of workers of a cluster.
func (in installation) scale(cluster string, workers int) {
	in.Helper()
	in.run("kubectl", "patch", "cluster", cluster, "--type=json", "-p",
		fmt.Sprintf(`[{"op": "replace", "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": %d}]`, workers))
}

// testRollout replaces all workers; their hosts are used again.
func testRollout(in installation, demo api) {
	in.Helper()
	before := strings.Fields(in.get("machines", "{.items[*].metadata.name}"))
	began := time.Now()
	in.run("alpha", "rollout", "restart", "machinedeployment/"+in.get("machinedeployments", "{.items[0].metadata.name}"))
	eventually(in.T, "all Machines to be replaced", patience, func() error {
		now := strings.Fields(in.get("machines", "{.items[*].metadata.name}"))
		for _, name := range before {
			if slices.Contains(now, name) {
				return fmt.Errorf("%s remains", name)
			}
		}
		return errors.Join(demo.count(3), in.available(1))
	})
	in.Logf("%-40s %6.1f s", "rollout of three workers", time.Since(began).Seconds())
}

// testLostHost kills a host. Its Machine must be replaced on the free host without a user. The lost host starts again: it must be
// cleaned, and leave no Node in the cluster.
func testLostHost(in installation, demo api, machines []host) {
	in.Helper()
	in.run("kubectl", "patch", "cluster", "demo", "--type=json", "-p", `[{"op": "add", "path": "/spec/topology/workers/machineDeployments/0/healthCheck", "value":
		{"checks": {"nodeStartupTimeoutSeconds": 900, "unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 10}]}}}]`)
	used := strings.Fields(in.get("sshhosts", `{.items[?(@.status.state=="InUse")].metadata.name}`))
	lost := machines[slices.IndexFunc(machines, func(m host) bool { return m.name == used[0] })]
	run(in.T, "docker", "kill", lost.name)
	began := time.Now()
	eventually(in.T, "the lost machine to be replaced", patience, func() error {
		for _, m := range machines {
			if m.name == lost.name {
				continue
			}
			if err := demo.ready(m.name); err != nil {
				return err
			}
		}
		return nil
	})
	in.Logf("%-40s %6.1f s", "replacement of a lost host", time.Since(began).Seconds())
	if got := in.get("sshhost/"+lost.name, `{.status.state} {.status.conditions[?(@.type=="Available")].reason}`); got != "Quarantined ReleasedByForce" {
		in.Errorf("the lost host is %s", got)
	}
	eventually(in.T, "the Node of the lost host to be deleted", patience, func() error { return demo.count(len(machines) - 1) })

	run(in.T, "docker", "start", lost.name)
	began = time.Now()
	returned := false
	eventually(in.T, "the lost host to be clean", patience, func() error {
		node, err := demo.client.CoreV1().Nodes().Get(demo, lost.name, metav1.GetOptions{})
		if err == nil {
			returned = true
			if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&clusterv1.NodeUninitializedTaint) }) {
				in.Errorf("Pods can be scheduled to the lost host: %+v", node.Spec.Taints)
			}
		}
		return in.available(1)
	})
	in.Logf("%-40s %6.1f s, its Node returned: %t", "cleaning of a host that returned", time.Since(began).Seconds(), returned)
	if node, err := demo.client.CoreV1().Nodes().Get(demo, lost.name, metav1.GetOptions{}); err == nil && node.DeletionTimestamp.IsZero() {
		in.Errorf("Node %s remains", lost.name)
	}
	if err := demo.count(len(machines) - 1); err != nil {
		in.Error(err)
	}
	if names := strings.Fields(in.get("machines", "{.items[*].metadata.name}")); len(names) != len(machines)-1 {
		in.Errorf("Machines %v", names)
	}
}

// testMove moves the cluster to another management cluster. The nodes and the hosts do not change.
func testMove(in, other installation, demo api) {
	in.Helper()
	claims := in.get("sshmachines", "{.items[*].spec.claimID}")
	began := time.Now()
	in.run("move", "--to-kubeconfig", other.path("data/kubeconfig"))
	in.Logf("%-40s %6.1f s", "move", time.Since(began).Seconds())
	if left := in.get("sshmachines", "{.items[*].metadata.name}"); left != "" {
		in.Errorf("SSHMachines remain at the source: %s", left)
	}
	eventually(other.T, "the hosts to be in use at the target", patience, func() error {
		if states := other.get("sshhosts", "{.items[*].status.state}"); states != "InUse InUse InUse" {
			return fmt.Errorf("the states are %q", states)
		}
		return nil
	})
	if now := other.get("sshmachines", "{.items[*].spec.claimID}"); now != claims {
		other.Errorf("the claim IDs changed from %s to %s", claims, now)
	}
	if err := demo.count(3); err != nil {
		other.Error(err)
	}
}

// count checks that there are n Nodes, and that all are Ready.
func (a api) count(n int) error {
	nodes, err := a.client.CoreV1().Nodes().List(a, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) != n {
		return fmt.Errorf("%d nodes, want %d", len(nodes.Items), n)
	}
	for _, node := range nodes.Items {
		if err := a.ready(node.Name); err != nil {
			return err
		}
	}
	return nil
}
