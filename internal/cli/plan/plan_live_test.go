package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/plan"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// changesVariable is how many changes are tried; the default is that of make check.
const changesVariable, defaultChanges = "SLIPWAY_PLAN_CHANGES", 20

// patience is how long a busy machine may take to come to rest.
const patience = 3 * time.Minute

// live is a management cluster with the real controllers and simulated machines.
type live struct {
	t   *testing.T
	c   client.Client
	rng *rand.Rand
	// manifest is what was applied last, by kind and name.
	manifest map[string]*unstructured.Unstructured
}

// A plan equals what the controllers then do: for generated changes of a fleet, with the same objects before.
func TestPlanIsWhatHappens(t *testing.T) { // TP-37
	server := apiserver.Start(t, apiserver.Options{})
	startManager(t, server)
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(20261124)
	l := &live{t: t, c: c, rng: rand.New(rand.NewPCG(seed, seed)), manifest: map[string]*unstructured.Unstructured{}}
	objects, err := plan.ReadFiles([]string{"testdata/fleet.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		l.manifest[u.GetKind()+" "+u.GetName()] = u
		l.apply(u)
	}
	before := l.rest("the fleet")
	n := defaultChanges
	if text := os.Getenv(changesVariable); text != "" {
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		what, changed := l.change()
		o, err := simulationOptions(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		copied := plan.Snapshot{Kinds: before.Kinds}
		for _, u := range before.Objects {
			copied.Objects = append(copied.Objects, u.DeepCopy())
		}
		proposal := plan.Change{Apply: changed}
		if err := plan.PrepareObjects(&copied, &proposal, "default"); err != nil {
			t.Fatal(err)
		}
		p, planned, err := plan.Run(t.Context(), o, copied, proposal)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range changed {
			l.apply(u)
		}
		after := l.rest(what)
		instances := instancesOfPools(before.Objects, planned.Objects, after.Objects)
		want, got := canonical(p.Objects, instances), canonical(plan.Difference(before.Objects, after.Objects), instances)
		if diff := gocmp.Diff(want, got); diff != "" || len(p.Refused) > 0 || p.UnderWay > 0 {
			t.Errorf("change %d, %s: %+v, %d under way (-plan +what happened):\n%s", i, what, p.Refused, p.UnderWay, diff)
		}
		t.Logf("change %d, %s: %d lines", i, what, len(want))
		before = after
	}
}

// startManager starts the manager of this build over the server; it ends with the test.
func startManager(t *testing.T, server *apiserver.Server) {
	t.Helper()
	if err := manager.Install(t.Context(), server.Config, rbac.Rights{}); err != nil {
		t.Fatal(err)
	}
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	dir := t.TempDir()
	cmd := exec.Command(binary, "manager", "--kubeconfig", server.Kubeconfig, "--data-dir", filepath.Join(dir, "data"), "--health-addr", "0",
		"--webhook-host", "127.0.0.1", "--webhook-port", port, "--diagnostics-address", "0", "--feature-gates=ClusterTopology=true,RuntimeSDK=true")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the manager:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
}

// apply writes an object as it is in the manifest; until the webhooks answer, again.
func (l *live) apply(u *unstructured.Unstructured) {
	l.t.Helper()
	l.until("apply "+u.GetKind()+" "+u.GetName(), func() error {
		return l.c.Patch(l.t.Context(), u.DeepCopy(), client.Apply, client.ForceOwnership, client.FieldOwner("kubectl")) //nolint:staticcheck // an object of any kind
	})
}

func (l *live) until(what string, f func() error) {
	l.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(300 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	l.t.Fatalf("%s: %v", what, err)
}

// rest waits until the controllers have nothing to do: all is as it was a moment ago, and nothing reports that it is not ready.
func (l *live) rest(what string) plan.Snapshot {
	l.t.Helper()
	var last string
	var s plan.Snapshot
	same := 0
	l.until(what+" comes to rest", func() error {
		var err error
		if s, err = plan.ReadCluster(l.t.Context(), l.c, nil); err != nil {
			return err
		}
		if err := ready(s.Objects); err != nil {
			same = 0
			return err
		}
		text, err := json.Marshal(s.Objects)
		if err != nil {
			return err
		}
		if string(text) != last {
			last, same = string(text), 0
			return fmt.Errorf("objects still change")
		}
		if same++; same < 4 {
			return fmt.Errorf("objects changed a moment ago")
		}
		return nil
	})
	return s
}

// ready returns what is not what it shall be.
func ready(objects []*unstructured.Unstructured) error {
	present := map[types.UID]bool{}
	for _, u := range objects {
		present[u.GetUID()] = true
	}
	for _, u := range objects {
		for _, owner := range u.GetOwnerReferences() {
			if (strings.Contains(owner.APIVersion, ".x-k8s.io/") || strings.Contains(owner.APIVersion, ".slipway.dev/")) && !present[owner.UID] {
				return fmt.Errorf("%s %s is about to be collected: %s %s, which owns it, is gone", u.GetKind(), u.GetName(), owner.Kind, owner.Name)
			}
		}
		switch {
		case u.GetDeletionTimestamp() != nil:
			return fmt.Errorf("%s %s is being deleted", u.GetKind(), u.GetName())
		case u.GetKind() == "MachineDeployment":
			md := &clusterv1.MachineDeployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, md); err != nil {
				return err
			}
			n, s := *md.Spec.Replicas, md.Status
			if s.ObservedGeneration != md.Generation || s.Replicas == nil || *s.Replicas != n || s.UpToDateReplicas == nil || *s.UpToDateReplicas != n ||
				s.AvailableReplicas == nil || *s.AvailableReplicas != n {
				return fmt.Errorf("MachineDeployment %s: %+v", md.Name, s)
			}
		case u.GetKind() == "MachinePool":
			mp := &clusterv1.MachinePool{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, mp); err != nil {
				return err
			}
			n, s := *mp.Spec.Replicas, mp.Status
			if s.ObservedGeneration != mp.Generation || s.Replicas == nil || *s.Replicas != n || s.ReadyReplicas == nil || *s.ReadyReplicas != n ||
				s.UpToDateReplicas == nil || *s.UpToDateReplicas != n || int32(len(s.NodeRefs)) != n {
				return fmt.Errorf("MachinePool %s: %+v", mp.Name, s)
			}
		case u.GetKind() == "Cluster":
			cluster := &clusterv1.Cluster{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster); err != nil {
				return err
			}
			have := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition)
			if cluster.Spec.Topology.IsDefined() && (have == nil || have.Status != "True" || have.ObservedGeneration != cluster.Generation) {
				return fmt.Errorf("Cluster %s: %+v", cluster.Name, have)
			}
			if have := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterAvailableCondition); have == nil || have.Status != "True" {
				return fmt.Errorf("Cluster %s: %+v", cluster.Name, have)
			}
		}
	}
	return nil
}

