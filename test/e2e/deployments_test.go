package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fleetSize is the number of simulated Clusters that the Deployment manages.
const fleetSize = 20

// elsewhere is a management cluster that slipway did not start.
type elsewhere struct{ workload }

func (e elsewhere) with(t *testing.T) elsewhere { return elsewhere{e.workload.with(t)} }

// slipway runs a verb on it.
func (e elsewhere) slipway(verb string, args ...string) string {
	e.in.t.Helper()
	return e.in.run(append([]string{verb, "--kubeconfig", e.kubeconfig}, args...)...)
}

func (e elsewhere) apply(manifest string, args ...string) error {
	e.in.t.Helper()
	file := filepath.Join(e.in.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		e.in.t.Fatal(err)
	}
	_, err := e.try(append([]string{"apply", "--server-side", "-f", file}, args...)...)
	return err
}

// TestDeployments runs a release as it is meant for any Kubernetes cluster: on one of real nodes that Slipway made. `make
// test-deployments` writes the release, and runs it: CC2-01, MV-16.
func TestDeployments(t *testing.T) {
	dist := os.Getenv("SLIPWAY_E2E_DEPLOYMENTS")
	if dist == "" {
		t.Skip("make test-deployments runs this test")
	}
	in := newInstallation(t)
	in.up()
	in.apply(quickstart(t, "home", 2))
	home := elsewhere{in.untilReady("home", 2)}
	in.run("image", "load", oneFolder(t, filepath.Join(dist, "slipway", "v*", "image")), "--cluster", "home")

	t.Run("a Deployment for each provider", func(t *testing.T) { home.with(t).providers(dist) })
	t.Run("one Deployment", func(t *testing.T) { home.with(t).manager(dist) })
	t.Run("a control plane in a Pod", func(t *testing.T) { home.with(t).planeInPod() })
	t.Run("what never had a host is deleted without one", func(t *testing.T) { home.with(t).deletesWithoutHost() })
	t.Run("the leader is lost", func(t *testing.T) { home.with(t).leaderLost() })
	t.Run("clusters are taken over", func(t *testing.T) { home.with(t).takesOver() })
}

