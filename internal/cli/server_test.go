package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	planev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// user runs verbs against an API server with all CRDs and without controllers.
type user struct {
	kubeconfig string
	client     client.Client
}

func startUser(t *testing.T) user {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return user{kubeconfig: server.Kubeconfig, client: server.Client(t, scheme)}
}

type result struct {
	code     int
	out, err string
}

func (u user) run(ctx context.Context, args ...string) result {
	var out, stderr bytes.Buffer
	e := term.Env{In: strings.NewReader(""), Out: &out, Err: &stderr, Getenv: func(string) string { return "" }, Now: time.Now}
	if args[0] != "__complete" { // its last argument is the one to complete
		args = append(args, "--kubeconfig", u.kubeconfig)
	}
	code := cli.Run(ctx, args, e)
	return result{code, out.String(), stderr.String()}
}

func (r result) wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("%q is not in the output:\n%s%s", text, r.out, r.err)
		}
	}
}

// The verbs, in the order in which a user comes across them. CX-08, CX-09.
func TestVerbsAgainstAnAPIServer(t *testing.T) {
	u := startUser(t)
	t.Run("a wrong name lists what there is", func(t *testing.T) {
		u.run(t.Context(), "describe", "cluster", "demo").wants(t, cli.ExitNotFound, "nor any other: `slipway create cluster demo`")
	})
	t.Run("create in a namespace that does not exist", func(t *testing.T) {
		u.run(t.Context(), "create", "cluster", "demo", "-n", "team").wants(t, cli.ExitNotFound, "slipway kubectl create namespace team")
	})
	t.Run("create without waiting", func(t *testing.T) {
		u.run(t.Context(), "create", "cluster", "first", "--wait-timeout", "0").wants(t, cli.ExitOK, `Cluster "first" applied`)
		u.run(t.Context(), "create", "cluster", "first").wants(t, cli.ExitInvalid, "exists already")
	})
	t.Run("a dry run writes nothing and takes another network", func(t *testing.T) {
		r := u.run(t.Context(), "create", "cluster", "second", "--dry-run", "-o", "json")
		r.wants(t, cli.ExitOK, `"kind": "Cluster"`)
		var first clusterv1.Cluster
		if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "first"}, &first); err != nil {
			t.Fatal(err)
		}
		if taken := template.RequestedSubnets(first); len(taken) != 1 || strings.Contains(r.out, taken[0].String()) || strings.Contains(r.out, "ClusterClass\"") {
			t.Errorf("the network %v of the first cluster is used again, or the class that is there is made again:\n%s", taken, r.out)
		}
		u.run(t.Context(), "describe", "cluster", "second").wants(t, cli.ExitNotFound, "there are: first")
	})
	t.Run("create and wait", u.createAndWait)
	t.Run("a wait that is too short", func(t *testing.T) {
		u.run(t.Context(), "create", "cluster", "late", "--wait-timeout", "1s").wants(t, cli.ExitError,
			"unfinished steps: topology; infrastructure", "The creation of cluster \"late\" continues", "slipway describe cluster late --kubeconfig")
	})
	t.Run("names are completed", func(t *testing.T) {
		u.run(t.Context(), "__complete", "describe", "cluster", "--kubeconfig="+u.kubeconfig, "").wants(t, cli.ExitOK, "demo\nfirst\nlate\n:4")
	})
	t.Run("describe", u.describe)
	t.Run("describe and watch", u.watch)
	t.Run("get clusters", u.getClusters)
	t.Run("rollout", u.rollout)
	t.Run("get kubeconfig", u.getKubeconfig)
	t.Run("classes and versions", u.classes)
	t.Run("delete", u.delete)
	t.Run("the examples are valid", u.examples)
}

// createAndWait plays the controllers while the verb waits.
func (u user) createAndWait(t *testing.T) {
	done := make(chan result, 1)
	go func() {
		done <- u.run(t.Context(), "create", "cluster", "demo", "--workers", "2", "--set", "podSecurity=baseline")
	}()
	key := client.ObjectKey{Namespace: "default", Name: "demo"}
	cluster := &clusterv1.Cluster{}
	eventually(t, func() error { return u.client.Get(t.Context(), key, cluster) })
	pool := u.topology(t, cluster)
	yes, two := true, int32(2)
	pool.Status.ObservedGeneration = pool.Generation
	pool.Status.Replicas, pool.Status.ReadyReplicas, pool.Status.AvailableReplicas, pool.Status.UpToDateReplicas = &two, &two, &two, &two
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: &yes, ControlPlaneInitialized: &yes}
	for _, kind := range []string{"Available", "ControlPlaneAvailable", clusterv1.ClusterTopologyReconciledCondition} {
		cluster.Status.Conditions = append(cluster.Status.Conditions,
			metav1.Condition{Type: kind, Status: "True", Reason: "Available", ObservedGeneration: cluster.Generation, LastTransitionTime: metav1.Now()})
	}
	for _, o := range []client.Object{pool, cluster} {
		if err := u.client.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	(<-done).wants(t, cli.ExitOK, "topology: done", "MachinePool demo-workers: done, 2 of 2 nodes ready", `Cluster "demo" is ready after`,
		"slipway kubectl --kubeconfig demo.kubeconfig get nodes", "slipway delete cluster demo --kubeconfig "+u.kubeconfig)
}

