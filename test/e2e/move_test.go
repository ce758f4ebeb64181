package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMoveOnOneHost moves a Cluster from one slipway to another on this host: its process, its network and its container are handed
// over, its Node notices nothing, and the new owner can do with it what the old one could: MV-05, MV-13.
func TestMoveOnOneHost(t *testing.T) {
	a, b := newInstallation(t), newInstallation(t)
	a.up()
	b.up()
	a.apply(quickstart(t, "moving", 1))
	w := a.untilReady("moving", 1)
	containers := func() []string {
		return docker(t, "ps", "--quiet", "--no-trunc", "--filter", "label=dev.slipway.cluster=default/moving")
	}
	networks := func() []string {
		return docker(t, "network", "ls", "--quiet", "--no-trunc", "--filter", "label=dev.slipway.cluster=default/moving")
	}
	const since = `-o=jsonpath={.items[*].status.conditions[?(@.type=="Ready")].lastTransitionTime}`
	node, network, process, ready := containers(), networks(), a.controlPlaneProcess(t, "default.moving"), w.kubectl("get", "nodes", since)
	if len(node) != 1 || len(network) != 1 {
		t.Fatalf("containers %v, networks %v", node, network)
	}

	to := filepath.Join(b.dataDir, "kubeconfig")
	plan := a.run("move", "--to-kubeconfig", to, "--dry-run")
	for _, step := range []string{
		fmt.Sprintf("host: hand over HostedControlPlane default/moving with its data: process %d keeps running", process),
		"host: hand over 1 network, 1 container, 1 volume of Cluster default/moving: nothing restarts",
	} {
		if !strings.Contains(plan, step) {
			t.Errorf("the plan lacks %q:\n%s", step, plan)
		}
	}
	began := time.Now()
	a.run("move", "--to-kubeconfig", to)
	t.Logf("moved after %s", time.Since(began).Round(100*time.Millisecond))
	w = b.untilReady("moving", 1)
	untilContains(t, long, "Cluster Available", "True", func() string { return b.condition("cluster/moving", "Available") })
	if got := b.controlPlaneProcess(t, "default.moving"); got != process {
		t.Errorf("process %d was %d", got, process)
	}
	a.hasNothingLeft(t)
	out, err := a.try("down", "--delete") // what it made and gave away stays
	if err != nil {
		t.Errorf("down --delete: %v\n%s", err, out)
	}
	if got := containers(); !slices.Equal(got, node) {
		t.Errorf("container %v was %v", got, node)
	}
	if got := networks(); !slices.Equal(got, network) {
		t.Errorf("network %v was %v", got, network)
	}
	if got := w.kubectl("get", "nodes", since); got != ready {
		t.Errorf("the Node is Ready since %s, was since %s", got, ready)
	}

	b.kubectl("scale", "machinepool", "moving-workers", "--replicas", "2")
	b.untilReady("moving", 2)
	b.kubectl("delete", "cluster", "moving", "--timeout", long.String())
	if left := append(containers(), networks()...); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if lives(process) {
		t.Errorf("process %d is still there", process)
	}
}

// controlPlaneProcess is the process of a hosted control plane.
func (in *installation) controlPlaneProcess(t *testing.T, name string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(in.dataDir, "planes", name, "run.json"))
	var run struct{ PID int }
	if err == nil {
		err = json.Unmarshal(data, &run)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run.PID
}

// hasNothingLeft checks that no folder of a cluster is in the data directory.
func (in *installation) hasNothingLeft(t *testing.T) {
	t.Helper()
	for _, folder := range []string{"planes", "balancers"} {
		entries, err := os.ReadDir(filepath.Join(in.dataDir, folder))
		if len(entries) > 0 || err != nil && !os.IsNotExist(err) {
			t.Errorf("%s of the source: %v, %v", folder, entries, err)
		}
	}
}