func oneFolder(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// providers installs the release as clusterctl's users do, waits until every Deployment is available, and removes it.
func (e elsewhere) providers(dist string) {
	t := e.in.t
	t.Helper()
	text := "providers:\n"
	for _, p := range [][3]string{
		{"cluster-api", "CoreProvider", "cluster-api/v*/core"}, {"kubeadm", "BootstrapProvider", "bootstrap-kubeadm/v*/bootstrap"},
		{"kubeadm", "ControlPlaneProvider", "control-plane-kubeadm/v*/control-plane"}, {"hosted", "ControlPlaneProvider", "control-plane-hosted/v*/control-plane"},
		{"local", "InfrastructureProvider", "infrastructure-local/v*/infrastructure"},
	} {
		text += fmt.Sprintf("- {name: %s, type: %s, url: %q}\n", p[0], p[1], oneFolder(t, filepath.Join(dist, p[2]+"-components.yaml")))
	}
	config := filepath.Join(t.TempDir(), "clusterctl.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e.slipway("init", "--config", config, "--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm,hosted", "--infrastructure", "local", "--wait-providers")
	t.Logf("init --wait-providers took %s", time.Since(began).Round(time.Second))
	available := strings.Fields(e.kubectl("get", "deployments", "-A", "-l", "cluster.x-k8s.io/provider", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.availableReplicas} {end}`))
	slices.Sort(available)
	want := []string{"slipway-bootstrap-kubeadm=2", "slipway-cluster-api=2", "slipway-control-plane-hosted=2", "slipway-control-plane-kubeadm=2", "slipway-infrastructure-local=2"}
	if !slices.Equal(available, want) {
		t.Errorf("available replicas: %v", available)
	}
	err := e.apply(strings.ReplaceAll(example(t, "fleet.yaml"), "replicas: 1", "replicas: -1"), "-n", "default")
	if err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("the webhooks do not refuse: %v", err)
	}
	e.kubectl("delete", "clusters,machinedeployments,localclusters,hostedcontrolplanes,kubeadmconfigtemplates,localmachinetemplates", "--all", "-n", "default", "--timeout", long.String())
	e.slipway("delete", "--all", "--include-crd", "--include-namespace", "--config", config)
	if left := e.kubectl("get", "deployments", "-A", "-l", "cluster.x-k8s.io/provider", "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("delete left %s", left)
	}
}

func example(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// manager installs the one Deployment with all providers, and creates the fleet.
func (e elsewhere) manager(dist string) {
	t := e.in.t
	t.Helper()
	eventually(t, long, "the namespace of the providers is gone", func() error {
		if out, err := e.try("get", "namespace", "slipway-system"); err == nil {
			return errors.New(out)
		}
		return nil
	})
	data, err := os.ReadFile(oneFolder(t, filepath.Join(dist, "slipway", "v*", "manager.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	// The nodes have no load balancers.
	if err := e.apply(strings.ReplaceAll(string(data), "service-type=LoadBalancer", "service-type=NodePort")); err != nil {
		t.Fatal(err)
	}
	e.kubectl("wait", "-n", "slipway-system", "deployment/slipway-manager", "--for", "condition=Available", "--timeout", long.String())
	e.kubectl("create", "namespace", "fleet")
	began := time.Now()
	for n := range fleetSize {
		manifest := strings.ReplaceAll(example(t, "fleet.yaml"), "fleet", fmt.Sprintf("sim-%d", n))
		eventually(t, short, "a Cluster is accepted", func() error { return e.apply(manifest, "-n", "fleet") })
	}
	e.fleetAvailable("fleet", 1)
	t.Logf("%d Clusters after %s", fleetSize, time.Since(began).Round(time.Second))
}

// fleetAvailable waits until all Clusters of a namespace are available, each with so many Machines, which have their Nodes.
func (e elsewhere) fleetAvailable(namespace string, machines int) {
	e.in.t.Helper()
	n := len(strings.Fields(e.kubectl("get", "clusters", "-n", namespace, "-o", "name")))
	eventually(e.in.t, long, fmt.Sprintf("%d Clusters of namespace %s", n, namespace), func() error {
		const ready = `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Available")].status}{.status.conditions[?(@.type=="NodeHealthy")].status} {end}`
		for _, kind := range []string{"clusters", "machines"} {
			out, err := e.try("get", kind, "-n", namespace, "-o", ready)
			if err != nil {
				return err
			}
			if got := strings.Count(out, "True"); kind == "clusters" && got != n || kind == "machines" && got != 2*machines*n {
				return fmt.Errorf("%s: %s", kind, out)
			}
		}
		return nil
	})
}

const nodeCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: hostless, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: hostless}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {name: hostless, namespace: default}
spec: {backend: {container: {}}}
`

// deletesWithoutHost: a Cluster of node containers waits where there is no Docker, says so, and goes when it is deleted.
func (e elsewhere) deletesWithoutHost() {
	t := e.in.t
	t.Helper()
	if err := e.apply(nodeCluster); err != nil {
		t.Fatal(err)
	}
	untilContains(t, short, "the LocalCluster waits", "Docker", func() string {
		out, _ := e.try("get", "localcluster", "hostless", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		return out
	})
	e.kubectl("delete", "cluster", "hostless", "--timeout", short.String())
}

// leaderLost: the node's kernel ends the leader, another one leads, and nothing is lost: the same objects are available again.
func (e elsewhere) leaderLost() {
	t := e.in.t
	t.Helper()
	const uids = "jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}"
	before := e.kubectl("get", "clusters,machinedeployments,machines", "-n", "fleet", "-o", uids)
	leader := func() string {
		out, _ := e.try("get", "lease", "controller-leader-election-capi", "-n", "slipway-system", "-o", "jsonpath={.spec.holderIdentity}")
		return strings.TrimSpace(out)
	}
	first := leader()
	pod, _, _ := strings.Cut(first, "_")
	node := strings.TrimSpace(e.kubectl("get", "pod", pod, "-n", "slipway-system", "-o", "jsonpath={.spec.nodeName}"))
	restarts := func() string {
		out, _ := e.try("get", "pod", pod, "-n", "slipway-system", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
		return strings.TrimSpace(out)
	}
	earlier, err := strconv.Atoi(restarts()) // the control plane in a Pod has seen managers end, too
	if err != nil {
		t.Fatalf("how often %s was started again is not known: %v", pod, err)
	}
	began := time.Now()
	docker(t, "exec", nodeContainer(t, node), "sh", "-c", killManagers)
	eventually(t, long, "another leader", func() error {
		if now := leader(); now == first || now == "" {
			return fmt.Errorf("%s leads", now)
		}
		return nil
	})
	t.Logf("another leader after %s", time.Since(began).Round(time.Second))
	until(t, short, "the killed manager is started again", strconv.Itoa(earlier+1), restarts)
	e.fleetAvailable("fleet", 1)
	t.Logf("all available after %s", time.Since(began).Round(time.Second))
	if after := e.kubectl("get", "clusters,machinedeployments,machines", "-n", "fleet", "-o", uids); after != before {
		t.Errorf("objects before:\n%s\nafter:\n%s", before, after)
	}
	e.kubectl("scale", "machinedeployment", "--all", "-n", "fleet", "--replicas", "2") // each of them is worked on
	e.fleetAvailable("fleet", 2)
	t.Logf("all scaled after %s", time.Since(began).Round(time.Second))
}

// killManagers ends the managers on a node without a word.
const killManagers = `for p in /proc/[0-9]*; do case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in /*slipway\ manager\ *) kill -9 ${p#/proc/};; esac; done`

// nodeContainer is the container of a node.
func nodeContainer(t *testing.T, node string) string {
	t.Helper()
	for _, id := range docker(t, "ps", "--quiet", "--filter", "label=dev.slipway.cluster=default/home") {
		if name := docker(t, "inspect", "--format", "{{.Config.Hostname}}", id); len(name) == 1 && name[0] == node {
			return id
		}
	}
	t.Fatalf("node %s has no container", node)
	return ""
}

// takesOver: simulated Clusters of the management cluster of `slipway up` go to the Deployment, and are deleted there; those of its
// host are refused before anything is paused.
func (e elsewhere) takesOver() {
	t := e.in.t
	t.Helper()
	e.in.kubectl("create", "namespace", "pivot")
	for n := range 3 {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(example(t, "fleet.yaml"), "fleet", fmt.Sprintf("pivot-%d", n))), 0o600); err != nil {
			t.Fatal(err)
		}
		e.in.kubectl("apply", "-n", "pivot", "-f", file)
	}
	elsewhere{workload{e.in, filepath.Join(e.in.dataDir, "kubeconfig")}}.fleetAvailable("pivot", 1)
	if out, err := e.in.try("move", "--to-kubeconfig", e.kubeconfig, "-n", "default"); err == nil || !strings.Contains(err.Error(), "the target does not tell this user on which host it runs") {
		t.Errorf("a cluster with node containers: %v\n%s", err, out)
	}
	began := time.Now()
	e.in.run("move", "--to-kubeconfig", e.kubeconfig, "-n", "pivot")
	e.fleetAvailable("pivot", 1)
	t.Logf("moved and available after %s", time.Since(began).Round(time.Second))
	if left := strings.TrimSpace(e.in.kubectl("get", "clusters,machines,hostedcontrolplanes", "-n", "pivot", "-o", "name")); left != "" {
		t.Errorf("left behind: %s", left)
	}
	e.kubectl("delete", "clusters", "--all", "-n", "pivot", "--timeout", long.String())
	if left := strings.TrimSpace(e.kubectl("get", "clusters,machines,hostedcontrolplanes,localclusters,localmachines", "-n", "pivot", "-o", "name")); left != "" {
		t.Errorf("deletion left %s", left)
	}
}
