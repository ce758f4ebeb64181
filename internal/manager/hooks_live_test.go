package manager_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// guard is an extension that blocks every question once, and then lets it go. It answers with literal bytes.
type guard struct {
	*hooktest.Extension

	mu    sync.Mutex
	asked map[string]int
	// released are the questions that it let go, in order.
	released []string
	// kill, where set, ends the manager when this question was let go, before it can write anything.
	kill    string
	killing func()
}

func startGuard(t *testing.T) *guard {
	g := &guard{Extension: hooktest.Start(t, hooktest.Options{}), asked: map[string]int{}}
	for _, name := range []string{
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade", "AfterControlPlaneUpgrade",
		"BeforeWorkersUpgrade", "AfterWorkersUpgrade", "AfterClusterUpgrade", "BeforeClusterDelete",
	} {
		g.Handle(hooktest.Handler(strings.ToLower(name), name), g.answer(name))
	}
	return g
}

func (g *guard) answer(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		bodies := g.Bodies(r.URL.Path)
		var request struct {
			From string `json:"fromKubernetesVersion"`
			To   string `json:"toKubernetesVersion"`
			At   string `json:"kubernetesVersion"`
		}
		if err := json.Unmarshal(bodies[len(bodies)-1], &request); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		question := strings.Join(slices.DeleteFunc([]string{name, request.From, request.To, request.At}, func(s string) bool { return s == "" }), " ")
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked[question]++
		if g.asked[question] == 1 && name != "AfterControlPlaneInitialized" {
			_, _ = io.WriteString(w, `{"status":"Success","message":"first `+question+`","retryAfterSeconds":1}`)
			return
		}
		if g.kill != "" && strings.HasPrefix(question, g.kill) {
			g.kill = ""
			g.killing() // while it waits for the answer
		}
		g.released = append(g.released, question)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	}
}

func (g *guard) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.released)
}

