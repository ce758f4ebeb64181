package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// While the three nodes of a control plane are replaced by those of another spec, each of them is killed, one after the other, as soon as
// the others are a quorum again. In the end there are three nodes of the new spec; a client lost no acknowledged write, and never were two
// Machines removed at once.
//
// It takes minutes, too long for `make test`: `make test-kubeadm` runs it.
func TestKubeadmRolloutKilled(t *testing.T) { // KC-05, KC-19
	if os.Getenv("SLIPWAY_E2E_KUBEADM") == "" {
		t.Skip("make test-kubeadm runs this test")
	}
	in := newInstallation(t)
	in.up()
	in.lasts("create", "cluster", "tower", "--class", "kubeadm", "--control-planes", "3", "--workers", "1", "--subnet", freeNetwork(t)+"0.0/16",
		"--set", "podSecurity=baseline")
	w := in.untilReady("tower", 4)
	in.healthyControlPlane(t)
	in.checksNodes(t)
	client, removals := w.startClient(t), in.watchRemovals(t)

	old := w.controlPlaneNodes()
	at := slices.Index(strings.Fields(in.get("cluster/tower", "{.spec.topology.variables[*].name}")), "podSecurity")
	in.kubectl("patch", "cluster", "tower", "--type", "json", "-p",
		fmt.Sprintf(`[{"op": "replace", "path": "/spec/topology/variables/%d/value", "value": "restricted"}]`, at))
	untilContains(t, short, "the rollout", "Rolling out", func() string { return in.condition("kubeadmcontrolplane/tower", "RollingOut") })
	var killed []string
	for range 3 {
		next := old[0] // the first as soon as the rollout has begun
		if len(killed) > 0 {
			next = in.nextVictim(t, w, killed)
		}
		t.Logf("node %s is killed; nodes before %v, Machines removed so far %v", next, w.controlPlaneNodes(), removals.names())
		docker(t, "kill", in.container(t, next))
		killed = append(killed, next)
	}
	eventually(t, 3*long, "three nodes of the new spec", func() error {
		now := w.controlPlaneNodes()
		for _, name := range append(old, killed...) {
			if slices.Contains(now, name) {
				return fmt.Errorf("node %s is still there: %v\n%s", name, now, in.picture("tower"))
			}
		}
		if len(now) != 3 || len(w.readyNodes()) != 4 {
			return fmt.Errorf("nodes %v, Ready %v\n%s", now, w.readyNodes(), in.picture("tower"))
		}
		return nil
	})
	in.healthyControlPlane(t)
	for _, m := range strings.Fields(in.get("machines", `{.items[?(@.metadata.labels.cluster\.x-k8s\.io/control-plane=="")].spec.bootstrap.configRef.name}`)) {
		if files := in.get("kubeadmconfig/"+m, "{.spec.files}"); !strings.Contains(files, "enforce: restricted") {
			t.Errorf("KubeadmConfig %s is not of the new spec: %s", m, files)
		}
	}
	client.goesOn(t)
	client.lostNothing(t)
	if most := removals.most(); most > 1 {
		t.Errorf("%d Machines of the control plane were removed at once", most)
	}
	if removed := removals.names(); len(removed) < 3 {
		t.Errorf("Machines that were removed: %v", removed)
	}
	t.Logf("killed %v, Machines removed %v", killed, removals.names())
	in.deletesTower(t)
}

// nextVictim waits until those that are left are a quorum with one to spare, and returns a node of the control plane that is to be
// replaced; any other, where none of those is left.
func (in *installation) nextVictim(t *testing.T, w workload, killed []string) (victim string) {
	t.Helper()
	eventually(t, 3*long, "three healthy nodes", func() error {
		if got := in.condition("kubeadmcontrolplane/tower", "EtcdClusterHealthy"); !strings.HasPrefix(got, "True") {
			return fmt.Errorf("%s\n%s", got, in.picture("tower"))
		}
		ready, nodes := w.readyNodes(), w.controlPlaneNodes()
		if slices.ContainsFunc(nodes, func(name string) bool { return slices.Contains(killed, name) }) {
			return fmt.Errorf("one that was killed is not replaced yet: %v\n%s", nodes, in.picture("tower"))
		}
		nodes = slices.DeleteFunc(nodes, func(name string) bool { return !slices.Contains(ready, name) })
		if len(nodes) < 3 {
			return fmt.Errorf("Ready nodes of the control plane: %v", nodes)
		}
		outdated := strings.Fields(in.get("machines", `{range .items[?(@.metadata.labels.cluster\.x-k8s\.io/control-plane=="")]}`+
			`{.status.nodeRef.name} {.metadata.deletionTimestamp} {.status.conditions[?(@.type=="UpToDate")].status}{"\n"}{end}`))
		for i, word := range outdated {
			if word == "False" && i > 0 && slices.Contains(nodes, outdated[i-1]) {
				victim = outdated[i-1]
				return nil
			}
		}
		victim = nodes[0]
		return nil
	})
	return victim
}

// container is the one of a node.
func (in *installation) container(t *testing.T, node string) string {
	t.Helper()
	found := docker(t, "ps", "-q", "--no-trunc", "--filter", "label=dev.slipway.instance="+in.instance(), "--filter", "name="+node)
	if len(found) != 1 {
		t.Fatalf("containers of node %s: %v", node, found)
	}
	return found[0]
}

// removals are the Machines of the control plane that were deleted.
type removals struct {
	mu   sync.Mutex
	all  []string
	max  int
	gone map[string]bool
}

// watchRemovals watches Machines of the control plane until the test ends.
func (in *installation) watchRemovals(t *testing.T) *removals {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(in.dataDir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	machines := dynamic.NewForConfigOrDie(config).Resource(clusterv1.GroupVersion.WithResource("machines")).Namespace("default")
	r := &removals{gone: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			list, err := machines.List(ctx, metav1.ListOptions{LabelSelector: clusterv1.MachineControlPlaneLabel})
			if err == nil {
				var leaving []string
				for _, m := range list.Items {
					if m.GetDeletionTimestamp() != nil {
						leaving = append(leaving, m.GetName())
					}
				}
				r.note(leaving)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *removals) note(leaving []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.max = max(r.max, len(leaving))
	for _, name := range leaving {
		if !r.gone[name] {
			r.gone[name] = true
			r.all = append(r.all, name)
		}
	}
}

func (r *removals) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func (r *removals) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.max
}
