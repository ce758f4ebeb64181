package etcdrecovery

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
)

// The program for a manual rebuild is printed once, when the controller waits for it.
func TestManualProgram(t *testing.T) {
	var printed []string
	f := &recoveryProgress{
		Recoverer: Recoverer{Program: func(node, program string) { printed = append(printed, node+" "+program) }},
		plan:      RecoveryPlan{Manual: true, ID: "20260102T030405Z", Node: "n-a"},
	}
	plane := &controlplanev1.KubeadmControlPlane{}
	request := recovery.RecoveryRequest{ID: "20260102T030405Z", Manual: true, Survivor: "a"}
	plane.Annotations = map[string]string{hostedv1.RecoverAnnotation: request.String()}
	for _, message := range []string{"Waiting for the other Machines", recovery.ManualRebuild + " on Machine a: run the program", recovery.ManualRebuild + " on Machine a: run the program"} {
		plane.Status.Conditions = []metav1.Condition{{Type: hostedv1.RecoveredCondition, Status: metav1.ConditionFalse, Reason: "Recovering", Message: message}}
		if _, _, err := f.next(plane); err != nil {
			t.Fatal(err)
		}
	}
	if len(printed) != 1 || !strings.HasPrefix(printed[0], "n-a ") {
		t.Errorf("printed %q", printed)
	}
}

func member(name string, change ...func(*RecoveryMember)) RecoveryMember {
	m := RecoveryMember{Machine: name, Node: "n-" + name}
	for _, c := range change {
		c(&m)
	}
	return m
}

func lost(m *RecoveryMember) { m.Lost = "it does not run" }

func found(index, revision int64) func(*RecoveryMember) {
	return func(m *RecoveryMember) { m.Found = &recovery.MemberState{Index: index, Revision: revision} }
}

func leads(m *RecoveryMember) { m.Found = &recovery.MemberState{Leader: true} }

// The member that has most survives, unless another is named.
func TestChoose(t *testing.T) { // KC-19
	tests := map[string]struct {
		members []RecoveryMember
		choice  RecoveryOptions
		want    string
		fault   string
	}{
		"the only one":           {[]RecoveryMember{member("a", lost), member("b", found(7, 3)), member("c", lost)}, RecoveryOptions{}, "b", ""},
		"most":                   {[]RecoveryMember{member("a", found(7, 3)), member("b", found(9, 3)), member("c", found(8, 9))}, RecoveryOptions{}, "b", ""},
		"as much":                {[]RecoveryMember{member("b", found(7, 3)), member("a", found(7, 3))}, RecoveryOptions{}, "a", ""},
		"named":                  {[]RecoveryMember{member("a", found(7, 3)), member("b", found(9, 3))}, RecoveryOptions{Survivor: "a"}, "a", ""},
		"named, and unknown":     {[]RecoveryMember{member("a", found(7, 3))}, RecoveryOptions{Survivor: "x"}, "", reasonNoSurvivor},
		"named, without a Node":  {[]RecoveryMember{{Machine: "a"}}, RecoveryOptions{Survivor: "a"}, "", reasonNoSurvivor},
		"a quorum":               {[]RecoveryMember{member("a", leads), member("b", leads), member("c", lost)}, RecoveryOptions{Survivor: "a", Force: true}, "", reasonNotNeeded},
		"none answers":           {[]RecoveryMember{member("a"), member("b", lost), member("c", lost)}, RecoveryOptions{}, "", reasonNoSurvivor},
		"none answers, by hand":  {[]RecoveryMember{member("a"), member("b", lost), member("c", lost)}, RecoveryOptions{Manual: true}, "a", ""},
		"two left, by hand":      {[]RecoveryMember{member("a"), member("b"), member("c", lost)}, RecoveryOptions{Manual: true}, "", reasonNoSurvivor},
		"none is left":           {[]RecoveryMember{member("a", lost), member("b", func(m *RecoveryMember) { m.Problem = "no data" })}, RecoveryOptions{}, "", reasonNoSurvivor},
		"one of two has trouble": {[]RecoveryMember{member("a", func(m *RecoveryMember) { m.Problem = "no data" }), member("b", found(1, 1))}, RecoveryOptions{}, "b", ""},
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
	created := func(hours int) func(*RecoveryMember) {
		return func(m *RecoveryMember) { m.Created = at.Add(time.Duration(hours) * time.Hour) }
	}
	silent := func(m *RecoveryMember) { m.Problem = "its member does not answer" }
	tests := map[string]struct {
		members []RecoveryMember
		named   string
		want    string
	}{
		"the oldest":          {[]RecoveryMember{member("a", created(-1)), member("b", created(-3), leads), member("c", created(-2))}, "", "b"},
		"of those that run":   {[]RecoveryMember{member("a", created(-1)), member("b", created(-3), lost)}, "", "a"},
		"of those that speak": {[]RecoveryMember{member("a", created(-1)), member("b", created(-3), silent)}, "", "a"},
		"silent ones, too":    {[]RecoveryMember{member("a", created(-1), silent)}, "", "a"},
		"all are newer":       {[]RecoveryMember{member("a", created(1))}, "", ""},
		"none runs":           {[]RecoveryMember{member("a", created(-1), lost)}, "", ""},
		"named":               {[]RecoveryMember{member("a", created(-1)), member("b", created(-3))}, "a", "a"},
		"named, and newer":    {[]RecoveryMember{member("a", created(1)), member("b", created(-3))}, "a", ""},
		"named, and unknown":  {[]RecoveryMember{member("b", created(-3))}, "x", ""},
	}
	for name, tt := range tests {
		got, err := chooseForSnapshot("kcp", tt.members, RecoveryOptions{Survivor: tt.named}, Snapshot{Name: "c1-20261125T120000Z", Time: at})
		if f := fault.As(err); got.Machine != tt.want || (f != nil && f.Reason == reasonNoSurvivor) != (tt.want == "") {
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
	p := RecoveryPlan{Cluster: "c1", Survivor: "a", Members: []RecoveryMember{member("a", found(7, 3)), member("b", found(9, 4)), member("c", lost)}, Force: true}
	text := strings.Join(p.Lines(), "\n")
	for _, want := range []string{
		"etcd is rebuilt from the member of Machine a.", "Machine a: left, without a leader, at revision 3 (index 7) (survivor)", "Machine c: lost: it does not run",
		"Kept: everything up to revision 3.", "Lost: newer data of Machine b, whose member has a higher index (9, not 7).", "Not known: whether unreachable members",
		"replaced: b, c", "With --force", "The API is not available until then.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	p.Snapshot = &RecoverySnapshot{Snapshot: Snapshot{Name: "c1-20261125T120000Z", Policy: "nightly", Time: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC), Revision: 2}, Since: []string{"w"}, age: 90 * time.Minute}
	text = strings.Join(p.Lines(), "\n")
	for _, want := range []string{
		"from snapshot c1-20261125T120000Z of EtcdSnapshotPolicy nightly, on Machine a.", "at the time of the snapshot, 2026-11-25T12:00:00Z (1h30m0s ago), revision 2.",
		"Lost: all later writes to its API, up to revision 3.", "must join again: w", "replaced: b, c",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	under := RecoveryPlan{Cluster: "c1", Survivor: "a", UnderWay: true, ID: "20261125T131500Z"}.Lines()
	if len(under) != 1 || !strings.Contains(under[0], "is under way (20261125T131500Z)") {
		t.Errorf("%v", under)
	}
}
