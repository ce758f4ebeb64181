package snapshots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
)

func to(namespace string, d hostedv1.SnapshotDestination) *hostedv1.EtcdSnapshotPolicy {
	return &hostedv1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}, Spec: hostedv1.EtcdSnapshotPolicySpec{Destination: d}}
}

// Each namespace has a folder of its own, whose bytes alone count for it.
func TestFolders(t *testing.T) {
	root := t.TempDir()
	s := StoreSettings{Root: root, Policy: policy.Default()}
	s.Policy.Snapshots.NamespaceMiB = 1
	standard := hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}}
	for _, namespace := range []string{"team-a", "team-b"} {
		store, err := s.Open(t.Context(), to(namespace, standard))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Write(t.Context(), namespace+"/demo/x.db", strings.NewReader(strings.Repeat("x", 700<<10)), 1<<20); err != nil {
			t.Errorf("%s: the other namespace counts: %v", namespace, err)
		}
		if err := store.Write(t.Context(), namespace+"/demo/y.db", strings.NewReader(strings.Repeat("x", 700<<10)), 1<<20); err == nil {
			t.Errorf("%s: there is no limit", namespace)
		}
		files, err := store.List(t.Context(), namespace+"/demo")
		if err != nil || len(files) != 1 || files[0].Name != namespace+"/demo/x.db" {
			t.Errorf("%s: listed %v, %v", namespace, files, err)
		}
		if _, err := os.Stat(filepath.Join(root, namespace, "demo", "x.db")); err != nil {
			t.Error(err)
		}
		if r, err := store.Read(t.Context(), namespace+"/demo/x.db"); err != nil {
			t.Error(err)
		} else if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDenied(t *testing.T) {
	s := StoreSettings{Policy: policy.Default()}
	s.Policy.Snapshots.Endpoints = []string{"store.example"}
	s.Secrets = fake.NewClientBuilder().WithObjects(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "empty"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "age"}, Data: map[string][]byte{IdentityKey: []byte("AGE-SECRET-KEY-1")}},
	).Build()
	bucket := func(endpoint, secret string) hostedv1.SnapshotDestination {
		return hostedv1.SnapshotDestination{S3: &hostedv1.SnapshotBucket{Endpoint: endpoint, Bucket: "b", CredentialsSecretName: secret}}
	}
	for name, test := range map[string]struct {
		to   hostedv1.SnapshotDestination
		says string
	}{
		"nothing":         {hostedv1.SnapshotDestination{}, "set spec.destination.folder or spec.destination.s3"},
		"no data":         {hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}}, "lost with its Pod"},
		"folder":          {hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{Path: "/etc"}}, "snapshots.folders"},
		"endpoint":        {bucket("other.example", "age"), "snapshots.endpoints"},
		"no Secret":       {bucket("store.example", "none"), "Secret none, which spec.destination.s3.credentialsSecretName names, does not exist"},
		"Secret is empty": {bucket("store.example", "empty"), "accessKeyID"},
	} {
		if _, err := s.Open(t.Context(), to("team-a", test.to)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := s.ReadIdentity(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "age"}); err != nil || string(got) != "AGE-SECRET-KEY-1" {
		t.Errorf("identity: %q, %v", got, err)
	}
	if got, err := s.ReadIdentity(t.Context(), client.ObjectKey{Namespace: "team-a"}); err != nil || got != nil {
		t.Errorf("no identity is named: %q, %v", got, err)
	}
	if _, err := s.ReadIdentity(t.Context(), client.ObjectKey{Namespace: "team-b", Name: "age"}); err == nil {
		t.Error("a Secret of another namespace is read")
	}
}
