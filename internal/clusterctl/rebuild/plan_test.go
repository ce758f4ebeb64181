package rebuild

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
	return func(m *Member) { m.Found = &recovery.Member{Index: index, Revision: revision} }
}

func leads(m *Member) { m.Found = &recovery.Member{Leader: true} }

// The member that has most survives, unless another is named.
func TestChoose(t *testing.T) { // KC-19
	tests := map[string]struct {
		members []Member
		choice  Choice
		want    string
		fault   string
	}{
		"the only one":           {[]Member{member("a", lost), member("b", found(7, 3)), member("c", lost)}, Choice{}, "b", ""},
		"most":                   {[]Member{member("a", found(7, 3)), member("b", found(9, 3)), member("c", found(8, 9))}, Choice{}, "b", ""},
		"as much":                {[]Member{member("b", found(7, 3)), member("a", found(7, 3))}, Choice{}, "a", ""},
		"named":                  {[]Member{member("a", found(7, 3)), member("b", found(9, 3))}, Choice{Survivor: "a"}, "a", ""},
		"named, and unknown":     {[]Member{member("a", found(7, 3))}, Choice{Survivor: "x"}, "", ReasonNoSurvivor},
		"named, without a Node":  {[]Member{{Machine: "a"}}, Choice{Survivor: "a"}, "", ReasonNoSurvivor},
		"a quorum":               {[]Member{member("a", leads), member("b", leads), member("c", lost)}, Choice{Survivor: "a", Force: true}, "", ReasonNotNeeded},
		"none answers":           {[]Member{member("a"), member("b", lost), member("c", lost)}, Choice{}, "", ReasonNoSurvivor},
		"none answers, by hand":  {[]Member{member("a"), member("b", lost), member("c", lost)}, Choice{Manual: true}, "a", ""},
		"two left, by hand":      {[]Member{member("a"), member("b"), member("c", lost)}, Choice{Manual: true}, "", ReasonNoSurvivor},
		"none is left":           {[]Member{member("a", lost), member("b", func(m *Member) { m.Problem = "no data" })}, Choice{}, "", ReasonNoSurvivor},
		"one of two has trouble": {[]Member{member("a", func(m *Member) { m.Problem = "no data" }), member("b", found(1, 1))}, Choice{}, "b", ""},
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
	under := Plan{Cluster: "c1", Survivor: "a", UnderWay: true, ID: "20261125T131500Z"}.Lines()
	if len(under) != 1 || !strings.Contains(under[0], "is under way (20261125T131500Z)") {
		t.Errorf("%v", under)
	}
}
