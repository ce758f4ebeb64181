package rebuild

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clusterctl/snapshot"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/recovery"
)

func member(name string, change ...func(*Member)) Member {
	m := Member{Machine: name, Node: "n-" + name}
	for _, c := range change {
		c(&m)
	}
	return m
}

func lost(m *Member) { m.Lost = "it does not run" }

func found(index, revision int64) func(*Member) {
	return func(m *Member) { m.Found = &recovery.MemberState{Index: index, Revision: revision} }
}

func leads(m *Member) { m.Found = &recovery.MemberState{Leader: true} }

// The member that has most survives, unless another is named.
func TestChoose(t *testing.T) { // KC-19
	tests := map[string]struct {
		members []Member
		choice  Options
		want    string
		fault   string
	}{
		"the only one":           {[]Member{member("a", lost), member("b", found(7, 3)), member("c", lost)}, Options{}, "b", ""},
		"most":                   {[]Member{member("a", found(7, 3)), member("b", found(9, 3)), member("c", found(8, 9))}, Options{}, "b", ""},
		"as much":                {[]Member{member("b", found(7, 3)), member("a", found(7, 3))}, Options{}, "a", ""},
		"named":                  {[]Member{member("a", found(7, 3)), member("b", found(9, 3))}, Options{Survivor: "a"}, "a", ""},
		"named, and unknown":     {[]Member{member("a", found(7, 3))}, Options{Survivor: "x"}, "", ReasonNoSurvivor},
		"named, without a Node":  {[]Member{{Machine: "a"}}, Options{Survivor: "a"}, "", ReasonNoSurvivor},
		"a quorum":               {[]Member{member("a", leads), member("b", leads), member("c", lost)}, Options{Survivor: "a", Force: true}, "", ReasonNotNeeded},
		"none answers":           {[]Member{member("a"), member("b", lost), member("c", lost)}, Options{}, "", ReasonNoSurvivor},
		"none answers, by hand":  {[]Member{member("a"), member("b", lost), member("c", lost)}, Options{Manual: true}, "a", ""},
		"two left, by hand":      {[]Member{member("a"), member("b"), member("c", lost)}, Options{Manual: true}, "", ReasonNoSurvivor},
		"none is left":           {[]Member{member("a", lost), member("b", func(m *Member) { m.Problem = "no data" })}, Options{}, "", ReasonNoSurvivor},
		"one of two has trouble": {[]Member{member("a", func(m *Member) { m.Problem = "no data" }), member("b", found(1, 1))}, Options{}, "b", ""},
	}
	for name, tt := range tests {
		got, err := choose("kcp", tt.members, tt.choice)
		reason := ""
		if f := fault.As(err); f != nil {
			reason = f.Reason
		}
		if got.Machine != tt.want || reason != tt.fault {
			t.Errorf("%s: %q %v, want %q %s", name, got.Machine, err, tt.want, tt.fault)
		}
	}
}

// A snapshot is restored on the oldest Machine that runs, and never on one that joined after it.
func TestChooseForSnapshot(t *testing.T) { // KC-19
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	created := func(hours int) func(*Member) {
		return func(m *Member) { m.Created = at.Add(time.Duration(hours) * time.Hour) }
	}
	silent := func(m *Member) { m.Problem = "its member does not answer" }
	tests := map[string]struct {
		members []Member
		named   string
		want    string
	}{
		"the oldest":          {[]Member{member("a", created(-1)), member("b", created(-3), leads), member("c", created(-2))}, "", "b"},
		"of those that run":   {[]Member{member("a", created(-1)), member("b", created(-3), lost)}, "", "a"},
		"of those that speak": {[]Member{member("a", created(-1)), member("b", created(-3), silent)}, "", "a"},
		"silent ones, too":    {[]Member{member("a", created(-1), silent)}, "", "a"},
		"all are newer":       {[]Member{member("a", created(1))}, "", ""},
		"none runs":           {[]Member{member("a", created(-1), lost)}, "", ""},
		"named":               {[]Member{member("a", created(-1)), member("b", created(-3))}, "a", "a"},
		"named, and newer":    {[]Member{member("a", created(1)), member("b", created(-3))}, "a", ""},
		"named, and unknown":  {[]Member{member("b", created(-3))}, "x", ""},
	}
	for name, tt := range tests {
		got, err := chooseForSnapshot("kcp", tt.members, Options{Survivor: tt.named}, snapshot.Snapshot{Name: "c1-20261125T120000Z", Time: at})
		if f := fault.As(err); got.Machine != tt.want || (f != nil && f.Reason == ReasonNoSurvivor) != (tt.want == "") {
			t.Errorf("%s: %q, %v", name, got.Machine, err)
		}
	}
}

func TestMemberOf(t *testing.T) {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	m.Status.NodeRef.Name = "n-a"
	if got := memberOf(m); got != member("a") {
		t.Errorf("%+v", got)
	}
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.InfrastructureReadyCondition, Status: "False", Message: "* It does\n  not run"}}
	if got := memberOf(m).Lost; got != "It does not run" {
		t.Errorf("%q", got)
	}
	m.DeletionTimestamp = &metav1.Time{}
	*m.DeletionTimestamp = metav1.Now()
	if got := memberOf(m).Lost; got != "it is being deleted" {
		t.Errorf("%q", got)
	}
}

// What is said before the question: what is kept, what is lost, and what is not known.
func TestLines(t *testing.T) {
	p := Plan{Cluster: "c1", Survivor: "a", Members: []Member{member("a", found(7, 3)), member("b", found(9, 4)), member("c", lost)}, Force: true}
	text := strings.Join(p.Lines(), "\n")
	for _, want := range []string{
		"etcd is rebuilt from the member of Machine a.", "Machine a: left, without a leader, at revision 3 (index 7); it survives", "Machine c: lost: it does not run",
		"Kept: everything up to revision 3.", "Lost: what Machine b has beyond that; its member has agreed on more (index 9, not 7).", "Not known: whether members that do not answer",
		"replaced: b, c", "with --force", "The API does not answer until then.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	p.Snapshot = &Snapshot{Snapshot: snapshot.Snapshot{Name: "c1-20261125T120000Z", Policy: "nightly", Time: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), Revision: 2}, Since: []string{"w"}, age: 90 * time.Minute}
	text = strings.Join(p.Lines(), "\n")
	for _, want := range []string{
		"from snapshot c1-20261125T120000Z of EtcdSnapshotPolicy nightly, on Machine a.", "taken, 2026-11-25T12:00:00Z (1h30m0s ago), revision 2.",
		"Lost: everything that was written to its API since then, up to revision 3.", "have to join again: w", "replaced: b, c",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	under := Plan{Cluster: "c1", Survivor: "a", UnderWay: true, ID: "20261125T131500Z"}.Lines()
	if len(under) != 1 || !strings.Contains(under[0], "is under way (20261125T131500Z)") {
		t.Errorf("%v", under)
	}
}