// topology makes what the topology controller would: a control plane, infrastructure, and (here) a pool for the workers.
func (u user) topology(t *testing.T, cluster *clusterv1.Cluster) *clusterv1.MachinePool {
	t.Helper()
	two := int32(2)
	infra := &localv1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"},
		Spec: localv1.LocalClusterSpec{Backend: localv1.LocalClusterBackend{Simulated: &localv1.SimulatedCluster{}}}}
	plane := &planev1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"},
		Spec: planev1.HostedControlPlaneSpec{Version: cluster.Spec.Topology.Version}}
	pool := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo-workers", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}},
		Spec: clusterv1.MachinePoolSpec{ClusterName: "demo", Replicas: &two}}
	pool.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "demo", Version: cluster.Spec.Topology.Version,
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: "demo-workers"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalMachinePool", Name: "demo-workers"},
	}
	for _, o := range []client.Object{infra, plane, pool} {
		if err := u.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: planev1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "demo"}
	if err := u.client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return pool
}

// classes are listed with what uses them; one that is there is not made again. An upgrade is shown, and asked about.
func (u user) classes(t *testing.T) {
	u.run(t.Context(), "create", "cluster", "many", "--class", "simulated", "--kubernetes-version", "1.35.4", "--wait-timeout", "0").wants(t, cli.ExitOK, "Kubernetes v1.35.4")
	u.run(t.Context(), "get", "classes").wants(t, cli.ExitOK, "(none yet)  kubeadm      0", "default     local        3", "default     simulated    1", "podSecurity")
	upgrade := func(more ...string) result {
		return u.run(t.Context(), append([]string{"upgrade", "cluster", "many"}, more...)...)
	}
	upgrade("--to", "v1.40.0", "--dry-run").wants(t, cli.ExitInvalid, "upgrade one minor version at a time")
	upgrade("--to", "1.36.0", "--dry-run").wants(t, cli.ExitOK, "1. control plane to v1.36.0")
	upgrade("--to", "1.36.0").wants(t, cli.ExitInvalid, "1. control plane to v1.36.0", "Upgrade? [y/N]", "nothing was changed")
	upgrade().wants(t, cli.ExitInvalid, "--to VERSION is missing")
	upgrade("--to", "1.36.0", "--yes", "--wait-timeout", "0").wants(t, cli.ExitOK, "1. control plane to v1.36.0")
	cluster := &clusterv1.Cluster{}
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "many"}, cluster); err != nil || cluster.Spec.Topology.Version != "v1.36.0" {
		t.Errorf("the version is written: %v %s", err, cluster.Spec.Topology.Version)
	}
	if err := u.client.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// CX-09
func (u user) describe(t *testing.T) {
	r := u.run(t.Context(), "describe", "cluster", "demo", "--echo", "--show-conditions", "cluster")
	r.wants(t, cli.ExitOK, "Cluster/demo", "|-ClusterInfrastructure - LocalCluster/demo", "`-Workers", "MachinePool/demo-workers",
		"BootstrapConfig - KubeadmConfig/demo-workers", "Available: True", "| |-Available")
	if strings.Contains(r.out, "├") || strings.Contains(r.out, "\x1b") {
		t.Errorf("Unicode or colours in a pipe:\n%s", r.out)
	}
	u.run(t.Context(), "describe", "cluster", "demo", "--show-conditions", "machnes,Cluster").wants(t, cli.ExitOK, "no object machnes, as requested by --show-conditions; it has Cluster, ", "KubeadmConfig")
	u.run(t.Context(), "describe", "cluster", "demo", "--show-conditions", "cl/demo,localclusters").wants(t, cli.ExitOK, "| |-Available")
	u.run(t.Context(), "describe", "cluster", "demo", "--color").wants(t, cli.ExitOK, "\x1b[32mAvailable: True")
	r = u.run(t.Context(), "describe", "cluster", "demo", "-o", "json")
	var root struct {
		Kind     string
		Children []struct{ Role, Kind string }
	}
	if err := json.Unmarshal([]byte(r.out), &root); err != nil || root.Kind != "Cluster" || len(root.Children) != 3 {
		t.Errorf("the tree as data: %+v, %v", root, err)
	}
}

