package fleet

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

func TestFlags(t *testing.T) {
	parse := func(args ...string) (*benchmark, error) {
		b := &benchmark{}
		return b, b.command().ParseFlags(args)
	}
	b, err := parse("--clusters", "1,100", "--out", "x.json", "--idle", "0s")
	if err != nil || b.Out != "x.json" || b.manifest != filepath.Join("examples", "fleet.yaml") || !cmp.Equal(b.sizes, []int{1, 100}) ||
		b.workers != 200 || !b.changes || b.idle != 0 || b.patience != 30*time.Minute {
		t.Errorf("got %+v, %v", b, err)
	}
	for name, args := range map[string][]string{
		"no number": {"--clusters", "many"}, "zero": {"--clusters", "0"},
	} {
		b, err := parse(args...)
		if err == nil {
			err = harness.Try(func() { b.run(t.Context()) })
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The garbage collector of the management cluster deletes what clusters leave behind, at the requests a second that it may send,
// however quick the machine is.
func TestSettlingMayTakeAsLongAsTheGarbageCollectorNeeds(t *testing.T) {
	const (
		behind    = 5  // of each cluster: three Secrets, two templates
		perSecond = 13 // of the 20 requests; the others are reads
	)
	for _, size := range []int{1, 1000, 10_000} {
		f := fleetRun{size: size}
		if got, needed := f.timeout(5*time.Minute), time.Duration(size*behind/perSecond)*time.Second; got < 2*needed {
			t.Errorf("%d clusters: gives up after %v, of %v that are needed", size, got, needed)
		}
	}
}

func marks() (before, after reading) {
	write, lease := harness.Request{Verb: "APPLY", Resource: "machines/status.cluster.x-k8s.io"}, harness.Request{Verb: "PUT", Resource: "leases.coordination.k8s.io"}
	read, review := harness.Request{Verb: "LIST", Resource: "secrets"}, harness.Request{Verb: "POST", Resource: "subjectaccessreviews.authorization.k8s.io"}
	at := time.Unix(1e9, 0)
	before = reading{
		at:         at,
		usage:      harness.Usage{Manager: harness.Load{CPU: time.Second}, Server: harness.Load{CPU: 10 * time.Second}},
		requests:   harness.RequestCounts{write: 100, lease: 5},
		reconciles: map[string]harness.Histogram{"machine": {{Within: 1, Count: 10}}},
		cpu:        harness.CPUTime{All: 100 * time.Second, Stolen: 10 * time.Second},
	}
	after = reading{
		at:         at.Add(10 * time.Second),
		usage:      harness.Usage{Manager: harness.Load{CPU: 3 * time.Second}, Server: harness.Load{CPU: 14 * time.Second}},
		requests:   harness.RequestCounts{write: 180, lease: 10, read: 20, review: 1},
		reconciles: map[string]harness.Histogram{"machine": {{Within: 1, Count: 20}}, "cluster": {{Within: 1}}},
		cpu:        harness.CPUTime{All: 120 * time.Second, Stolen: 15 * time.Second},
	}
	return before, after
}

func TestCosts(t *testing.T) {
	before, after := marks()
	m := measurement{Clusters: 4}
	m.addCreation(before, after)
	m.addIdle(before, after)
	m.Deletion = newClusterCost(before, after, m.Clusters)
	want := measurement{
		Clusters: 4, clusterCost: clusterCost{ManagerCPU: 2, ServerCPU: 4, Writes: 20, Stolen: 25}, Reads: 5, ReconcileP99: 0.99,
		IdleRequests: 10.6, IdleWrites: 80, IdleManagerCPU: 20, IdleCPU: 60, IdleStolen: 25,
		Deletion:   clusterCost{ManagerCPU: 2, ServerCPU: 4, Writes: 20, Stolen: 25},
		Reconciles: []reconciles{{Controller: "machine", Count: 10, P50: 0.5, P99: 0.99}},
	}
	m.WriteLines, m.ReadLines, m.IdleLines, m.Deletion.WriteLines = nil, nil, nil, nil
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(measurement{})); diff != "" {
		t.Error(diff)
	}
	g := growth{From: 1, To: 5, Seconds: 3}
	g.addCost(before, after)
	g.WriteLines, g.ReadLines = nil, nil
	grown := growth{
		From: 1, To: 5, Seconds: 3, WritesPer: 20, ManagerCPU: 0.5, ServerCPU: 1, ReconcileP99: 0.99, Stolen: 25, Reconciles: want.Reconciles,
	}
	if diff := cmp.Diff(grown, g); diff != "" {
		t.Error(diff)
	}
}

func TestPeaks(t *testing.T) {
	var p Peaks
	for _, u := range []harness.Usage{
		{Manager: harness.Load{Memory: 5e6}, Server: harness.Load{Memory: 1e6}}, {Manager: harness.Load{Memory: 1e6}, Server: harness.Load{Memory: 4e6}},
	} {
		p.add(u)
	}
	if diff := cmp.Diff(Peaks{Both: 6, Manager: 5, Server: 4}, p); diff != "" {
		t.Errorf("both is the most at one moment: %s", diff)
	}
}

// Programs depend on the keys (issue 3).
func TestReport(t *testing.T) {
	r := report{Sizes: []measurement{{Clusters: 1, WallSeconds: 4, Changes: &changes{Metadata: change{Seconds: 2, Replaced: 1}}, Growth: []growth{{From: 1, To: 50, Seconds: 5}}}}}
	out := filepath.Join(t.TempDir(), "sub", "one.json")
	r.write(out)
	table := r.table()
	var got map[string]any
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"clusters", "wall_seconds", "manager_cpu_seconds", "apiserver_cpu_seconds", "peak_rss_mb", "manager_peak_rss_mb",
		"api_writes_per_cluster", "api_reads_per_cluster", "idle_requests_per_second", "idle_cpu_percent", "reconcile_p99_seconds",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %s", key)
		}
	}
	for _, want := range []string{"*4.0", "*1.0", "label of the class: Machines replaced", "≤ 3 at 1, ≤ 60 at 100", "1→50 workers: all Running, s", "1→50 workers: taken by others, %"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	r.Sizes = append(r.Sizes, measurement{Clusters: 10, WallSeconds: math.Pi})
	r.write(out)
	table = r.table()
	if _, err := os.Stat(filepath.Join(filepath.Dir(out), "one.svg")); err != nil {
		t.Error(err)
	}
	if !strings.Contains(table, "-") {
		t.Errorf("a size that was not scaled has no dash:\n%s", table)
	}
}

// Clusters of a class have goals of their own.
func TestGoals(t *testing.T) {
	for name, tc := range map[string]struct {
		report report
		want   []string
		not    string
	}{
		"without a class": {report{}, []string{"≤ 3 at 1, ≤ 60 at 100, ≤ 720 at 1000", "*65.0", "*0.600  "}, "*2.0"},
		"of a class":      {report{OfClass: true}, []string{"≤ 3 at 1, ≤ 30 at 100, ≤ 360 at 1000", "*40.0", "*2.0"}, "*65.0"},
		"on Machines":     {report{OfClass: true, OnMachines: true}, []string{"≤ 4 at 1, ≤ 75 at 100, ≤ 780 at 1000", "≤ 90", "≤ 5 at 100"}, "*65.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.report
			r.Sizes = []measurement{{Clusters: 100, WallSeconds: 40, clusterCost: clusterCost{Writes: 65}, Refused: 2, IdleRequests: 0.6, IdleCPU: 4}}
			table := r.table()
			for _, want := range tc.want {
				if !strings.Contains(table, want) {
					t.Errorf("no %q in\n%s", want, table)
				}
			}
			if strings.Contains(table, tc.not) {
				t.Errorf("%q in\n%s", tc.not, table)
			}
		})
	}
}

// A control plane below quorum is seen once for each state it reports.
func TestEtcdStates(t *testing.T) {
	q := &etcdStates{seen: map[string]bool{}}
	for _, text := range []string{
		"", "* 2 of 3 etcd members healthy, 2 needed for quorum\n* Machine a: …", "* 1 of 3 etcd members healthy, 2 needed for quorum",
		"* 1 of 3 etcd members healthy, 2 needed for quorum", "* Etcd has lost its quorum: 1 of 3 members left, 2 needed",
	} {
		q.record(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "c"},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "EtcdClusterHealthy", "message": text}}},
		}})
	}
	want := []string{"c: * 1 of 3 etcd members healthy, 2 needed for quorum", "c: * Etcd has lost its quorum: 1 of 3 members left, 2 needed"}
	if diff := cmp.Diff(want, q.belowQuorum); diff != "" || len(q.seen) != 4 {
		t.Errorf("%d states; below quorum (-want +got):\n%s", len(q.seen), diff)
	}
}
