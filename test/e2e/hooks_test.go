package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A Cluster of a class with a MachineDeployment and a MachinePool, both of real nodes, is created at a version that the host does not have
// yet, upgraded and deleted, while an extension in another language holds back each of the nine hooks. Its control plane is upgraded in
// place with its data while the nodes of the older version go on; then each node is replaced once.
// LH-01 to LH-09, LH-13, LH-17, TP-22, TP-23, TP-29, CL-13, CL-34, CP-04
func TestUpgradeThatHooksHoldBack(t *testing.T) {
	in := newInstallation(t)
	in.up()
	g := in.startGate("aged")
	in.apply(agedCluster(t))
	made := func() []string {
		return strings.Fields(in.get("localclusters,hostedcontrolplanes,machinedeployments,machinepools,machines", "{.items[*].metadata.name}"))
	}
	g.holds("BeforeClusterCreate", "creation of the topology", made)
	if names := made(); len(names) > 0 {
		t.Errorf("made before the hook let go: %v", names)
	}
	g.release("BeforeClusterCreate", nil)

	untilContains(t, short, "what to do about the version", "slipway versions add "+further, func() string { return in.condition("hostedcontrolplane/aged", "VersionSupported") })
	if started := in.get("hostedcontrolplane/aged", "{.status.process.pid}"); started != "" && started != "0" {
		t.Errorf("process %s was started", started)
	}
	in.run("versions", "add", further, "--node-image")
	untilContains(t, long, "a hook that cannot hold back failed", "Hook AfterControlPlaneInitialized failed: handler aftercontrolplaneinitialized.gate: ", func() string {
		return in.condition("cluster/aged", "TopologyReconciled")
	})
	untilContains(t, long, "workers are made all the same", "aged", func() string { return in.get("machinepools", "{.items[*].metadata.name}") })
	g.release("AfterControlPlaneInitialized", nil)

	w := in.untilReady("aged", 2)
	untilContains(t, long, "the topology", "True", func() string { return in.condition("cluster/aged", "TopologyReconciled") })
	aged := agedWorkload(t, w)
	first := in.machines()
	upgradesAged(t, g, aged)
	for _, m := range in.machines() {
		if slices.Contains(first, m) {
			t.Errorf("machine %s was not replaced", m)
		}
	}
	if out := in.run("versions", "list"); !strings.Contains(out, "v1.36.3  included") || strings.Count(out, "default/aged") != 1 {
		t.Errorf("versions list:\n%s", out)
	}
	in.run("versions", "remove", further)
	deletesAged(t, g)
	g.ended()
}

// agedCluster is the Cluster of examples/quickstart.yaml at the added version, with one node of each kind of workers.
func agedCluster(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for from, to := range map[string]string{
		"name: quickstart": "name: aged", "172.30.": freeNetwork(t), "version: v1.36.3": "version: " + further,
		"        replicas: 2\n": "        replicas: 1\n      machinePools:\n      - {class: default-worker, name: pool, replicas: 1}\n",
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("the quickstart has no %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	return text
}

// agedData is what the workload cluster has before its upgrade.
type agedData struct {
	workload
	proxies string
}

func (a agedData) kubeProxies() string {
	return a.kubectl("get", "pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy", "-o", "name")
}

func agedWorkload(t *testing.T, w workload) agedData {
	t.Helper()
	until(t, short, "the versions of the nodes", further+" "+further, w.kubelets)
	w.kubectl("create", "configmap", "kept", "--from-literal=since="+further)
	podsWork(t, w)
	a := agedData{workload: w}
	a.proxies = a.kubeProxies()
	return a
}

// kept sees that the data of the workload cluster is there.
func (a agedData) kept(t *testing.T) {
	t.Helper()
	if got := a.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.since}"); got != further {
		t.Errorf("the data says %q", got)
	}
}

// kubelets are the versions of the nodes.
func (w workload) kubelets() string {
	out, err := w.try("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	if err != nil {
		return err.Error()
	}
	return out
}

// stateOfAged is what an upgrade changes: versions first, then the objects that are replaced with them.
func (in *installation) stateOfAged() []string {
	plane, workers, pool := "hostedcontrolplane/aged", "machinedeployment/aged-workers", "machinepool/aged-pool"
	return []string{
		in.get(plane, "{.spec.version}"), in.get(plane, "{.status.version}"),
		in.get(workers, "{.spec.template.spec.version}"), in.get(pool, "{.spec.template.spec.version}"),
		in.get(workers, "{.spec.template.spec.infrastructureRef.name}"), in.get(workers, "{.spec.template.spec.bootstrap.configRef.name}"),
		in.get("localmachinepool", "{.items[*].spec}"), in.get("machines", "{.items[*].metadata.name}"),
	}
}

