package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestMoveWithData moves a Cluster with its data, through a folder that both management clusters have, as to another host: the control
// plane is restored at the target, its node is created again, and what its API acknowledged until it was stopped is all there: MV-05, MV-13.
func TestMoveWithData(t *testing.T) {
	folder := t.TempDir()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\nsnapshots:\n  folders:\n  - path: "+folder+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := newInstallation(t), newInstallation(t)
	for _, in := range []*installation{a, b} {
		in.run("up", "--detach", "--listen", in.listen, "--config", config)
	}
	a.apply(quickstart(t, "going", 1))
	w := a.untilReady("going", 1)
	untilContains(t, long, "Cluster Available", "True", func() string { return a.condition("cluster/going", "Available") })
	to := filepath.Join(b.dataDir, "kubeconfig")
	if out, err := a.try("move", "--to-kubeconfig", to, "--with-data"); err == nil || !strings.Contains(out, "needs an EtcdSnapshotPolicy for Cluster going") {
		t.Fatalf("without a policy: %v\n%s", err, out)
	}
	if paused := a.get("cluster/going", "{.spec.paused}"); paused != "" {
		t.Fatalf("the Cluster was paused: %s", paused)
	}
	a.apply("apiVersion: controlplane.slipway.dev/v1alpha1\nkind: EtcdSnapshotPolicy\nmetadata:\n  name: both\nspec:\n  clusterName: going\n  schedule: \"@monthly\"\n  destination:\n    folder:\n      path: " + folder + "\n")
	untilContains(t, short, "the store", "True", func() string { return a.condition("etcdsnapshotpolicy/both", "StoreAvailable") })
	plan := a.run("move", "--to-kubeconfig", to, "--with-data", "--dry-run")
	for _, step := range []string{
		"source: quiesce HostedControlPlane default/going", "source: take the last snapshot of HostedControlPlane default/going",
		"target: restore the snapshot and start HostedControlPlane default/going", "with what it has on the host", "its node is created again",
	} {
		if !strings.Contains(plan, step) {
			t.Errorf("the plan lacks %q:\n%s", step, plan)
		}
	}

	node := a.containers(t)
	taken := w.writes(t)
	a.killedWhileQuiesced("move", "--to-kubeconfig", to, "--with-data")
	a.run("move", "--to-kubeconfig", to, "--with-data", "--rollback")
	untilContains(t, long, "Cluster Available", "True", func() string { return a.condition("cluster/going", "Available") })
	w.hasAll(t, "taken back", taken())
	b.hasNothingLeft(t)
	if again := a.containers(t); !slices.Equal(again, node) {
		t.Errorf("taken back, containers %v were %v", again, node)
	}

	acknowledged := w.writes(t)
	a.run("move", "--to-kubeconfig", to, "--with-data")
	w = b.untilReady("going", 1)
	untilContains(t, long, "Cluster Available", "True", func() string { return b.condition("cluster/going", "Available") })
	a.hasNothingLeft(t)
	if left := a.containers(t); len(left) > 0 {
		t.Errorf("containers of the source: %v", left)
	}
	if again := b.containers(t); len(again) != 1 || slices.Equal(again, node) {
		t.Errorf("containers %v, and %v before", again, node)
	}
	if nodes := strings.Fields(w.kubectl("get", "nodes", "-o", "name")); len(nodes) != 1 {
		t.Errorf("Nodes %v", nodes)
	}
	w.hasAll(t, "moved", acknowledged())
	b.kubectl("delete", "cluster", "going", "--timeout", long.String())
	b.hasNothingLeft(t)
}

// killedWhileQuiesced runs a command and kills it when the control plane of the cluster is kept from its work.
func (in *installation) killedWhileQuiesced(args ...string) {
	in.t.Helper()
	ctx, kill := context.WithCancel(in.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = in.within(ctx, args...) // it is killed
	}()
	untilContains(in.t, long, "a control plane that is quiesced", "/", func() string { return in.get("hostedcontrolplane/going", "{.status.quiesced}") })
	kill()
	<-ended
}

// hasAll checks that the workload cluster has what its API acknowledged.
func (w workload) hasAll(t *testing.T, when string, names []string) {
	t.Helper()
	t.Logf("%s: %d writes were acknowledged", when, len(names))
	have, began := "", time.Now()
	eventually(t, short, when+": its API answers", func() (err error) { // the conditions may be from before it was quiesced
		have, err = w.try("get", "configmaps", "-o", "name", "-l", "written=while-moving")
		return err
	})
	t.Logf("%s: its API answers after %s", when, time.Since(began).Round(time.Millisecond))
	have += "\n"
	for _, name := range names {
		if !strings.Contains(have, "configmap/"+name+"\n") {
			t.Errorf("%s: ConfigMap %s was acknowledged, and is lost", when, name)
		}
	}
	if len(names) == 0 {
		t.Errorf("%s: nothing was written", when)
	}
}

// writes creates ConfigMaps in a workload cluster, one after the other, until the function that it returns is called; that returns those
// which the API server acknowledged.
func (w workload) writes(t *testing.T) func() []string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	ctx, stop := context.WithCancel(t.Context())
	done, began := make(chan []string), time.Now().UnixNano()
	go func() {
		var names []string
		for n, failed := 0, false; ctx.Err() == nil && !failed; n++ {
			name := fmt.Sprintf("written-%d-%d", began, n)
			_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"written": "while-moving"}}}, metav1.CreateOptions{})
			if failed = err != nil; !failed {
				names = append(names, name)
			}
		}
		done <- names
	}()
	return func() []string {
		stop()
		return <-done
	}
}