// instancesOfPools are the Machines of MachinePools, and their infrastructure, by kind and name.
func instancesOfPools(snapshots ...[]*unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	for _, u := range slices.Concat(snapshots...) {
		if _, ok := u.GetLabels()[clusterv1.MachinePoolNameLabel]; ok {
			out[u.GetKind()+" "+u.GetName()] = true
		}
	}
	return out
}

// canonical are the changes in words in which the random parts of new names do not appear. Which instances a provider has for a pool
// is not compared, and neither is the token of a pool, which is another one every ten minutes.
func canonical(changes []plan.ObjectChange, instances map[string]bool) []string {
	changes = slices.DeleteFunc(slices.Clone(changes), func(c plan.ObjectChange) bool {
		return c.Verb != plan.Update && instances[c.Kind+" "+c.Name]
	})
	for i := range changes {
		changes[i].Fields = slices.DeleteFunc(slices.Clone(changes[i].Fields), func(f plan.Field) bool {
			return strings.HasPrefix(f.Path, "spec.providerIDList") || f.Path == "spec.joinConfiguration.discovery.bootstrapToken.token" // goes by the clock
		})
	}
	changes = slices.DeleteFunc(changes, func(c plan.ObjectChange) bool { return c.Verb == plan.Update && len(c.Fields) == 0 })
	var names []string
	for _, c := range changes {
		if c.Verb == plan.Create {
			names = append(names, c.Name, "<new "+c.Kind+">")
		}
	}
	pairs := slices.Collect(slices.Chunk(names, 2))
	slices.SortStableFunc(pairs, func(a, b []string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	r := strings.NewReplacer(slices.Concat(pairs...)...)
	var out []string
	for _, c := range changes {
		name := c.Name
		if c.Generated || c.Verb == plan.Create && c.Owner != "" {
			name = "<new>"
		}
		line := fmt.Sprintf("%s %s %s of %s in %s", c.Verb, c.Kind, r.Replace(name), r.Replace(c.Owner), c.Cluster)
		for _, f := range c.Fields {
			line += fmt.Sprintf("\n  %s: %v -> %s", f.Path, f.From, r.Replace(fmt.Sprint(f.To)))
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// change makes up a change, and returns the objects to apply.
func (l *live) change() (string, []*unstructured.Unstructured) {
	md, managed, class := l.manifest["MachineDeployment plain"], l.manifest["Cluster managed"], l.manifest["ClusterClass simulated"]
	topology := func(path ...string) []string { return append([]string{"spec", "topology"}, path...) }
	workers := func(of string) []any {
		list, _, _ := unstructured.NestedSlice(managed.Object, topology("workers", of)...)
		return list
	}
	classes := func(of string) []any {
		list, _, _ := unstructured.NestedSlice(class.Object, "spec", "workers", of)
		return list
	}
	pool := l.manifest["MachinePool plain"]
	n := l.rng.IntN(1000)
	choices := []struct {
		what string
		of   *unstructured.Unstructured
		do   func()
	}{
		{"replicas of a MachineDeployment", md, func() { set(md, int64(1+n%4), "spec", "replicas") }},
		{"version of a MachineDeployment", md, func() {
			version, _, _ := unstructured.NestedString(md.Object, "spec", "template", "spec", "version")
			set(md, other(version, "v1.36.1", "v1.36.2", "v1.36.3"), "spec", "template", "spec", "version")
		}},
		{"labels of a MachineDeployment's Machines", md, func() { set(md, map[string]any{"n": strconv.Itoa(n)}, "spec", "template", "metadata", "labels") }},
		{"timeouts of a MachineDeployment's Machines", md, func() { set(md, int64(60+n), "spec", "template", "spec", "deletion", "nodeDrainTimeoutSeconds") }},
		{"replicas of a topology", managed, func() {
			list := workers("machineDeployments")
			list[0].(map[string]any)["replicas"] = int64(1 + n%4)
			set(managed, list, topology("workers", "machineDeployments")...)
		}},
		{"replicas of a topology's MachinePool", managed, func() {
			list := workers("machinePools")
			list[0].(map[string]any)["replicas"] = int64(n % 4)
			set(managed, list, topology("workers", "machinePools")...)
		}},
		{"timeouts of a topology's MachinePool", managed, func() {
			list := workers("machinePools")
			list[0].(map[string]any)["deletion"] = map[string]any{"nodeDrainTimeoutSeconds": int64(60 + n)}
			set(managed, list, topology("workers", "machinePools")...)
		}},
		{"replicas of a MachinePool", pool, func() { set(pool, int64(n%4), "spec", "replicas") }},
		{"version of a MachinePool", pool, func() {
			version, _, _ := unstructured.NestedString(pool.Object, "spec", "template", "spec", "version")
			set(pool, other(version, "v1.36.1", "v1.36.2", "v1.36.3"), "spec", "template", "spec", "version")
		}},
		{"labels of a MachinePool's Machines", pool, func() { set(pool, map[string]any{"n": strconv.Itoa(n)}, "spec", "template", "metadata", "labels") }},
		{"a variable", managed, func() {
			set(managed, []any{map[string]any{"name": "startup", "value": strconv.Itoa(50+n) + "ms"}}, topology("variables")...)
		}},
		{"a label of a class", class, func() {
			list := classes("machineDeployments")
			list[0].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"tier": strconv.Itoa(n)}}
			set(class, list, "spec", "workers", "machineDeployments")
		}},
		{"a label of a class's MachinePools", class, func() {
			list := classes("machinePools")
			list[0].(map[string]any)["metadata"] = map[string]any{"labels": map[string]any{"tier": strconv.Itoa(n)}}
			set(class, list, "spec", "workers", "machinePools")
		}},
		{"a patch of a class", class, func() {
			list, _, _ := unstructured.NestedSlice(class.Object, "spec", "patches")
			definition := list[0].(map[string]any)["definitions"].([]any)[0].(map[string]any)
			definition["jsonPatches"] = []any{map[string]any{
				"op": "add", "path": "/spec/template/spec/backend/simulated/startupDelay", "value": strconv.Itoa(50+n) + "ms",
			}}
			set(class, list, "spec", "patches")
		}},
		{"a rebase", managed, func() {
			name, _, _ := unstructured.NestedString(managed.Object, topology("classRef", "name")...)
			set(managed, other(name, "simulated", "other"), topology("classRef", "name")...)
		}},
		{"a version of a topology", managed, func() {
			version, _, _ := unstructured.NestedString(managed.Object, topology("version")...)
			if version == "v1.36.2" {
				set(managed, "v1.36.3", topology("version")...)
			} else {
				set(managed, map[string]any{"step": strconv.Itoa(n)}, topology("controlPlane", "metadata", "annotations")...)
			}
		}},
	}
	choice := choices[l.rng.IntN(len(choices))]
	choice.do()
	return choice.what, []*unstructured.Unstructured{choice.of}
}

// other is the choice after the present one.
func other(now string, choices ...string) string {
	return choices[(slices.Index(choices, now)+1)%len(choices)]
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		panic(err)
	}
}