// lines are what a verb prints while it runs.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// next is the next text with the content, of those that come.
func (l lines) next(t *testing.T, content string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case text := <-l:
			if strings.Contains(text, content) {
				return
			}
		case <-limit:
			t.Fatalf("%q does not come", content)
		}
	}
}

// watch shows the tree again when something in it changes, and ends with the cluster. CX-09
func (u user) watch(t *testing.T) {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: "seen"}}}
	if err := u.client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	out, code := make(lines, 100), make(chan int, 1)
	go func() {
		e := term.Env{In: strings.NewReader(""), Out: out, Err: io.Discard, Getenv: func(string) string { return "" }, Now: time.Now}
		code <- cli.Run(t.Context(), []string{"describe", "cluster", "seen", "--watch", "--kubeconfig", u.kubeconfig}, e)
	}()
	out.next(t, "Cluster/seen")
	c.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "False", Reason: "Seen", Message: "a change was seen", LastTransitionTime: metav1.Now()}}
	if err := u.client.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	out.next(t, "a change was seen")
	if err := u.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	out.next(t, "Cluster default/seen is gone.")
	if got := <-code; got != cli.ExitOK {
		t.Errorf("exit code %d", got)
	}
	u.run(t.Context(), "describe", "cluster", "demo", "--watch", "-o", "json").wants(t, cli.ExitInvalid, "cannot be used with --output")
}

func (u user) getClusters(t *testing.T) {
	u.run(t.Context(), "get", "clusters").wants(t, cli.ExitOK, "NAME   CLASS", "demo   local", "first  local", "STATUS")
	u.run(t.Context(), "get", "clusters", "-o", "wide").wants(t, cli.ExitOK, "AVAILABLE", "True", "Unknown")
	u.run(t.Context(), "get", "clusters", "-A").wants(t, cli.ExitOK, "NAMESPACE  NAME", "default    demo")
	u.run(t.Context(), "get", "clusters", "-n", "kube-system").wants(t, cli.ExitOK, "There are no clusters in namespace kube-system; -A lists")
	u.run(t.Context(), "get", "clusters", "-n", "kube-system", "-o", "json").wants(t, cli.ExitOK, "[]")
	u.run(t.Context(), "get", "clusters", "-n", "nowhere").wants(t, cli.ExitNotFound, `there is no namespace "nowhere"`)
	r := u.run(t.Context(), "get", "clusters", "-o", "json")
	var rows []struct{ Name, Available string }
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) != 3 || rows[0].Name != "demo" || rows[0].Available != "True" {
		t.Errorf("as data: %+v, %v", rows, err)
	}
}

// rollout plays the controller of a MachineDeployment while the verb follows it. CX-17
func (u user) rollout(t *testing.T) {
	one := int32(1)
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "md"}, Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: "demo", Replicas: &one, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	d.Spec.Template.Labels = map[string]string{"a": "b"}
	d.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName:       "demo",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "md"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "md"},
	}
	if err := u.client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	u.run(t.Context(), "rollout", "pause", "md/md").wants(t, cli.ExitOK, "machinedeployment/md paused")
	u.run(t.Context(), "alpha", "rollout", "restart", "md/md").wants(t, cli.ExitInvalid, "resume it first")
	u.run(t.Context(), "rollout", "status", "md/md").wants(t, cli.ExitInvalid, "is paused by spec.paused")
	u.run(t.Context(), "alpha", "rollout", "resume", "machinedeployment", "md").wants(t, cli.ExitOK, "machinedeployment/md resumed")
	u.run(t.Context(), "rollout", "restart", "md/md").wants(t, cli.ExitOK, "machinedeployment/md restarted")
	if err := u.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	d.Status.Conditions = []metav1.Condition{{Type: clusterv1.RollingOutCondition, Status: "True", Reason: clusterv1.RollingOutReason, LastTransitionTime: metav1.Now(),
		Message: "Rolling out 1 not up-to-date replicas\n* LocalMachineTemplate md does not exist"}}
	if err := u.client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	u.run(t.Context(), "rollout", "status", "md/md", "--watch=false").wants(t, cli.ExitOK, "to be observed...", "LocalMachineTemplate md does not exist")
	u.run(t.Context(), "rollout", "status", "md/md", "--timeout", "100ms").wants(t, cli.ExitError, "the wait timed out")
	u.run(t.Context(), "rollout", "status", "md/md", "-o", "json").wants(t, cli.ExitOK, `"observed": false`)
	done := make(chan result, 1)
	go func() {
		done <- u.run(t.Context(), "rollout", "status", "machinedeployments.cluster.x-k8s.io/md", "--timeout", "1m")
	}()
	if err := u.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "md-new", Labels: map[string]string{"a": "b", clusterv1.MachineDeploymentNameLabel: "md"}},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "demo", Replicas: &one, Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
	if err := u.client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set.Status.Replicas = &one
	if err := u.client.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	d.Status.ObservedGeneration = d.Generation
	d.Status.Replicas, d.Status.UpToDateReplicas, d.Status.AvailableReplicas = &one, &one, &one
	if err := u.client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	(<-done).wants(t, cli.ExitOK, "machinedeployment \"md\" successfully rolled out")
	if err := u.client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// CX-08
