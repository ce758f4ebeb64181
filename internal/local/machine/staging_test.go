package machine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	localmachine "github.com/slipwayhq/slipway/internal/local/machine"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// etcd is a source of a snapshot.
type etcd struct{ facts snapshots.EtcdState }

func (e etcd) ReadState(context.Context) (snapshots.EtcdState, error) { return e.facts, nil }

func (etcd) Snapshot(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("of a snapshot")), nil
}

// world has a stager, and a policy in each of two namespaces.
type world struct {
	*testing.T
	stager *localmachine.Stager
	ended  chan struct{}
}

func newWorld(t *testing.T) world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(controlplanev1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(policyIn("team-a"), policyIn("team-b")).Build()
	w := world{t, &localmachine.Stager{
		Retriever: snapshots.Retriever{Client: c, Stores: snapshots.StoreSettings{Root: t.TempDir(), Policy: policy.Default(), Secrets: c}}, Jobs: jobs.NewRunner(t.Context(), time.Now, jobs.SnapshotLimits()),
	}, make(chan struct{}, 8)}
	t.Cleanup(w.stager.Jobs.Subscribe(func(string) { w.ended <- struct{}{} }))
	return w
}

func policyIn(namespace string) *controlplanev1.EtcdSnapshotPolicy {
	return &controlplanev1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nightly"}, Spec: controlplanev1.EtcdSnapshotPolicySpec{
		ClusterName: "c", Schedule: "@daily", Destination: controlplanev1.SnapshotDestination{Folder: &controlplanev1.SnapshotFolder{}},
	}}
}

// take takes a snapshot of a Cluster.
func (w world) take(of snapshots.Cluster, facts snapshots.EtcdState) {
	w.Helper()
	to, err := w.stager.Stores.Open(w.Context(), policyIn(of.Namespace))
	if err == nil {
		_, err = snapshots.Take(w.Context(), etcd{facts}, to, snapshots.TakeOptions{Cluster: of, Name: snapshots.Name(of.Name, noon), Now: noon})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// stage stages a snapshot, and returns what was put on the machine.
func (w world) stage(of snapshots.Cluster, version string, order recovery.EtcdOrder) (string, error) {
	w.Helper()
	machine := client.ObjectKey{Namespace: of.Namespace, Name: "m"}
	var got bytes.Buffer
	put := false
	w.stager.Start(localmachine.StagingTarget{Machine: machine, Version: version, Cluster: of, Stage: func(_ context.Context, content func(io.Writer) error) error {
		err := content(&got)
		put = err == nil
		return err
	}}, order)
	<-w.ended
	state := w.stager.State(machine, order)
	if state.Running || put != (state.Err == nil) {
		w.Errorf("%+v, put %v", state, put)
	}
	return got.String(), state.Err
}

func orderOf(name string, change ...func(*recovery.Snapshot)) recovery.EtcdOrder {
	o := recovery.EtcdOrder{ID: "20261125T131500Z", Step: recovery.Stage, Snapshot: recovery.Snapshot{Policy: "nightly", Name: name}}
	for _, c := range change {
		c(&o.Snapshot)
	}
	return o
}

// Who orders reaches the snapshots of the Cluster in the namespace of the machine, and no others; what does not fit is not put there.
func TestStage(t *testing.T) { // KC-19
	w := newWorld(t)
	at := "-20261125T120000Z"
	ours := snapshots.Cluster{Namespace: "team-a", Name: "c", UID: "u"}
	w.take(ours, snapshots.EtcdState{Revision: 7, Kubernetes: "v1.36.1"})
	w.take(snapshots.Cluster{Namespace: "team-a", Name: "old", UID: "u2"}, snapshots.EtcdState{Kubernetes: "v1.35.4"})
	w.take(snapshots.Cluster{Namespace: "team-a", Name: "keys", UID: "u3"}, snapshots.EtcdState{Kubernetes: "v1.36.3", EncryptionKeys: "k"})
	w.take(snapshots.Cluster{Namespace: "team-b", Name: "theirs", UID: "u4"}, snapshots.EtcdState{Kubernetes: "v1.36.3"})
	of := func(name, uid string) snapshots.Cluster {
		return snapshots.Cluster{Namespace: "team-a", Name: name, UID: uid}
	}
	tests := map[string]struct {
		of    snapshots.Cluster
		order recovery.EtcdOrder
		want  string // reason of the fault; empty: none
	}{
		"ours":                   {ours, orderOf("c" + at), ""},
		"another UID":            {of("c", "u9"), orderOf("c" + at), "SnapshotOfOtherCluster"},
		"another UID, allowed":   {of("c", "u9"), orderOf("c"+at, func(s *recovery.Snapshot) { s.OtherCluster = true }), ""},
		"of another Cluster":     {ours, orderOf("old" + at), "SnapshotDamaged"},
		"of another namespace":   {of("theirs", "u4"), orderOf("theirs" + at), "SnapshotMissing"},
		"no policy":              {ours, orderOf("c"+at, func(s *recovery.Snapshot) { s.Policy = "x" }), "SnapshotPolicyMissing"},
		"no Secret":              {ours, orderOf("c"+at, func(s *recovery.Snapshot) { s.IdentitySecret = "x" }), "SecretMissing"},
		"no snapshot":            {ours, orderOf("c-20261125T120001Z"), "SnapshotMissing"},
		"an older minor version": {of("old", "u2"), orderOf("old" + at), "SnapshotVersion"},
		"encrypted objects":      {of("keys", "u3"), orderOf("keys" + at), "SnapshotEncryptionKeys"},
	}
	for name, tt := range tests {
		got, err := w.stage(tt.of, "v1.36.3", tt.order)
		reason := ""
		if f := fault.As(err); f != nil {
			reason = f.Reason
		}
		if reason != tt.want || (got == "of a snapshot") != (tt.want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

// What is known is of one order alone; while another one runs, it waits.
func TestState(t *testing.T) {
	w := newWorld(t)
	machine := client.ObjectKey{Namespace: "team-a", Name: "m"}
	first, second := orderOf("c-20261125T120000Z"), orderOf("c-20261125T130000Z")
	if got := w.stager.State(machine, first); got != (localmachine.StagingState{}) {
		t.Errorf("before: %+v", got)
	}
	end := make(chan struct{})
	w.take(snapshots.Cluster{Namespace: "team-a", Name: "c", UID: "u"}, snapshots.EtcdState{Kubernetes: "v1.36.3"})
	w.stager.Start(localmachine.StagingTarget{Machine: machine, Version: "v1.36.3", Cluster: snapshots.Cluster{Namespace: "team-a", Name: "c", UID: "u"}, Stage: func(context.Context, func(io.Writer) error) error {
		<-end
		return errors.New("no room")
	}}, first)
	for _, order := range []recovery.EtcdOrder{first, second} {
		if got := w.stager.State(machine, order); !got.Running {
			t.Errorf("while it runs: %+v", got)
		}
	}
	if got := w.stager.State(client.ObjectKey{Namespace: "team-a", Name: "other"}, first); !got.Running {
		t.Errorf("another machine of the namespace: %+v", got)
	}
	close(end)
	<-w.ended
	if got := w.stager.State(machine, first); got.Running || got.Err == nil {
		t.Errorf("afterwards: %+v", got)
	}
	if got := w.stager.State(machine, second); got != (localmachine.StagingState{}) {
		t.Errorf("the other: %+v", got)
	}
	if got := (*localmachine.Stager)(nil).State(machine, first); got.Err == nil {
		t.Errorf("without stores: %+v", got)
	}
}
