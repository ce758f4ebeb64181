package etcdrecovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func demo(kind string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo", Labels: map[string]string{"tier": "gold"}}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: kind, Name: "demo-plane"}
	return c
}

func policy(name string, of ...hostedv1.EtcdSnapshot) *hostedv1.EtcdSnapshotPolicy {
	p := &hostedv1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	p.Spec.ClusterName = "demo"
	p.Status.Clusters = []hostedv1.ClusterSnapshots{{Name: "demo", Count: int32(len(of)), Snapshots: of}}
	return p
}

func taken(hoursAgo int) hostedv1.EtcdSnapshot {
	at := now.Add(-time.Duration(hoursAgo) * time.Hour)
	return hostedv1.EtcdSnapshot{Name: "demo-" + at.Format(stamp), Time: metav1.NewTime(at), Revision: int64(1000 - hoursAgo), Bytes: 5 << 20, Version: "v1.36.3"}
}

func plane() *hostedv1.HostedControlPlane {
	return &hostedv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo-plane"}}
}

func machine(name string, hoursAgo int) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(hoursAgo) * time.Hour)), Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"},
	}}
}

// play is a management cluster in which react is the controller: it is called at each reading with what was asked of it, and a clock that a
// second passes on at each.
func play(t *testing.T, react func(c client.Client, readings int), objects ...client.Object) (SnapshotClient, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, hostedv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	clock, readings := now, 0
	inner := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	c := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		mu.Lock()
		readings++
		clock = clock.Add(time.Second)
		n := readings
		mu.Unlock()
		if react != nil {
			react(inner, n)
		}
		return w.Get(ctx, key, o, opts...)
	}})
	return SnapshotClient{progress.Operation{Client: c, Interval: time.Millisecond, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock
	}}}, inner
}

func TestList(t *testing.T) {
	other := policy("weekly", taken(30))
	other.Status.Clusters[0].Count, other.Status.Clusters[0].Message = 12, "the store is full"
	o, _ := play(t, nil, policy("nightly", taken(2), taken(26)), other)
	got, err := ListSnapshots(t.Context(), o.Client, "team", "demo")
	want := SnapshotList{
		Snapshots: []Snapshot{
			{"demo", "nightly", taken(2).Name, now.Add(-2 * time.Hour), 998, 5 << 20, "v1.36.3", false},
			{"demo", "nightly", taken(26).Name, now.Add(-26 * time.Hour), 974, 5 << 20, "v1.36.3", false},
			{"demo", "weekly", taken(30).Name, now.Add(-30 * time.Hour), 970, 5 << 20, "v1.36.3", false},
		},
		More: 11, Problems: []string{"EtcdSnapshotPolicy weekly, Cluster demo: the store is full"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, err := ListSnapshots(t.Context(), o.Client, "team", "another"); err != nil || len(got.Snapshots) != 0 {
		t.Errorf("%v, %+v", err, got)
	}
}

// update changes an object as its controller.
func update[O client.Object](t *testing.T, c client.Client, o O, name string, change func(O)) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, o); err != nil {
		t.Error(err)
		return
	}
	change(o)
	if err := c.Update(t.Context(), o); err != nil {
		t.Error(err)
	}
}

