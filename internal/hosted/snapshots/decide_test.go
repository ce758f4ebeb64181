package snapshots

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// manifests are snapshots of a Cluster taken so many hours before noon.
func manifests(cluster string, hours ...int) []snapshots.Manifest {
	var out []snapshots.Manifest
	for _, h := range hours {
		at := noon.Add(-time.Duration(h) * time.Hour)
		out = append(out, snapshots.Manifest{Name: snapshots.Name(cluster, at), Taken: at, Bytes: 10})
	}
	return out
}

// hourly is a policy with two Clusters, at noon, of which everything is known, and whose status is up to date.
func hourly() snapshot {
	s := snapshot{Now: noon, Policy: &hostedv1.EtcdSnapshotPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", CreationTimestamp: metav1.NewTime(noon.Add(-100 * time.Hour))},
		Spec:       hostedv1.EtcdSnapshotPolicySpec{ClusterName: "a", Schedule: "@hourly", Destination: hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}}},
	}}
	s.Policy.Status.Conditions = []metav1.Condition{{Type: hostedv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"}}
	s.Store = storeContent{Known: true, Snapshots: map[string][]snapshots.Manifest{"a": manifests("a", 1, 0), "b": manifests("b", 1, 0)}}
	for _, name := range []string{"a", "b"} {
		s.Clusters = append(s.Clusters, target{Cluster: snapshots.Cluster{Namespace: "ns", Name: name}, Created: noon.Add(-50 * time.Hour)})
		s.Policy.Status.Clusters = append(s.Policy.Status.Clusters, hostedv1.ClusterSnapshots{Name: name, Snapshots: []hostedv1.EtcdSnapshot{{Name: snapshots.Name(name, noon)}}})
	}
	return s
}

// behind makes a snapshot due, of which the status does not know.
func behind(s *snapshot, clusters ...string) {
	for i, row := range s.Policy.Status.Clusters {
		for _, name := range clusters {
			if row.Name == name {
				s.Store.Snapshots[name] = manifests(name, 1)
				s.Policy.Status.Clusters[i].Snapshots[0].Name = snapshots.Name(name, noon.Add(-time.Hour))
			}
		}
	}
}

func TestDecide(t *testing.T) {
	const name = "a-20261125T120000Z"
	for title, test := range map[string]struct {
		reason string
		change func(*snapshot)
		does   []string
		asks   int
		waits  string
	}{
		"nothing is due":     {"it was taken", func(*snapshot) {}, nil, 0, ""},
		"due":                {"its hour is over", func(s *snapshot) { behind(s, "a") }, []string{"take snapshot " + name + ": it is due"}, 0, ""},
		"two are due":        {"one after the other", func(s *snapshot) { behind(s, "a", "b") }, []string{"take snapshot " + name + ": it is due"}, 0, "WaitingForOtherSnapshot"},
		"store not known":    {"what is due may be there", func(s *snapshot) { behind(s, "a"); s.Store = storeContent{} }, nil, 1, ""},
		"not known, not due": {"nothing is asked for it", func(s *snapshot) { s.Store = storeContent{} }, nil, 0, ""},
		"taken before a crash": {"the store has it, the status does not: never twice", func(s *snapshot) {
			behind(s, "a")
			s.Store.Snapshots["a"] = manifests("a", 1, 0)
		}, nil, 0, ""},
		"missed many": {"one makes up for all", func(s *snapshot) { behind(s, "a"); s.Store.Snapshots["a"] = manifests("a", 40) }, []string{"take snapshot " + name + ": it is due"}, 0, ""},
		"a new Cluster": {"its first is due at the next time after it was created", func(s *snapshot) {
			s.Clusters[0].Created = noon.Add(-time.Minute)
			s.Store.Snapshots["a"] = nil
			s.Policy.Status.Clusters[0].Snapshots = nil
			s.Now = noon.Add(-time.Second)
		}, nil, 0, ""},
		"suspended":        {"", func(s *snapshot) { behind(s, "a"); s.Policy.Spec.Suspend = new(true) }, nil, 0, "Suspended"},
		"denied":           {"", func(s *snapshot) { behind(s, "a"); s.Denied = "no" }, nil, 0, "DeniedByPolicy"},
		"invalid schedule": {"an object may be older than the rules", func(s *snapshot) { s.Policy.Spec.Schedule = "soon" }, nil, 0, "ScheduleInvalid"},
		"store fails":      {"it is retried", func(s *snapshot) { behind(s, "a"); s.Store = storeContent{Known: true, Problem: "Gone", Reason: "X"} }, nil, 0, "X"},
		"under way":        {"", func(s *snapshot) { behind(s, "a"); s.Clusters[0].Job.Running = true; s.Clusters[1].Job.Ended = noon }, nil, 0, "SnapshotUnderWay"},
		"another runs":     {"one of a namespace at a time", func(s *snapshot) { behind(s, "a"); s.Clusters[0].Job.Busy = true }, nil, 0, "WaitingForOtherSnapshot"},
		"failed just now": {"it is retried later", func(s *snapshot) {
			behind(s, "a")
			s.Clusters[0].Job = snapshotJob{Name: name, Ended: noon.Add(-time.Minute), Err: "The store is full"}
		}, nil, 0, "SnapshotFailed"},
		"failed before": {"it is retried", func(s *snapshot) {
			behind(s, "a")
			s.Clusters[0].Job = snapshotJob{Name: name, Ended: noon.Add(-10 * time.Minute), Err: "The store is full"}
		}, []string{"take snapshot " + name + ": it is due"}, 0, ""},
		"simulated": {"there is no etcd", func(s *snapshot) { behind(s, "a"); s.Clusters[0].Problem = "Simulated" }, nil, 0, ""},
		"requested": {"at once", func(s *snapshot) {
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: "b-20261125T115930Z"}
		}, []string{"take snapshot b-20261125T115930Z: it is due"}, 0, ""},
		"requested, and there": {"", func(s *snapshot) {
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: name}
		}, []string{"remove the request for snapshot " + name + ": the snapshot is stored"}, 0, ""},
		"requested, and the status does not say so yet": {"the status comes first, or it would never say so", func(s *snapshot) {
			behind(s, "a")
			s.Store.Snapshots["a"] = manifests("a", 1, 0)
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: name}
		}, nil, 0, ""},
		"requested, and too old to be listed": {"the status will never say so", func(s *snapshot) {
			s.Store.Snapshots["a"] = manifests("a", 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
			s.Policy.Spec.Retention.Count = 20
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: snapshots.Name("a", noon.Add(-11*time.Hour))}
		}, []string{"remove the request for snapshot a-20261125T010000Z: the snapshot is stored"}, 0, ""},
		"requested of another Cluster": {"that the policy does not have", func(s *snapshot) {
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: "c-20261125T115930Z"}
		}, []string{"remove the request for snapshot c-20261125T115930Z: the policy has no Cluster c"}, 0, ""},
		"nonsense requested": {"a name leads nowhere else", func(s *snapshot) {
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: "../../etc"}
		}, []string{"remove the request for snapshot ../../etc: it is not a snapshot name with the current time"}, 0, ""},
		"requested, and failed": {"a request is not retried", func(s *snapshot) {
			s.Policy.Annotations = map[string]string{hostedv1.TakeSnapshotAnnotation: "b-20261125T115930Z"}
			s.Clusters[1].Job = snapshotJob{Name: "b-20261125T115930Z", Ended: noon, Err: "The store is full"}
		}, []string{"remove the request for snapshot b-20261125T115930Z: the store is full"}, 0, ""},
		"too many": {"the oldest go", func(s *snapshot) {
			s.Changed = true
			s.Policy.Spec.Retention.Count = 2
			s.Store.Snapshots["a"] = manifests("a", 3, 2, 1, 0)
		}, []string{"remove snapshot a-20261125T090000Z: the retention is 2", "remove snapshot a-20261125T100000Z: the retention is 2"}, 0, ""},
		"too old": {"but the newest stays, however old it is", func(s *snapshot) {
			s.Changed = true
			s.Policy.Spec.Retention.MaximumAgeHours = 24
			s.Clusters[0].Problem = "it does not run any more"
			s.Store.Snapshots["a"] = manifests("a", 50, 40)
		}, []string{"remove snapshot a-20261123T100000Z: it is older than 24 h"}, 0, ""},
	} {
		s := hourly()
		test.change(&s)
		p := decide(s)
		var does []string
		for _, a := range p.Actions {
			does = append(does, a.String())
		}
		if diff := cmp.Diff(test.does, does); diff != "" {
			t.Errorf("%s: %s: actions (-want +got):\n%s", title, test.reason, diff)
		}
		waits := ""
		if len(p.Waits) > 0 {
			waits = p.Waits[0].Reason
		}
		if len(p.Reads) != test.asks || waits != test.waits {
			t.Errorf("%s: %s: asks %v, waits %q; want %d, %q", title, test.reason, p.Reads, waits, test.asks, test.waits)
		}
		if p.Recheck == 0 && waits != "Suspended" && waits != "DeniedByPolicy" && waits != "ScheduleInvalid" {
			t.Errorf("%s: nothing enqueues it", title)
		}
	}
}

