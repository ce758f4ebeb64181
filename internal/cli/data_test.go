package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli"
)

// team creates a Cluster with its infrastructure and a Secret, as its controllers would have left them.
func (u user) team(t *testing.T) *clusterv1.Cluster {
	t.Helper()
	create := func(o client.Object) {
		t.Helper()
		if err := u.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}
	create(cluster)
	meta := metav1.ObjectMeta{Namespace: "team", Name: "demo", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "demo", UID: cluster.UID},
	}}
	local := &localv1.LocalCluster{ObjectMeta: meta}
	local.Spec.Backend.Simulated = &localv1.SimulatedCluster{}
	create(local)
	meta.Name = "demo-kubeconfig"
	create(&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": []byte("the key")}})
	yes := true
	cluster.Status.Initialization.InfrastructureProvisioned, cluster.Status.Initialization.ControlPlaneInitialized = &yes, &yes
	if err := u.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// lose deletes the Cluster of team and what belongs to it: there is no garbage collection without controllers.
func (u user) lose(t *testing.T) {
	t.Helper()
	at := metav1.ObjectMeta{Namespace: "team", Name: "demo"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo-kubeconfig"}}
	for _, o := range []client.Object{&clusterv1.Cluster{ObjectMeta: at}, &localv1.LocalCluster{ObjectMeta: at}, secret} {
		if err := u.client.Delete(t.Context(), o); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// The verbs that save objects to files and create them again. CX-10, MV-12, MV-13
func TestSavingVerbs(t *testing.T) {
	u := startUser(t)
	dir := t.TempDir()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	identity, file := filepath.Join(dir, "key.txt"), filepath.Join(dir, "backup.tar.gz")
	if err := os.WriteFile(identity, []byte(key.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.run(t.Context(), "backup", file).wants(t, cli.ExitNotFound, "there is nothing to save")
	u.team(t)
	u.run(t.Context(), "backup", file, "--dry-run").wants(t, cli.ExitOK, "save Cluster team/demo\n", "save Secret team/demo-kubeconfig\n")
	u.run(t.Context(), "backup", file, "--recipient", "age1nonsense").wants(t, cli.ExitInvalid, "is no recipient of age")
	u.run(t.Context(), "backup", file, "--cluster", "demo").wants(t, cli.ExitInvalid, "Cluster demo does not exist in namespace default")
	u.run(t.Context(), "backup", filepath.Join(dir, "plain.tar.gz"), "-n", "team").wants(t, cli.ExitOK, "The file has 1 Secrets as they are", "Saved 3 objects of 1 Clusters")
	r := u.run(t.Context(), "backup", file, "--recipient", key.Recipient().String(), "-o", "json")
	r.wants(t, cli.ExitOK)
	var saved struct {
		File, SHA256 string
		Objects      int
		Encrypted    bool
	}
	if err := json.Unmarshal([]byte(r.out), &saved); err != nil || saved.File != file || len(saved.SHA256) != 64 || saved.Objects != 3 || !saved.Encrypted || strings.Contains(r.err, "as they are") {
		t.Errorf("%+v, %v\n%s", saved, err, r.err)
	}
	u.run(t.Context(), "backup", file).wants(t, cli.ExitInvalid, "exists already")

	u.lose(t)
	u.run(t.Context(), "restore", file).wants(t, cli.ExitInvalid, "are encrypted", "--identity")
	u.run(t.Context(), "restore", file, "--identity", file).wants(t, cli.ExitInvalid, "AGE-SECRET-KEY-1")
	u.run(t.Context(), "restore", identity).wants(t, cli.ExitInvalid, "the backup is damaged")
	u.run(t.Context(), "restore", file, "--identity", identity, "--dry-run").wants(t, cli.ExitOK, "create Cluster team/demo\n", "Would create 3 objects, and keep 0 that exist.")
	u.run(t.Context(), "restore", file, "--identity", identity).wants(t, cli.ExitOK, "Created 3 objects, kept 0 that existed.")
	u.run(t.Context(), "restore", file, "--identity", identity, "-o", "json").wants(t, cli.ExitOK, `"created": 0`, `"kept": 3`)
	secret := &corev1.Secret{}
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "demo-kubeconfig"}, secret); err != nil || string(secret.Data["value"]) != "the key" || len(secret.OwnerReferences) != 1 {
		t.Errorf("%q of %v, %v", secret.Data["value"], secret.OwnerReferences, err)
	}
	u.moves(t, dir)
}

// moves: the verb move, as far as one management cluster goes.
func (u user) moves(t *testing.T, dir string) {
	t.Helper()
	to := filepath.Join(dir, "moved")
	u.run(t.Context(), "move", "-n", "team").wants(t, cli.ExitInvalid, "set the target of the move")
	u.run(t.Context(), "move", "-n", "team", "--to-directory", to, "--from-directory", to).wants(t, cli.ExitInvalid, "use only one of")
	u.run(t.Context(), "move", "-n", "team", "--to-kubeconfig", u.kubeconfig).wants(t, cli.ExitInvalid, "source and target are the same management cluster")
	u.run(t.Context(), "move", "-n", "team", "--to-directory", to).wants(t, cli.ExitInvalid, "has no infrastructure yet")
	cluster := &clusterv1.Cluster{}
	if err := u.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "demo"}, cluster); err != nil {
		t.Fatal(err)
	}
	yes := true
	cluster.Status.Initialization.InfrastructureProvisioned, cluster.Status.Initialization.ControlPlaneInitialized = &yes, &yes
	if err := u.client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	u.run(t.Context(), "move", "-n", "team", "--to-directory", to, "--dry-run").wants(t, cli.ExitOK, "source: pause Cluster team/demo", "directory: write Secret team/demo-kubeconfig")
	u.run(t.Context(), "move", "-n", "team", "--to-directory", to).wants(t, cli.ExitOK, "Wrote 3 objects; nothing is paused any more.")
	u.lose(t)
	u.run(t.Context(), "move", "--from-directory", to).wants(t, cli.ExitOK, "Created 3 objects, kept 0 that existed.")
}