func TestTake(t *testing.T) {
	suspended := policy("nightly")
	suspended.Spec.Suspend = new(true)
	asked := policy("nightly")
	asked.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: "demo-20260101T000000Z"}
	elsewhere := policy("nightly")
	elsewhere.Spec.ClusterName = "another"
	bySelector := policy("gold")
	bySelector.Spec.ClusterName, bySelector.Spec.ClusterSelector = "", &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	answer := func(name string, change func(*hostedv1.EtcdSnapshotPolicy, string)) func(*testing.T) func(client.Client, int) {
		return func(t *testing.T) func(client.Client, int) {
			return func(c client.Client, readings int) {
				if readings != 3 {
					return
				}
				update(t, c, &hostedv1.EtcdSnapshotPolicy{}, name, func(p *hostedv1.EtcdSnapshotPolicy) { change(p, p.Annotations[hostedv1.TakeSnapshotAnnotation]) })
			}
		}
	}
	stores := func(p *hostedv1.EtcdSnapshotPolicy, name string) {
		delete(p.Annotations, hostedv1.TakeSnapshotAnnotation)
		p.Status.Clusters = []hostedv1.ClusterSnapshots{{Name: "demo", Count: 1, Snapshots: []hostedv1.EtcdSnapshot{{Name: name, Time: metav1.NewTime(now), Revision: 7, Bytes: 9}}}}
	}
	for name, tc := range map[string]struct {
		policies []client.Object
		named    string
		react    func(*testing.T) func(client.Client, int)
		want     string // of the error; empty: the snapshot is there
	}{
		"none":          {nil, "", nil, `no EtcdSnapshotPolicy of namespace "team" selects cluster "demo"`},
		"of another":    {[]client.Object{elsewhere}, "", nil, `no EtcdSnapshotPolicy of namespace "team" selects cluster "demo"`},
		"named, absent": {[]client.Object{policy("nightly")}, "x", nil, `EtcdSnapshotPolicy "x" does not exist in namespace "team", or does not select cluster "demo"`},
		"two":           {[]client.Object{policy("nightly"), bySelector}, "", nil, "the EtcdSnapshotPolicies gold, nightly all select cluster \"demo\"; select one with --policy"},
		"suspended":     {[]client.Object{suspended}, "", nil, "EtcdSnapshotPolicy nightly is suspended"},
		"asked already": {[]client.Object{asked}, "", nil, "EtcdSnapshotPolicy nightly already has a request for snapshot demo-20260101T000000Z"},
		"stored":        {[]client.Object{policy("nightly", taken(2)), bySelector}, "gold", answer("gold", stores), ""},
		"given up": {[]client.Object{policy("nightly")}, "", answer("nightly", func(p *hostedv1.EtcdSnapshotPolicy, _ string) {
			delete(p.Annotations, hostedv1.TakeSnapshotAnnotation)
			p.Status.Clusters[0].Message = "A simulated control plane has no etcd"
		}), `the snapshot of cluster "demo" was not taken: EtcdSnapshotPolicy nightly, Cluster demo: A simulated control plane has no etcd`},
		"refused without a word": {[]client.Object{policy("nightly")}, "", answer("nightly", func(p *hostedv1.EtcdSnapshotPolicy, _ string) {
			delete(p.Annotations, hostedv1.TakeSnapshotAnnotation)
		}), "`kubectl events --for etcdsnapshotpolicy/nightly` shows the reason"},
		"store away": {[]client.Object{policy("nightly")}, "", answer("nightly", func(p *hostedv1.EtcdSnapshotPolicy, _ string) {
			p.Status.Conditions = []metav1.Condition{{Type: hostedv1.StoreAvailableCondition, Status: metav1.ConditionFalse, Message: "Connection refused"}}
		}), "the store of EtcdSnapshotPolicy nightly cannot be used: Connection refused; the snapshot is taken when it can"},
	} {
		t.Run(name, func(t *testing.T) {
			var react func(client.Client, int)
			if tc.react != nil {
				react = tc.react(t)
			}
			o, _ := play(t, react, tc.policies...)
			got, err := o.Take(t.Context(), demo("HostedControlPlane"), tc.named)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil || !strings.HasPrefix(got.Name, "demo-20260102T03") || got.Revision != 7 || got.Policy != tc.named {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// The time to wait is over: what was asked for stays.
func TestTakeTimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	o, c := play(t, nil, policy("nightly"))
	o.Now = func() time.Time { return now }
	_, err := o.Take(ctx, demo("HostedControlPlane"), "")
	p := &hostedv1.EtcdSnapshotPolicy{}
	if f := fault.As(err); f == nil || f.Reason != "Timeout" {
		t.Errorf("got %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "nightly"}, p); err != nil || p.Annotations[hostedv1.TakeSnapshotAnnotation] != "demo-20260102T030405Z" {
		t.Errorf("%v, %v", err, p.Annotations)
	}
}

func TestPrepare(t *testing.T) {
	encrypted := taken(1)
	encrypted.Encrypted = new(true)
	asked := plane()
	asked.Annotations = map[string]string{hostedv1.RestoreAnnotation: "{}"}
	for name, tc := range map[string]struct {
		cluster *clusterv1.Cluster
		objects []client.Object
		want    RestoreOptions
		says    string // joined lines, or the error
	}{
		"newest": {demo("HostedControlPlane"), []client.Object{plane(), policy("nightly", taken(2), taken(26)), machine("old", 27), machine("new", 1)}, RestoreOptions{},
			"Restore of the control plane of cluster demo from snapshot demo-20260102T010405Z of EtcdSnapshotPolicy nightly, taken 2026-01-02T01:04:05Z (2h0m1s ago), revision 998:\n" +
				"  all later writes to its API are lost\n" +
				"  the Nodes of 1 newer Machines are not in the snapshot and must join again: new\n" +
				"  its API is not available during the restore; a copy of the current data is retained until the next restore"},
		"by name": {demo("HostedControlPlane"), []client.Object{plane(), policy("nightly", taken(2), taken(26))}, RestoreOptions{Name: taken(26).Name}, "taken 2026-01-01T01:04:05Z (26h0m1s ago), revision 974"},
		"older than those that are listed": {demo("HostedControlPlane"), []client.Object{plane(), policy("nightly", taken(2))}, RestoreOptions{Name: "demo-20251201T010405Z", Policy: "nightly"},
			"taken 2025-12-01T01:04:05Z (770h0m1s ago):"},
		"not listed":            {demo("HostedControlPlane"), []client.Object{plane(), policy("nightly", taken(2))}, RestoreOptions{Name: "demo-20251201T010405Z"}, "no EtcdSnapshotPolicy lists snapshot \"demo-20251201T010405Z\" of cluster \"demo\""},
		"none":                  {demo("HostedControlPlane"), []client.Object{plane()}, RestoreOptions{}, "no EtcdSnapshotPolicy lists a snapshot of cluster \"demo\""},
		"encrypted":             {demo("HostedControlPlane"), []client.Object{plane(), policy("nightly", encrypted)}, RestoreOptions{}, "is encrypted: name a Secret of namespace \"team\" with the identity of age in its key \"identity\" with --identity-secret"},
		"under way":             {demo("HostedControlPlane"), []client.Object{asked, policy("nightly", taken(2))}, RestoreOptions{}, "a restore of HostedControlPlane demo-plane is under way"},
		"another kind":          {demo("OtherControlPlane"), nil, RestoreOptions{}, "cluster \"demo\" has a control plane of kind OtherControlPlane, and only a HostedControlPlane"},
		"on machines":           {demo("KubeadmControlPlane"), nil, RestoreOptions{}, "`slipway recover controlplane demo --snapshot NAME` restores it"},
		"no such control plane": {demo("HostedControlPlane"), nil, RestoreOptions{}, "reading HostedControlPlane demo-plane"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := play(t, nil, tc.objects...)
			r, err := o.Prepare(t.Context(), tc.cluster, tc.want)
			says := strings.Join(r.Lines(), "\n")
			if err != nil {
				says = err.Error()
			}
			if !strings.Contains(says, tc.says) {
				t.Errorf("got %s\nwant %s", says, tc.says)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	restored := func(status metav1.ConditionStatus, reason, message string) func(*hostedv1.HostedControlPlane, string) {
		return func(p *hostedv1.HostedControlPlane, id string) {
			p.Status.Conditions = []metav1.Condition{{Type: hostedv1.RestoredCondition, Status: status, Reason: reason, Message: fmt.Sprintf(message, id)}}
			if status == metav1.ConditionTrue {
				delete(p.Annotations, hostedv1.RestoreAnnotation)
			}
		}
	}
	done := restored(metav1.ConditionTrue, "Restored", "The data is from snapshot x (restore %s)")
	restoring := restored(metav1.ConditionFalse, "Restoring", "Restoring snapshot x%.0s")
	for name, tc := range map[string]struct {
		steps []func(*hostedv1.HostedControlPlane, string)
		said  []string
		want  string
	}{
		"done":     {[]func(*hostedv1.HostedControlPlane, string){restoring, restoring, done}, []string{"Restoring snapshot x"}, ""},
		"damaged":  {[]func(*hostedv1.HostedControlPlane, string){restoring, restored(metav1.ConditionFalse, "SnapshotNotFetched", "The snapshot is damaged%.0s")}, []string{"Restoring snapshot x"}, "the restore does not proceed: The snapshot is damaged; to leave the control plane as it is, remove annotation controlplane.slipway.dev/restore of HostedControlPlane demo-plane"},
		"the last": {[]func(*hostedv1.HostedControlPlane, string){restored(metav1.ConditionTrue, "Restored", "The data is from snapshot y (restore 20250101T000000Z)%.0s")}, nil, "annotation controlplane.slipway.dev/restore was removed or changed before the restore was done"},
	} {
		t.Run(name, func(t *testing.T) {
			var value string
			o, _ := play(t, func(c client.Client, readings int) {
				if step := readings - 3; step >= 0 && step < len(tc.steps) { // after Prepare and Run have read it
					update(t, c, plane(), "demo-plane", func(p *hostedv1.HostedControlPlane) {
						if text, ok := p.Annotations[hostedv1.RestoreAnnotation]; ok {
							value = text
						}
						var asked struct{ ID, Policy, Snapshot, IdentitySecret string }
						if err := json.Unmarshal([]byte(value), &asked); err != nil || asked.Policy != "nightly" || asked.Snapshot != taken(2).Name || asked.IdentitySecret != "key" {
							t.Errorf("asked for %s: %v", value, err)
						}
						tc.steps[step](p, asked.ID)
					})
				}
			}, plane(), policy("nightly", taken(2)))
			var said []string
			o.Progress = func(text string) { said = append(said, text) }
			r, err := o.Prepare(t.Context(), demo("HostedControlPlane"), RestoreOptions{IdentitySecret: "key"})
			if err != nil {
				t.Fatal(err)
			}
			err = o.Run(t.Context(), r)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.said, said); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