func TestReport(t *testing.T) {
	for title, test := range map[string]struct {
		change func(*snapshot)
		out    reconciler.Outcome
		kind   string
		status metav1.ConditionStatus
		says   string
		events []string
	}{
		"good":      {func(*snapshot) {}, reconciler.Outcome{}, "Ready", "True", "", nil},
		"taken":     {func(s *snapshot) { s.Policy.Status.Clusters[0].Snapshots = nil }, reconciler.Outcome{}, "SnapshotsUpToDate", "True", "", []string{"SnapshotTaken"}},
		"failed":    {func(s *snapshot) { s.Clusters[1].Job = snapshotJob{Ended: noon, Err: "The store is full"} }, reconciler.Outcome{}, "SnapshotsUpToDate", "False", "* Cluster b: The store is full", []string{"SnapshotFailed"}},
		"simulated": {func(s *snapshot) { s.Clusters[0].Problem = "No etcd" }, reconciler.Outcome{}, "SnapshotsUpToDate", "False", "* Cluster a: No etcd", nil},
		"no store":  {func(s *snapshot) { s.Store = storeContent{Known: true, Reason: "X", Problem: "Not there"} }, reconciler.Outcome{}, "StoreAvailable", "False", "Not there", nil},
		"suspended": {func(s *snapshot) { s.Policy.Spec.Suspend = new(true) }, reconciler.Outcome{}, "SnapshotsUpToDate", "Unknown", "Snapshots are suspended: set spec.suspend to false to resume", nil},
		"refused":   {func(*snapshot) {}, reconciler.Outcome{Done: []reconciler.Action{removeRequest{Name: "x", Why: "No"}}}, "Ready", "True", "", []string{"SnapshotRequestRefused"}},
		"bad":       {func(s *snapshot) { s.Policy.Spec.Schedule = "soon" }, reconciler.Outcome{}, "Ready", "False", "", nil},
		"none":      {func(s *snapshot) { s.Clusters = nil }, reconciler.Outcome{}, "SnapshotsUpToDate", "True", "The policy selects no Cluster", nil},
		"many":      {func(s *snapshot) { s.Omitted = 3 }, reconciler.Outcome{}, "SnapshotsUpToDate", "False", "* The policy selects 3 Clusters more than the limit of 100: select fewer", nil},
		"is over":   {func(s *snapshot) { s.Policy.Status.Clusters[0].Message = "The store is full" }, reconciler.Outcome{}, "SnapshotsUpToDate", "True", "", nil},
	} {
		s := hourly()
		test.change(&s)
		r := report(s, decide(s), test.out)
		got := condition.Set(r.Status.(hostedv1.EtcdSnapshotPolicyStatus).Conditions).Get(test.kind)
		if got == nil || got.Status != test.status || test.says != "" && got.Message != test.says {
			t.Errorf("%s: got %+v", title, got)
		}
		var events []string
		for _, e := range r.Events {
			events = append(events, e.Reason)
		}
		if diff := cmp.Diff(test.events, events); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", title, diff)
		}
	}
}

// The status is bounded: of each Cluster it lists the newest ten, and what was removed is not among them.
func TestReportIsBounded(t *testing.T) {
	s := hourly()
	s.Store.Snapshots["a"] = manifests("a", 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
	gone := s.Store.Snapshots["a"][15]
	r := report(s, reconciler.Plan{}, reconciler.Outcome{Done: []reconciler.Action{removeSnapshot{Manifest: gone}}}).Status.(hostedv1.EtcdSnapshotPolicyStatus)
	if row := r.Clusters[0]; row.Count != 15 || len(row.Snapshots) != 10 || row.Snapshots[0].Name != snapshots.Name("a", noon.Add(-time.Hour)) {
		t.Errorf("got %+v", row)
	}
	if want := metav1.NewTime(noon.Add(time.Hour)); !r.NextSnapshotTime.Equal(&want) {
		t.Errorf("next: %s", r.NextSnapshotTime)
	}
}