// machinesEver counts the Machines that there were, and looks for new ones until the test ends: a watch would not outlive the managers,
// each of which installs the CRDs.
func machinesEver(t *testing.T, c client.Client) func() int {
	t.Helper()
	var mu sync.Mutex
	names := map[string]bool{}
	look := func() {
		machines := &clusterv1.MachineList{}
		if err := c.List(t.Context(), machines, client.InNamespace("default")); err != nil {
			return // the next look finds them, too
		}
		mu.Lock()
		defer mu.Unlock()
		for _, m := range machines.Items {
			names[m.Name] = true
		}
	}
	go func() {
		for t.Context().Err() == nil {
			look()
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return func() int {
		look()
		mu.Lock()
		defer mu.Unlock()
		return len(names)
	}
}

// All nine hooks block and let go in the life of a Cluster with simulated machines, which is upgraded over three minor versions, while
// the manager is killed twice. It is killed once more while a template is replaced. Each Machine is replaced once for each of both.
func TestHooksOverAPIServer(t *testing.T) { // LH-01 to LH-09, LH-11, LH-15, LH-17, LH-18, TP-03, TP-08, TP-22, TP-25, TP-27, CL-13
	server := apiserver.Start(t, apiserver.Options{})
	const gates = "--feature-gates=ClusterTopology=true,RuntimeSDK=true"
	p := startProcess(t, server, gates)
	c := newClient(t, server)
	ever := machinesEver(t, c)
	g := startGuard(t)
	g.killing = func() { _ = p.cmd.Process.Kill() }
	config := g.ExtensionConfig("guard")
	config.UID, config.Generation = "", 0
	eventually(t, "the extension is registered", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), config)) })

	objects, err := readObjects("default", filepath.Join("testdata", "class.yaml"))
	must(t, err)
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterClass":
			must(t, unstructured.SetNestedField(o.Object, []any{"v1.33.0", "v1.34.1", "v1.34.2", "v1.35.0", "v1.36.0"}, "spec", "kubernetesVersions"))
		case "Cluster":
			must(t, unstructured.SetNestedField(o.Object, "v1.33.0", "spec", "topology", "version"))
		}
		eventually(t, "create "+o.GetKind(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
	reconcileClass(t, c)
	untilReconciled(t, c, "managed")
	// It holds nothing back: an upgrade that is asked for at once may begin before it is called.
	eventually(t, "AfterControlPlaneInitialized is called", func() error {
		if released := g.list(); !slices.Contains(released, "AfterControlPlaneInitialized") {
			return fmt.Errorf("released %v", released)
		}
		return nil
	})

	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: "default", Name: "managed"}
	messages := map[string]bool{}
	for _, kill := range []string{"BeforeControlPlaneUpgrade v1.34.2", "AfterWorkersUpgrade"} {
		g.mu.Lock()
		g.kill = kill
		g.mu.Unlock()
		eventually(t, "the upgrade is asked for", func() error {
			must(t, c.Get(t.Context(), key, cluster))
			cluster.Spec.Topology.Version = "v1.36.0"
			return c.Update(t.Context(), cluster)
		})
		eventually(t, "the manager is killed at "+kill, func() error {
			must(t, c.Get(t.Context(), key, cluster))
			if have := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition); have != nil {
				messages[have.Message] = true
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.kill != "" {
				return fmt.Errorf("it was not asked; released %v", g.released)
			}
			return nil
		})
		_ = p.cmd.Wait()
		p = startProcess(t, server, gates)
	}
	eventually(t, "the Cluster is upgraded", func() error {
		must(t, c.Get(t.Context(), key, cluster))
		pending, has := cluster.Annotations["runtime.cluster.x-k8s.io/pending-hooks"]
		_, step := cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
		if has || step || !slices.Contains(g.list(), "AfterClusterUpgrade v1.36.0") {
			return fmt.Errorf("pending %q: %+v", pending, cluster.Status.Conditions)
		}
		return nil
	})
	untilReconciled(t, c, "managed")
	deployment(t, c, "the workers have the version", func(md *clusterv1.MachineDeployment) bool {
		return md.Spec.Template.Spec.Version == "v1.36.0" && len(md.Status.Versions) == 1 && md.Status.Versions[0].Version == "v1.36.0"
	})
	if n := ever(); n != 6 {
		t.Errorf("%d Machines, want 3 and one in the place of each", n)
	}
	eventually(t, "a variable changes", func() error {
		must(t, c.Get(t.Context(), key, cluster))
		cluster.Spec.Topology.Variables[0].Value.Raw = []byte(`{"delay":"120ms"}`)
		return c.Update(t.Context(), cluster)
	})
	eventually(t, "the next template is created", func() error {
		if n := kindsOf(topologyNames(t, c))["LocalMachineTemplate"]; n != 2 {
			return fmt.Errorf("%d templates of machines", n)
		}
		return nil
	})
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p = startProcess(t, server, gates)
	eventually(t, "the Machines are replaced", func() error {
		machines := &clusterv1.MachineList{}
		must(t, c.List(t.Context(), machines, client.InNamespace("default")))
		if n := ever(); len(machines.Items) != 3 || n < 8 {
			return fmt.Errorf("%d Machines, %d ever", len(machines.Items), n)
		}
		return nil
	})
	untilReconciled(t, c, "managed")
	if n := ever(); n != 8 {
		t.Errorf("%d Machines, want 8: two more, in the place of those of the MachineDeployment", n)
	}
	eventually(t, "the old template is deleted", func() error {
		if n := kindsOf(topologyNames(t, c))["LocalMachineTemplate"]; n != 1 {
			return fmt.Errorf("%d templates of machines", n)
		}
		return nil
	})
	must(t, c.Delete(t.Context(), cluster))
	eventually(t, "the Cluster is deleted", func() error {
		if err := c.Get(t.Context(), key, cluster); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%v: %+v", err, cluster.Status.Conditions)
		}
		return nil
	})
	want := []string{
		"BeforeClusterCreate", "AfterControlPlaneInitialized", "BeforeClusterUpgrade v1.33.0 v1.36.0",
		"BeforeControlPlaneUpgrade v1.33.0 v1.34.2", "AfterControlPlaneUpgrade v1.34.2",
		"BeforeControlPlaneUpgrade v1.34.2 v1.35.0", "AfterControlPlaneUpgrade v1.35.0",
		"BeforeControlPlaneUpgrade v1.35.0 v1.36.0", "AfterControlPlaneUpgrade v1.36.0",
		"BeforeWorkersUpgrade v1.33.0 v1.36.0", "AfterWorkersUpgrade v1.36.0", "AfterClusterUpgrade v1.36.0", "BeforeClusterDelete",
	}
	if diff := cmp.Diff(want, slices.Compact(g.list())); diff != "" {
		t.Errorf("hooks that let go (-want +got):\n%s", diff)
	}
	if len(messages) < 3 {
		t.Errorf("the condition does not say what is waited for: %v", messages)
	}
}