// upgradesAged gives the Cluster another version and another variable of its nodes, and releases one hook after the other.
func upgradesAged(t *testing.T, g *hookGate, aged agedData) {
	t.Helper()
	const next = "v1.36.3"
	in := g.in
	in.kubectl("patch", "cluster", "aged", "--type", "json", "-p", `[{"op": "replace", "path": "/spec/topology/version", "value": "`+next+`"},
		{"op": "add", "path": "/spec/topology/variables/-", "value": {"name": "nodeResources", "value": {"memoryMiB": 1536}}}]`)
	gates := []struct {
		hook, action string
		// versions are those of the control plane's spec and status, of the MachineDeployment and of the MachinePool.
		versions []string
		request  map[string]any
		// holding sees what else is so while the hook holds back.
		holding func()
	}{
		{"BeforeClusterUpgrade", "upgrade of the Cluster to " + next, []string{further, further, further, further}, map[string]any{
			"fromKubernetesVersion": further, "toKubernetesVersion": next, "controlPlaneUpgrades": steps(next), "workersUpgrades": steps(next),
		}, nil},
		{"BeforeControlPlaneUpgrade", "upgrade of the control plane to " + next, []string{further, further, further, further}, map[string]any{
			"fromKubernetesVersion": further, "toKubernetesVersion": next, "controlPlaneUpgrades": steps(next), "workersUpgrades": steps(next),
		}, nil},
		{"AfterControlPlaneUpgrade", "upgrade of the Cluster to " + next, []string{next, next, further, further}, map[string]any{
			"kubernetesVersion": next, "workersUpgrades": steps(next),
		}, func() { aged.kept(t) }},
		{"BeforeWorkersUpgrade", "upgrade of the workers to " + next, []string{next, next, further, further}, map[string]any{
			"fromKubernetesVersion": further, "toKubernetesVersion": next, "workersUpgrades": steps(next),
		}, func() { olderNodesGoOn(t, in, aged) }},
		{"AfterWorkersUpgrade", "upgrade of the Cluster to " + next, []string{next, next, next, next}, map[string]any{
			"kubernetesVersion": next,
		}, func() { until(t, short, "the versions of the nodes", next+" "+next, aged.kubelets) }},
		{"AfterClusterUpgrade", "next upgrade", []string{next, next, next, next}, map[string]any{"kubernetesVersion": next}, func() {
			out, err := in.try("kubectl", "patch", "cluster", "aged", "--type", "merge", "-p", `{"spec":{"topology":{"version":"v1.36.4"}}}`)
			if err == nil || !strings.Contains(out, "AfterClusterUpgrade") {
				t.Errorf("another upgrade: %v, %s", err, out)
			}
		}},
	}
	for _, gate := range gates {
		g.holds(gate.hook, gate.action, in.stateOfAged)
		if got := in.stateOfAged()[:4]; !slices.Equal(got, gate.versions) {
			t.Errorf("%s holds back at versions %v, want %v", gate.hook, got, gate.versions)
		}
		if gate.holding != nil {
			gate.holding()
		}
		g.release(gate.hook, gate.request)
	}
	untilContains(t, long, "the topology", "True", func() string { return in.condition("cluster/aged", "TopologyReconciled") })
	for _, m := range strings.Fields(in.get("localmachines", "{.items[*].metadata.name}")) {
		if got := in.get("localmachine/"+m, "{.spec.backend.container.resources.memoryMiB}"); got != "1536" {
			t.Errorf("%s has %q MiB: what waited for the version comes with it", m, got)
		}
	}
	aged.kept(t)
}

// olderNodesGoOn: the control plane has its new version, and the nodes still run what they ran.
func olderNodesGoOn(t *testing.T, in *installation, aged agedData) {
	t.Helper()
	untilContains(t, long, "the control plane is available", "True", func() string { return in.condition("hostedcontrolplane/aged", "Available") })
	untilContains(t, long, "its add-ons run on nodes of the older version", "True", func() string { return in.condition("hostedcontrolplane/aged", "AddonsAvailable") })
	aged.kept(t)
	if got := aged.kubeProxies(); got != aged.proxies {
		t.Errorf("kube-proxy was replaced on nodes of the same version: %s, before %s", got, aged.proxies)
	}
	until(t, short, "the versions of the nodes", further+" "+further, aged.kubelets)
}

// deletesAged deletes the Cluster, of which nothing goes until the hook lets it.
func deletesAged(t *testing.T, g *hookGate) {
	t.Helper()
	in, instance := g.in, g.in.instance()
	in.kubectl("delete", "cluster", "aged", "--wait=false")
	g.holds("BeforeClusterDelete", "deletion", func() []string {
		return append(in.stateOfAged(), in.get("machines,machinedeployments,machinepools,hostedcontrolplanes,localclusters", "{.items[*].metadata.deletionTimestamp}"))
	})
	if going := in.get("machines,machinedeployments,machinepools,hostedcontrolplanes,localclusters", "{.items[*].metadata.deletionTimestamp}"); going != "" {
		t.Errorf("something is being deleted since %s", going)
	}
	g.release("BeforeClusterDelete", nil)
	until(t, long, "the Cluster is gone", "", func() string { return in.get("clusters", "{.items[*].metadata.name}") })
	if left := in.leftovers(instance); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// steps is a list of versions in a request.
func steps(list ...string) []any {
	var out []any
	for _, v := range list {
		out = append(out, map[string]any{"version": v})
	}
	return out
}
