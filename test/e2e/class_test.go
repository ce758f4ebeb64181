package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestClassQuickstart follows the quickstart: a cluster of the class that ships, changed through its topology.
func TestClassQuickstart(t *testing.T) { // TP-01, TP-02, TP-08, TP-13
	in := newInstallation(t)
	in.up()
	subnet := freeNetwork(t) + "0.0/16"
	out := in.run("create", "cluster", "classy", "--workers", "1", "--subnet", subnet, "--set", "podSecurity=baseline")
	if !strings.Contains(out, `Cluster "classy" is ready after`) {
		t.Errorf("the command waits until the node is ready:\n%s", out)
	}
	w := in.untilReady("classy", 1)
	if got := in.get("hostedcontrolplane/classy", "{.spec.podSecurity.enforce.level}"); got != "baseline" {
		t.Errorf("the variable reaches the control plane: %q", got)
	}
	if got := in.get("localcluster/classy", "{.spec.backend.container.network.subnet}"); got != subnet {
		t.Errorf("the variable reaches the network: %q", got)
	}
	first := in.kubectl("get", "machines", "-o", "name")

	in.kubectl("patch", "cluster", "classy", "--type", "json", "-p",
		`[{"op": "replace", "path": "/spec/topology/workers/machineDeployments/0/replicas", "value": 2}]`)
	untilContains(t, long, "a second node", "2", func() string { return in.get("machinedeployment/classy-workers", "{.status.availableReplicas}") })
	if now := in.kubectl("get", "machines", "-o", "name"); !strings.Contains(now, strings.TrimSpace(first)) {
		t.Errorf("scaling keeps the first node %q: %s", first, now)
	}

	in.kubectl("patch", "cluster", "classy", "--type", "json", "-p",
		`[{"op": "add", "path": "/spec/topology/variables/-", "value": {"name": "nodeResources", "value": {"memoryMiB": 1536}}}]`)
	in.run("wait", "cluster", "classy")
	for _, m := range strings.Fields(in.kubectl("get", "localmachines", "-o", "name")) {
		if got := in.get(m, "{.spec.backend.container.resources.memoryMiB}"); got != "1536" {
			t.Errorf("%s has %q MiB: a variable of nodes replaces them", m, got)
		}
	}
	if now := in.kubectl("get", "machines", "-o", "name"); strings.Contains(now, strings.TrimSpace(first)) {
		t.Errorf("the first node %q is still there: %s", first, now)
	}
	unavailableVersion(t, in, w)
	personalCredentials(t, in, w)
	in.run("delete", "cluster", "classy")
	if left := in.leftovers(in.instance()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// personalCredentials are those of one person, who may do what the role says until it is revoked.
func personalCredentials(t *testing.T, in *installation, w workload) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "anna")
	in.run("get", "kubeconfig", "classy", "--user", "anna", "--role", "view", "--output-file", file)
	anna := workload{in, file}
	untilContains(t, short, "a role of one person", "coredns", func() string {
		out, _ := anna.try("get", "deployments", "-n", "kube-system", "-o", "name")
		return out
	})
	if out, err := anna.try("get", "secrets", "-n", "kube-system"); err == nil || !strings.Contains(out, `User "anna" cannot list`) {
		t.Errorf("view reads Secrets: %v, %s", err, out)
	}
	ownCredentials(t, in, "classy")
	w.kubectl("delete", "clusterrolebinding", "--selector", "slipway.dev/personal-user=anna")
	untilContains(t, short, "it is revoked", `User "anna" cannot list`, func() string {
		out, _ := anna.try("get", "deployments", "-n", "kube-system", "-o", "name")
		return out
	})
}

// unavailableVersion asks for a version that the host does not have: the upgrade does not begin, and the condition says what to do.
func unavailableVersion(t *testing.T, in *installation, w workload) { // CP-04, TP-20
	process, before := in.get("hostedcontrolplane/classy", "{.status.process.pid}"), in.machines()
	in.kubectl("patch", "cluster", "classy", "--type", "merge", "-p", `{"spec":{"topology":{"version":"v1.37.0"}}}`)
	untilContains(t, short, "what to do about the version", "Kubernetes v1.37.0 is not available on this host, which has v1.36.3; the operator adds it with `slipway versions add v1.37.0`",
		func() string { return in.condition("hostedcontrolplane/classy", "VersionSupported") })
	untilContains(t, short, "the topology waits", "HostedControlPlane classy is upgrading to v1.37.0", func() string { return in.condition("cluster/classy", "TopologyReconciled") })
	if picture := in.picture("classy"); !strings.Contains(picture, "slipway versions add v1.37.0") {
		t.Errorf("the verb does not say what to do:\n%s", picture)
	}
	if now := in.get("hostedcontrolplane/classy", "{.status.process.pid}"); now != process || process == "" {
		t.Errorf("process %s, was %s", now, process)
	}
	if now := in.machines(); !slices.Equal(now, before) {
		t.Errorf("machines %v, were %v", now, before)
	}
	if ready := w.readyNodes(); len(ready) != 2 {
		t.Errorf("ready nodes %v", ready)
	}
}
