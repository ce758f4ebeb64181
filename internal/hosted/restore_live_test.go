package hosted

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	hostedsnapshots "github.com/slipwayhq/slipway/internal/hosted/snapshots"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// restorable is a live controller that can restore, with a policy whose store is a folder.
func restorable(t *testing.T) (*live, snapshots.StoreSettings) {
	t.Helper()
	l := newLive(t)
	stores := snapshots.StoreSettings{Root: t.TempDir(), Policy: policy.Default(), Secrets: l.client}
	l.controller.stager = restoreStager{Retriever: snapshots.Retriever{Client: l.client, Stores: stores}}
	l.controller.jobs = jobs.NewRunner(t.Context(), time.Now, jobs.SnapshotLimits())
	must(t, l.client.Create(t.Context(), snapshotPolicy()))
	return l, stores
}

func snapshotPolicy() *hostedv1.EtcdSnapshotPolicy {
	return &hostedv1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly"}, Spec: hostedv1.EtcdSnapshotPolicySpec{
		ClusterName: "c", Schedule: "@daily", Destination: hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}},
	}}
}

// snapshot takes a snapshot of the real etcd.
func (l *live) snapshot(stores snapshots.StoreSettings) snapshots.Manifest {
	l.Helper()
	owner := &clusterv1.Cluster{}
	must(l.T, l.client.Get(l.Context(), client.ObjectKey{Namespace: "ns", Name: cluster().Name}, owner))
	owner.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
	must(l.T, l.client.Update(l.Context(), owner))
	sources := hostedsnapshots.EtcdConnector{Client: l.client, Planes: filepath.Dir(string(l.folder)), Now: time.Now}
	from, err := sources.Open(l.Context(), client.ObjectKeyFromObject(owner))
	must(l.T, err)
	defer func() { _ = from.Close() }()
	to, err := stores.Open(l.Context(), snapshotPolicy())
	must(l.T, err)
	now := time.Now()
	m, err := snapshots.Take(l.Context(), from, to, snapshots.TakeOptions{
		Cluster: snapshots.Cluster{Namespace: "ns", Name: owner.Name, UID: string(owner.UID)}, Name: snapshots.Name(owner.Name, now), Now: now,
	})
	must(l.T, err)
	return m
}

// ask sets the annotation that asks for a restore.
func (l *live) ask(r RestoreRequest) {
	l.Helper()
	plane := l.until("a control plane", func(*hostedv1.HostedControlPlane) bool { return true })
	metav1.SetMetaDataAnnotation(&plane.ObjectMeta, hostedv1.RestoreAnnotation, r.String())
	must(l.T, l.client.Update(l.Context(), plane))
}

func (l *live) hasSecret(name string) bool {
	l.Helper()
	_, err := l.api().CoreV1().Secrets("default").Get(l.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		l.Fatal(err)
	}
	return err == nil
}

// A snapshot of a real control plane is restored: what was created since is gone, what was there is there, the request is
// removed, and what cannot be restored changes nothing.
func TestRestoreOfARealControlPlane(t *testing.T) {
	l, stores := restorable(t)
	available := func(p *hostedv1.HostedControlPlane) bool {
		return condition.Set(p.Status.Conditions).IsTrue(hostedv1.AvailableCondition)
	}
	l.until("a control plane", available)
	l.createSecret("before")
	m := l.snapshot(stores)
	if m.Revision == 0 || m.Kubernetes != version || m.Bytes < 1<<16 {
		t.Errorf("the manifest says too little: %+v", m)
	}
	l.createSecret("after")

	l.ask(RestoreRequest{ID: "20261125T120000Z", Policy: "nightly", Snapshot: "c-20200101T000000Z"})
	refused := l.until("a snapshot that is not there", func(p *hostedv1.HostedControlPlane) bool {
		c := condition.Set(p.Status.Conditions).Get(hostedv1.RestoredCondition)
		return c != nil && c.Reason == "SnapshotNotFetched" && strings.Contains(c.Message, "has no snapshot c-20200101T000000Z")
	})
	if !l.hasSecret("after") || refused.Status.Process.PID == 0 {
		t.Error("what cannot be restored changes the control plane")
	}

	l.ask(RestoreRequest{ID: "20261125T120001Z", Policy: "nightly", Snapshot: m.Name})
	done := l.until("restored", func(p *hostedv1.HostedControlPlane) bool {
		_, asked := p.Annotations[hostedv1.RestoreAnnotation]
		return !asked && available(p) && condition.Set(p.Status.Conditions).IsTrue(hostedv1.RestoredCondition)
	})
	if !l.hasSecret("before") || l.hasSecret("after") {
		t.Errorf("before: %t, after: %t", l.hasSecret("before"), l.hasSecret("after"))
	}
	if done.Status.Process.PID == refused.Status.Process.PID {
		t.Error("it was not restarted")
	}
	l.createSecret("since")
	again := l.until("nothing more happens", available)
	if again.Status.Process.PID != done.Status.Process.PID || !l.hasSecret("since") {
		t.Error("without a request it is restarted, or restored once more")
	}
}
