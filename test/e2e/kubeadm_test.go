package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// A cluster of class kubeadm, with one control plane node and one worker: kubeadm init and join, the load balancer, Pods, and nothing is left.
func TestKubeadm(t *testing.T) {
	in := newInstallation(t)
	in.up()
	in.lasts("create", "cluster", "tower", "--class", "kubeadm", "--control-planes", "1", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16",
		"--set", "podSecurity=baseline")
	w := in.untilReady("tower", 2)
	podsWork(t, w)
	t.Run("Pod security", func(t *testing.T) { podSecurity(t, w.with(t)) })
	eventually(t, short, "until when the certificates are valid", func() error {
		got := in.get("kubeadmconfigs", `{.items[*].metadata.annotations.machine\.cluster\.x-k8s\.io/certificates-expiry}`)
		if at, err := time.Parse(time.RFC3339, got); err != nil || time.Until(at) < 300*24*time.Hour {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	in.deletesTower(t)
}

// deletesTower deletes the cluster. Nothing of it is left on the host.
func (in *installation) deletesTower(t *testing.T) {
	t.Helper()
	instance := in.instance()
	in.lasts("delete", "cluster", "tower")
	if left := in.leftovers(instance); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
}

// A cluster of class kubeadm with three control plane nodes and a worker is upgraded by a minor version, and loses the node of its etcd
// leader, while a client reads and writes its API: everything that was acknowledged is there in the end.
//
// It takes a quarter of an hour, too long for `make test`: `make test-kubeadm` runs it.
func TestKubeadmUpgrade(t *testing.T) {
	if os.Getenv("SLIPWAY_E2E_KUBEADM") == "" {
		t.Skip("make test-kubeadm runs this test")
	}
	in := newInstallation(t)
	in.up()
	in.lasts("create", "cluster", "tower", "--class", "kubeadm", "--control-planes", "3", "--workers", "1",
		"--kubernetes-version", further, "--subnet", freeNetwork(t)+"0.0/16", "--set", "podSecurity=baseline")
	w := in.untilReady("tower", 4)
	until(t, short, "the versions of the nodes", strings.TrimSpace(strings.Repeat(further+" ", 4)), w.kubelets)
	podsWork(t, w)

	client := w.startClient(t)
	t.Run("upgrade", func(t *testing.T) { upgradesTower(t, in.with(t), w.with(t)) })
	client.goesOn(t)
	t.Run("the node of the etcd leader is killed", func(t *testing.T) { leaderKilled(t, in.with(t), w.with(t)) })
	client.goesOn(t)
	client.lostNothing(t)

	in.deletesTower(t)
}

// lasts runs a verb that waits for nodes.
func (in *installation) lasts(args ...string) string {
	in.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*long)
	defer cancel()
	began := time.Now()
	out, err := in.within(ctx, args...)
	if err != nil {
		in.t.Fatalf("slipway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	in.t.Logf("slipway %s took %s", strings.Join(args[:3], " "), time.Since(began).Round(time.Second))
	return out
}

// podSecurity sees that the variable of the class reaches every API server.
func podSecurity(t *testing.T, w workload) {
	for range 6 { // the load balancer spreads connections
		_, err := w.try("run", "root", "--image", busyboxImage, "--privileged", "--dry-run=server")
		if err == nil || !strings.Contains(err.Error(), "PodSecurity") {
			t.Fatalf("a privileged Pod is accepted: %v", err)
		}
	}
}

// upgradesTower upgrades control plane and worker by the verb. Every Machine is replaced once.
func upgradesTower(t *testing.T, in *installation, w workload) {
	before := in.machines()
	in.lasts("upgrade", "cluster", "tower", "--to", "v1.36.3", "--yes")
	until(t, short, "the versions of the nodes", strings.TrimSpace(strings.Repeat("v1.36.3 ", 4)), w.kubelets)
	now := in.machines()
	if len(now) != 4 || slices.ContainsFunc(now, func(name string) bool { return slices.Contains(before, name) }) {
		t.Errorf("machines %v, before %v", now, before)
	}
	in.healthyControlPlane(t)
}

// healthyControlPlane waits until three Machines of the control plane, and their members of etcd, are as they should be.
func (in *installation) healthyControlPlane(t *testing.T) {
	t.Helper()
	for _, condition := range []string{"Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "MachinesReady"} {
		eventually(t, long, condition+" of the control plane", func() error {
			if got := in.condition("kubeadmcontrolplane/tower", condition); !strings.HasPrefix(got, "True") {
				return fmt.Errorf("%s\n%s", got, in.picture("tower"))
			}
			return nil
		})
	}
	until(t, long, "replicas", "3 3 3 3", func() string {
		return in.get("kubeadmcontrolplane/tower", "{.status.replicas} {.status.readyReplicas} {.status.availableReplicas} {.status.upToDateReplicas}")
	})
}

// controlPlaneNodes are the Nodes of the control plane.
func (w workload) controlPlaneNodes() []string {
	out, err := w.try("get", "nodes", "-l", "node-role.kubernetes.io/control-plane", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return nil
	}
	return strings.Fields(out)
}

// leaderKilled kills the node of the etcd leader. The health check finds that it is gone, and another takes its place.
func leaderKilled(t *testing.T, in *installation, w workload) {
	in.checksNodes(t)
	leader, container := in.etcdLeader(t, w)
	t.Logf("the leader of etcd is node %s", leader)
	docker(t, "kill", container)
	began := time.Now()
	eventually(t, 2*long, "another node in its place", func() error {
		nodes := w.controlPlaneNodes()
		if slices.Contains(nodes, leader) || len(nodes) != 3 || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", nodes, w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	in.healthyControlPlane(t)
	t.Logf("replaced and healthy %v after it was killed", time.Since(began).Round(time.Second))
	if left := docker(t, "ps", "-aq", "--no-trunc", "--filter", "id="+container); len(left) > 0 {
		t.Errorf("its container is left")
	}
}

// checksNodes has the health check of the control plane replace Machines whose Node is not ready for five seconds.
func (in *installation) checksNodes(t *testing.T) {
	t.Helper()
	in.kubectl("patch", "cluster", "tower", "--type", "merge", "-p", `{"spec":{"topology":{"controlPlane":{"healthCheck":{"checks":{
		"unhealthyNodeConditions":[{"type":"Ready","status":"Unknown","timeoutSeconds":5}]}}}}}}`)
	until(t, short, "the health check", "5", func() string {
		return in.get("machinehealthcheck/tower", "{.spec.checks.unhealthyNodeConditions[0].timeoutSeconds}")
	})
}

// etcdLeader returns the node of the etcd leader and its container: the member says so in its metrics, which it serves on its own machine.
func (in *installation) etcdLeader(t *testing.T, w workload) (node, container string) {
	t.Helper()
	const ask = `exec 3<>/dev/tcp/127.0.0.1/2381; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3`
	eventually(t, short, "a leader of etcd", func() error {
		for _, name := range w.controlPlaneNodes() {
			found := docker(t, "ps", "-q", "--no-trunc", "--filter", "label=dev.slipway.instance="+in.instance(), "--filter", "name="+name)
			if len(found) != 1 {
				return fmt.Errorf("containers of node %s: %v", name, found)
			}
			out, err := exec.Command("docker", "exec", found[0], "bash", "-c", ask).CombinedOutput()
			if err != nil {
				return fmt.Errorf("asking etcd of node %s: %w: %s", name, err, out)
			}
			if strings.Contains(string(out), "\netcd_server_is_leader 1\n") {
				node, container = name, found[0]
				return nil
			}
		}
		return fmt.Errorf("no member says that it is")
	})
	return node, container
}
