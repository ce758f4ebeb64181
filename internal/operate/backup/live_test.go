package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/operate/backup"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

var server *apiserver.Server // set once, by TestMain

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, apiserver.Options{}, func(s *apiserver.Server) { server = s }))
}

func connect(t *testing.T) client.WithWatch {
	t.Helper()
	kinds := []string{"Cluster", "ClusterClass", "Machine", "LocalCluster"}
	if err := server.Install(t.Context(), apiserver.Options{Objects: append(apiserver.CRDs(t, kinds...), provider.InventoryCRD())}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), localv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(server.Config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fill creates two Clusters in two namespaces, one of them paused by a person, with what belongs to them.
func fill(t *testing.T, c client.Client) {
	t.Helper()
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name}})
		meta := metav1.ObjectMeta{Namespace: "of-" + name, Name: name}
		cluster := &clusterv1.Cluster{ObjectMeta: meta}
		cluster.Finalizers = []string{clusterv1.ClusterFinalizer}
		cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: name}
		if name == "b" {
			cluster.Spec.Paused = new(true)
		}
		create(cluster)
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: cluster.UID}}
		local := &localv1.LocalCluster{ObjectMeta: meta}
		local.Spec.Backend.Container = &localv1.ContainerCluster{}
		create(local)
		meta.Name += "-kubeconfig"
		create(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": []byte("the key of " + name)}})
	}
}

// held is what a management cluster has; the owners of all objects have to be there.
func held(t *testing.T, c client.Client) []string {
	t.Helper()
	objects, err := move.Snapshot(t.Context(), c, graph.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range objects {
		text := graph.IDOf(o).String()
		if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
			text += " paused"
		}
		for key := range o.GetAnnotations() {
			text += " " + key
		}
		for _, ref := range o.GetOwnerReferences() {
			if !slices.ContainsFunc(objects, func(p *unstructured.Unstructured) bool { return p.GetUID() == ref.UID }) {
				t.Errorf("the owner of %s is not there", text)
			}
			text += " of " + ref.Name
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// lose deletes everything, as a disaster does.
func lose(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := move.Snapshot(t.Context(), c, graph.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := c.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	if left := held(t, c); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
}

var errKilled = errors.New("killed")

// killedAt fails every call from a write on.
func killedAt(c client.WithWatch, n int) client.Client {
	var writes atomic.Int64
	write := func(do func() error) error {
		if writes.Add(1) > int64(n) {
			return errKilled
		}
		return do()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, o, p, opts...) })
		},
	})
}

// MV-12: everything is lost, and the backup has it; a restore that is killed at any write is completed by the same command.
func TestBackupAndRestore(t *testing.T) {
	c := connect(t)
	fill(t, c)
	want := held(t, c)
	if len(want) != 6 || !slices.Contains(want, "Cluster of-b/b paused") {
		t.Fatalf("before: %v", want)
	}
	key := identity(t)
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	taken, err := backup.Take(t.Context(), c, graph.Scope{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taken.Save(path, []age.Recipient{key.Recipient()}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, held(t, c)); diff != "" {
		t.Fatalf("the backup changed something:\n%s", diff)
	}
	a, err := backup.Open(path, []age.Identity{key})
	if err != nil {
		t.Fatal(err)
	}
	if a.Info.Clusters != 2 || a.Info.Objects != 6 || a.Info.Secrets != 2 || !a.Info.Encrypted || a.Info.Source == "" {
		t.Errorf("%+v", a.Info)
	}
	if diff := cmp.Diff([]string{"LocalCluster of-a/a", "LocalCluster of-b/b"}, a.OnHost()); diff != "" {
		t.Error(diff)
	}
	for n := 0; ; n++ {
		lose(t, c)
		_, err := a.Restore(t.Context(), killedAt(c, n), move.RestoreOptions{})
		killed := errors.Is(err, errKilled)
		if killed {
			_, err = a.Restore(t.Context(), c, move.RestoreOptions{})
		}
		if err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		if diff := cmp.Diff(want, held(t, c)); diff != "" {
			t.Fatalf("write %d:\n%s", n, diff)
		}
		if !killed {
			if n < 8 {
				t.Errorf("only %d writes", n)
			}
			break
		}
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "of-a", Name: "a-kubeconfig"}, &secret); err != nil || string(secret.Data["value"]) != "the key of a" {
		t.Errorf("the Secret: %q, %v", secret.Data["value"], err)
	}
	lose(t, c)
}

// MV-12, MV-15: a backup of one namespace, or of one Cluster; a management cluster without objects, and one that lacks a provider.
func TestPartsAndRefusals(t *testing.T) {
	c := connect(t)
	if _, err := backup.Take(t.Context(), c, graph.Scope{}, time.Now()); reasonOf(err) != "NothingToSave" {
		t.Errorf("of nothing: %v", err)
	}
	fill(t, c)
	defer lose(t, c)
	for _, what := range []graph.Scope{{Namespace: "of-a"}, {Namespace: "of-a", Clusters: []string{"a"}}} {
		a, err := backup.Take(t.Context(), c, what, time.Now())
		if err != nil || a.Info.Objects != 3 || a.Info.Namespace != "of-a" {
			t.Errorf("%v: %+v, %v", what, a.Info, err)
		}
	}
	if _, err := backup.Take(t.Context(), c, graph.Scope{Namespace: "of-a", Clusters: []string{"none"}}, time.Now()); reasonOf(err) != "CannotSave" {
		t.Errorf("a Cluster that does not exist: %v", err)
	}
	there := provider.Installed{Namespace: "of-a", Name: "acme", Type: provider.Infrastructure, Version: "v1.0.0"}
	if err := c.Create(t.Context(), there.Object()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), there.Object()); err != nil {
			t.Error(err)
		}
	}()
	a, err := backup.Take(t.Context(), c, graph.Scope{}, time.Now())
	if err != nil || len(a.Info.Providers) != 1 {
		t.Fatalf("%+v, %v", a.Info.Providers, err)
	}
	listed := ""
	o := move.RestoreOptions{DryRun: true, Visit: func(id graph.ID, kept bool) { listed += fmt.Sprintln(id, kept) }}
	if s, err := a.Restore(t.Context(), c, o); err != nil || s.Unchanged != 6 || s.Created != 0 || !strings.Contains(listed, "Secret of-b/b-kubeconfig true\n") {
		t.Errorf("%+v, %v\n%s", s, err, listed)
	}
	a.Info.Providers[0].Version = "v1.1.0"
	if _, err := a.Restore(t.Context(), c, move.RestoreOptions{}); reasonOf(err) != backup.ReasonCannotRestore || !strings.Contains(err.Error(), "acme") {
		t.Errorf("an older provider: %v", err)
	}
}