func (u user) getKubeconfig(t *testing.T) {
	u.run(t.Context(), "get", "kubeconfig", "demo").wants(t, cli.ExitNotFound, "`slipway describe cluster demo -n default --kubeconfig ", "` shows how far it is")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo-kubeconfig"},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte("apiVersion: v1\nkind: Config\n")}}
	if err := u.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	r := u.run(t.Context(), "get", "kubeconfig", "demo", "-n", "default")
	if r.code != cli.ExitOK || r.out != "apiVersion: v1\nkind: Config\n" || r.err != "" {
		t.Errorf("got %+v, want the kubeconfig and nothing else", r)
	}
	u.run(t.Context(), "get", "kubeconfig", "demo", "--merge").wants(t, cli.ExitInvalid, "has no current context")
	unreachable := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first-kubeconfig"},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
			"contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {"token": "t"}}],
			"clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}]}`)}}
	if err := u.client.Create(t.Context(), unreachable); err != nil {
		t.Fatal(err)
	}
	u.run(t.Context(), "get", "kubeconfig", "first", "--merge").wants(t, cli.ExitUnreachable, "no credentials for ", "connection refused; --admin merges the administrator's")
}

// delete plays the controller that holds the Cluster back until its parts are gone.
func (u user) delete(t *testing.T) {
	for _, name := range []string{"demo", "late"} {
		u.hold(t, name)
	}
	u.run(t.Context(), "delete", "cluster", "late", "--wait-timeout", "1s").wants(t, cli.ExitError,
		"unfinished steps:", "The deletion of cluster \"late\" continues")
	done := make(chan result, 1)
	go func() { done <- u.run(t.Context(), "delete", "cluster", "demo") }()
	eventually(t, func() error {
		cluster := &clusterv1.Cluster{}
		if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "demo"}, cluster); err != nil {
			return err
		}
		if cluster.DeletionTimestamp == nil {
			return errors.New("nobody has asked for the deletion")
		}
		cluster.Finalizers = nil
		return u.client.Update(t.Context(), cluster)
	})
	(<-done).wants(t, cli.ExitOK, "is gone after")
	u.run(t.Context(), "delete", "cluster", "demo").wants(t, cli.ExitNotFound, "there are: first, late")
	u.run(t.Context(), "delete", "cluster", "--all", "first").wants(t, cli.ExitInvalid, "leave out first, or --all")
	u.run(t.Context(), "delete", "cluster", "first", "nosuch").wants(t, cli.ExitNotFound, "there are: first, late")
	u.run(t.Context(), "delete", "cluster", "--all").wants(t, cli.ExitInvalid, "in namespace default: first, late", "Delete? [y/N]", "nothing was changed")
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "first"}, &clusterv1.Cluster{}); err != nil {
		t.Errorf("deleted without a yes: %v", err)
	}
	u.run(t.Context(), "delete", "cluster", "late", "first", "--wait-timeout", "0").wants(t, cli.ExitOK, `Cluster "first" is being deleted.`, `Cluster "late" is being deleted.`)
	u.run(t.Context(), "delete", "cluster", "--all", "--yes", "--wait-timeout", "0").wants(t, cli.ExitOK, `Cluster "late" is being deleted.`)
	for _, name := range []string{"first", "late"} {
		cluster := &clusterv1.Cluster{}
		if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, cluster); client.IgnoreNotFound(err) != nil || err == nil && cluster.DeletionTimestamp == nil {
			t.Errorf("%s is not deleted: %v", name, err)
		}
	}
	u.run(t.Context(), "delete", "cluster", "--all", "-n", "kube-public").wants(t, cli.ExitOK, "There is no cluster in namespace kube-public")
}

// hold puts a finalizer on a Cluster.
func (u user) hold(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Finalizers = []string{"test.slipway.dev/hold"}
	if err := u.client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

// examples are accepted by the API server with strict validation, as kubectl asks for it.
func (u user) examples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			o := &unstructured.Unstructured{}
			if err := d.Decode(o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o.SetNamespace("default")
			err := u.client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
			if apierrors.IsAlreadyExists(err) {
				o.SetName("another") // a test before this one has made the class, and what clusters share
				err = u.client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict"))
			}
			if err != nil {
				t.Errorf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		if pause.Sleep(t.Context(), 50*time.Millisecond) != nil {
			t.Fatal(t.Context().Err())
		}
	}
}
