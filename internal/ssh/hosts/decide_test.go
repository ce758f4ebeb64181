package hosts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	claimA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	claimB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func sshHost(change func(*infrav1.SSHHost)) *infrav1.SSHHost {
	o := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: "h", UID: "u", Generation: 1, Finalizers: []string{infrav1.SSHHostFinalizer}}}
	o.Spec.Address, o.Spec.User, o.Spec.HostKeys, o.Spec.CredentialsRef.Name = "192.0.2.1", "root", []string{"k"}, "key"
	if change != nil {
		change(o)
	}
	return o
}

// claimed adds the claim of SSHMachine team-a/m.
func claimed(o *infrav1.SSHHost) {
	o.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimA}
	o.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}
	o.Labels = map[string]string{infrastructure.MoveHierarchyLabel: infrastructure.MoveInUse}
}

func confirmed(o *infrav1.SSHHost) {
	claimed(o)
	o.Status.ConfirmedClaimID = claimA
}

func released(o *infrav1.SSHHost) {
	confirmed(o)
	o.Status.Claim.Released = ptr.To(true)
}

func machine(provisioned bool) *infrav1.SSHMachine {
	m := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m", UID: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	m.Spec.ClaimID, m.Spec.ProviderID = claimA, "ssh://"+claimA
	m.Status.Initialization.Provisioned = &provisioned
	return m
}

func free() *hostCheck { return &hostCheck{At: now, Generation: 1, Preflight: true} }

func with(record string) *hostCheck {
	return &hostCheck{At: now, Generation: 1, Record: &remote.Record{ClaimID: record, Namespace: "team-a", Name: "m"}}
}

func TestDecide(t *testing.T) {
	cluster := client.ObjectKey{Namespace: "team-a", Name: "c"}
	ofCluster := func(o *infrav1.SSHHost) { released(o); o.Status.Claim.ClusterName = "c" }
	returned := &nodeSearch{Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "h", UID: "n"}}}}
	remains := "the Node with provider ID ssh://" + claimA + " may remain in Cluster team-a/c: delete it"
	swap := remote.Finding{Check: "Swap", Problem: "swap is enabled", Remedy: "turn it off", Fatal: true}
	former := remote.Finding{Check: "FormerNode", Problem: "the host has the network device cni0 of a former node", Remedy: "have it removed", Fatal: true, FormerNode: true}
	deleting := func(o *infrav1.SSHHost) { o.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	ask := func(id string) func(*infrav1.SSHHost) {
		return func(o *infrav1.SSHHost) { o.Annotations = map[string]string{infrav1.CleanHostAnnotation: id} }
	}
	ended := func(err error, ago time.Duration) jobs.State {
		return jobs.State{What: "clean " + claimA, Ended: now.Add(-ago), Err: err}
	}
	unclean := fault.New(fault.Invalid, reasonNotClean, "the host could not be cleaned completely: mount /x")
	for name, tc := range map[string]struct {
		reason   string
		object   func(*infrav1.SSHHost)
		snapshot snapshot
		want     []reconciler.Action
		reads    int
		state    infrav1.SSHHostState
		wait     string // reason of the wait
	}{
		"new":              {reason: "nothing is known", reads: 1, state: infrav1.SSHHostUnreachable},
		"old check":        {reason: "it is not current", snapshot: snapshot{Check: &hostCheck{At: now.Add(-checkInterval), Generation: 1, Preflight: true}}, reads: 1, state: infrav1.SSHHostUnreachable},
		"spec changed":     {reason: "the check is about another address", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 0, Preflight: true}}, reads: 1, state: infrav1.SSHHostUnreachable},
		"not preflighted":  {reason: "it was used when it was checked", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1}}, reads: 1, state: infrav1.SSHHostUnreachable},
		"denied":           {reason: "no connection is made", snapshot: snapshot{Denied: "no"}, state: infrav1.SSHHostUnreachable, wait: reasonDenied},
		"free":             {reason: "all is well", snapshot: snapshot{Check: free()}, state: infrav1.SSHHostAvailable},
		"no response":      {reason: "it may come back", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, Fault: fault.New(fault.Unreachable, remote.ReasonUnreachable, "no")}}, state: infrav1.SSHHostUnreachable, wait: remote.ReasonUnreachable},
		"another key":      {reason: "the operator has to compare keys", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, Fault: fault.New(fault.Invalid, remote.ReasonHostKeyMismatch, "no")}}, state: infrav1.SSHHostUnreachable, wait: remote.ReasonHostKeyMismatch},
		"preflight":        {reason: "it cannot become a node", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, Preflight: true, Findings: []remote.Finding{swap}}}, state: infrav1.SSHHostQuarantined, wait: reasonPreflight},
		"foreign record":   {reason: "another machine's", snapshot: snapshot{Check: with(claimB)}, state: infrav1.SSHHostQuarantined, wait: reasonForeign},
		"invalid record":   {reason: "somebody's file", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, InvalidRecord: "it is not a record"}}, state: infrav1.SSHHostQuarantined, wait: reasonInvalid},
		"kubelet":          {reason: "somebody's node", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, Facts: remote.Facts{KubeletRunning: true}}}, state: infrav1.SSHHostQuarantined, wait: reasonKubelet},
		"claimed, first":   {"the namespace is noted before the record", func(o *infrav1.SSHHost) { claimed(o); o.Annotations = nil }, snapshot{Check: free(), Machine: machine(false)}, []reconciler.Action{noteUse{"team-a"}}, 0, infrav1.SSHHostPreparing, ""},
		"claimed":          {"the record makes it safe", claimed, snapshot{Check: free(), Machine: machine(false)}, []reconciler.Action{recordClaim{claimA, "team-a/m"}}, 0, infrav1.SSHHostPreparing, ""},
		"claimed, unknown": {"the cache may lack its SSHMachine", claimed, snapshot{Check: free()}, nil, 0, infrav1.SSHHostPreparing, reasonMachineLost},
		"claimed, abandoned": {"its SSHMachine was removed by force", func(o *infrav1.SSHHost) {
			claimed(o)
			o.Status.State, o.Status.StateSince = infrav1.SSHHostPreparing, ptr.To(metav1.NewTime(now.Add(-3*time.Minute)))
		}, snapshot{Check: free()}, []reconciler.Action{dropClaim{claimA, "its SSHMachine does not exist, and the claim was never recorded"}}, 0, infrav1.SSHHostPreparing, ""},
		"claimed, preflight":       {"nothing on it was changed", claimed, snapshot{Check: &hostCheck{At: now, Generation: 1, Preflight: true, Findings: []remote.Finding{swap}}, Machine: machine(false)}, nil, 0, infrav1.SSHHostQuarantined, reasonPreflight},
		"claimed, foreign":         {"another management cluster was faster", claimed, snapshot{Check: with(claimB), Machine: machine(false)}, nil, 0, infrav1.SSHHostQuarantined, reasonForeign},
		"recorded":                 {"it is being prepared", confirmed, snapshot{Check: with(claimA), Machine: machine(false)}, nil, 0, infrav1.SSHHostPreparing, ""},
		"in use":                   {"it is a node", confirmed, snapshot{Check: with(claimA), Machine: machine(true)}, nil, 0, infrav1.SSHHostInUse, ""},
		"status lost":              {"the record confirms the claim", claimed, snapshot{Check: with(claimA), Machine: machine(true)}, nil, 0, infrav1.SSHHostInUse, ""},
		"record lost":              {"the machine was reinstalled", confirmed, snapshot{Check: &hostCheck{At: now, Generation: 1}, Machine: machine(true)}, nil, 0, infrav1.SSHHostQuarantined, reasonRecordLost},
		"machine missing":          {"it may have moved away", confirmed, snapshot{Check: with(claimA)}, nil, 0, infrav1.SSHHostQuarantined, reasonMachineLost},
		"released":                 {"nothing uses it", released, snapshot{Check: with(claimA)}, []reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"cleaning":                 {"the job runs", released, snapshot{Check: with(claimA), Cleaning: jobs.State{Running: true}}, nil, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"others clean":             {"the job has to wait for others", released, snapshot{Check: with(claimA), Cleaning: jobs.State{Busy: true}}, nil, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"clean":                    {"it is free again", released, snapshot{Check: with(claimA), Cleaning: ended(nil, time.Second)}, []reconciler.Action{finishCleaning{Claim: claimA}}, 0, infrav1.SSHHostCleaning, ""},
		"clean, Node unknown":      {"the kubelet may have registered it again", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, time.Second)}, nil, 1, infrav1.SSHHostCleaning, ""},
		"clean, no Node":           {"it is free again", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, time.Second), Nodes: &nodeSearch{}}, []reconciler.Action{finishCleaning{Claim: claimA}}, 0, infrav1.SSHHostCleaning, ""},
		"clean, Node":              {"nothing else deletes it", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, time.Second), Nodes: returned}, []reconciler.Action{deleteNode{cluster, "h", "n"}}, 0, infrav1.SSHHostCleaning, reasonNode},
		"clean, no response":       {"the Node may be there", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, nodeTimeout-time.Second), Nodes: &nodeSearch{Problem: "no"}}, nil, 0, infrav1.SSHHostCleaning, reasonNode},
		"clean, never a response":  {"a cluster cannot withhold the host", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, nodeTimeout), Nodes: &nodeSearch{Problem: "no"}}, []reconciler.Action{finishCleaning{claimA, remains}}, 0, infrav1.SSHHostCleaning, ""},
		"clean, Node stays":        {"a cluster cannot withhold the host", ofCluster, snapshot{Check: with(claimA), Cleaning: ended(nil, nodeTimeout), Nodes: returned}, []reconciler.Action{finishCleaning{claimA, remains}}, 0, infrav1.SSHHostCleaning, ""},
		"clean, its machine waits": {"the controller of the Machine deletes the Node", ofCluster, snapshot{Check: with(claimA), Machine: machine(true), Cleaning: ended(nil, time.Second)}, []reconciler.Action{finishCleaning{Claim: claimA}}, 0, infrav1.SSHHostCleaning, ""},
		"requested, clean": {"the record of another claim names no Cluster that can be trusted", func(o *infrav1.SSHHost) {
			o.Annotations = map[string]string{infrav1.CleanHostAnnotation: claimB}
		}, snapshot{Check: with(claimB), Cleaning: jobs.State{What: "clean " + claimB, Ended: now}}, []reconciler.Action{finishCleaning{Claim: claimB}}, 0, infrav1.SSHHostCleaning, ""},
		"result of before":  {"the job was for another claim", released, snapshot{Check: with(claimA), Cleaning: jobs.State{What: "clean " + claimB, Ended: now}}, []reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"not clean":         {"it is never reused silently", released, snapshot{Check: with(claimA), Cleaning: ended(unclean, time.Second)}, nil, 0, infrav1.SSHHostQuarantined, reasonNotClean},
		"not clean, later":  {"it is tried again", released, snapshot{Check: with(claimA), Cleaning: ended(unclean, uncleanInterval)}, []reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"connection lost":   {"it may come back", released, snapshot{Check: with(claimA), Machine: machine(true), Cleaning: ended(fault.New(fault.Unreachable, remote.ReasonUnreachable, "no"), time.Second)}, nil, 0, infrav1.SSHHostUnreachable, remote.ReasonUnreachable},
		"script failed":     {"it is not clean", released, snapshot{Check: with(claimA), Cleaning: ended(errors.New("boom"), time.Second)}, nil, 0, infrav1.SSHHostQuarantined, reasonNotClean},
		"record deleted":    {"a tenant cannot avoid the cleaning", released, snapshot{Check: &hostCheck{At: now, Generation: 1}}, []reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"released, foreign": {"a tenant could have written the record, so that the host is not cleaned", released, snapshot{Check: with(claimB)}, nil, 0, infrav1.SSHHostQuarantined, reasonForeign},
		"released, kubelet": {"a tenant could have deleted the record of a node", released, snapshot{Check: &hostCheck{At: now, Generation: 1, Facts: remote.Facts{KubeletRunning: true}}}, nil, 0, infrav1.SSHHostQuarantined, reasonKubelet},
		"released, invalid": {"a tenant could have written the file", released, snapshot{Check: &hostCheck{At: now, Generation: 1, InvalidRecord: "it is not a record"}}, nil, 0, infrav1.SSHHostQuarantined, reasonInvalid},
		"deleting, lost": {"the machine is gone for good", func(o *infrav1.SSHHost) {
			released(o)
			deleting(o)
			o.Annotations = map[string]string{infrav1.ForceReleaseAnnotation: "true"}
		}, snapshot{}, []reconciler.Action{dropClaim{claimA, "the SSHHost is being deleted, and the machine is lost"}}, 0, infrav1.SSHHostCleaning, ""},
		"deleting, used, lost": {"a machine uses it", func(o *infrav1.SSHHost) {
			confirmed(o)
			deleting(o)
			o.Annotations = map[string]string{infrav1.ForceReleaseAnnotation: "true"}
		}, snapshot{Check: with(claimA), Machine: machine(true)}, []reconciler.Action{noteUse{"team-a"}}, 0, infrav1.SSHHostInUse, reasonInUse},
		"never recorded": {"nothing was changed", func(o *infrav1.SSHHost) { released(o); o.Status.ConfirmedClaimID = "" }, snapshot{Check: free()},
			[]reconciler.Action{dropClaim{claimA, "it was released and never recorded on the host"}}, 0, infrav1.SSHHostCleaning, ""},
		"released, unreachable": {"its machine waits", released, snapshot{Machine: machine(true), Check: &hostCheck{At: now, Generation: 1, Fault: fault.New(fault.Unreachable, remote.ReasonUnreachable, "no")}}, nil, 0, infrav1.SSHHostUnreachable, remote.ReasonUnreachable},
		"forced, unreachable":   {"nobody waits, and its node may still run", released, snapshot{Check: &hostCheck{At: now, Generation: 1, Fault: fault.New(fault.Unreachable, remote.ReasonUnreachable, "no")}}, nil, 0, infrav1.SSHHostQuarantined, reasonForced},
		"forced, cut":           {"the connection was lost while it was cleaned", released, snapshot{Check: with(claimA), Cleaning: ended(fault.New(fault.Unreachable, remote.ReasonUnreachable, "no"), time.Second)}, nil, 0, infrav1.SSHHostQuarantined, reasonForced},
		"forced, responds":      {"it was seen, so it is cleaned", released, snapshot{Check: with(claimA)}, []reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"asked to clean":        {"the operator names the record", ask(claimB), snapshot{Check: with(claimB)}, []reconciler.Action{clean{Claim: claimB}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"asked for another":     {"the request is about something else", ask(claimA), snapshot{Check: with(claimB)}, []reconciler.Action{removeRequest{claimA}}, 0, infrav1.SSHHostQuarantined, ""},
		"former node":           {reason: "it would harm the next one", snapshot: snapshot{Check: &hostCheck{At: now, Generation: 1, Preflight: true, Findings: []remote.Finding{former}}}, state: infrav1.SSHHostQuarantined, wait: reasonPreflight},
		"asked for remains":     {"of another installer", ask(infrav1.CleanUnrecorded), snapshot{Check: &hostCheck{At: now, Generation: 1, Preflight: true, Findings: []remote.Finding{former}}}, []reconciler.Action{clean{infrav1.CleanUnrecorded, false}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"asked for swap":        {"cleaning cannot change it", ask(infrav1.CleanUnrecorded), snapshot{Check: &hostCheck{At: now, Generation: 1, Preflight: true, Findings: []remote.Finding{swap}}}, []reconciler.Action{removeRequest{infrav1.CleanUnrecorded}}, 0, infrav1.SSHHostQuarantined, ""},
		"asked for nothing":     {"the host is free", ask(claimA), snapshot{Check: free()}, []reconciler.Action{removeRequest{claimA}}, 0, infrav1.SSHHostQuarantined, ""},
		"asked for a node": {"its SSHMachine exists", func(o *infrav1.SSHHost) { confirmed(o); o.Annotations[infrav1.CleanHostAnnotation] = claimA }, snapshot{Check: with(claimA), Machine: machine(true)},
			[]reconciler.Action{removeRequest{claimA}}, 0, infrav1.SSHHostQuarantined, ""},
		"asked for a lost node": {"its SSHMachine is gone", func(o *infrav1.SSHHost) { confirmed(o); o.Annotations[infrav1.CleanHostAnnotation] = claimA }, snapshot{Check: with(claimA)},
			[]reconciler.Action{clean{Claim: claimA}}, 0, infrav1.SSHHostCleaning, reasonCleaning},
		"adopting":         {"a move brought the host and its SSHMachine", nil, snapshot{Check: with(claimA), Adopter: machine(false)}, nil, 0, infrav1.SSHHostPreparing, reasonAdopting},
		"adopting, asked":  {"its SSHMachine exists", ask(claimA), snapshot{Check: with(claimA), Adopter: machine(false)}, []reconciler.Action{removeRequest{claimA}}, 0, infrav1.SSHHostQuarantined, ""},
		"in use, restored": {"clusterctl would leave it behind", func(o *infrav1.SSHHost) { confirmed(o); o.Labels = nil }, snapshot{Check: with(claimA), Machine: machine(true)}, []reconciler.Action{noteUse{"team-a"}}, 0, infrav1.SSHHostInUse, ""},
		"free again":       {"clusterctl would move it", func(o *infrav1.SSHHost) { claimed(o); o.Status.Claim = nil }, snapshot{Check: free()}, []reconciler.Action{removeUse{}}, 0, infrav1.SSHHostAvailable, ""},
		"labeled, free":    {"the operator wants it to move", func(o *infrav1.SSHHost) { o.Labels = map[string]string{infrastructure.MoveHierarchyLabel: ""} }, snapshot{Check: free()}, nil, 0, infrav1.SSHHostAvailable, ""},
		"labeled, in use":  {"the label of the operator stays", func(o *infrav1.SSHHost) { confirmed(o); o.Labels[infrastructure.MoveHierarchyLabel] = "" }, snapshot{Check: with(claimA), Machine: machine(true)}, nil, 0, infrav1.SSHHostInUse, ""},
		"deleting, free":   {"nothing uses it", deleting, snapshot{}, nil, 0, "", ""},
		"deleting, in use": {"its connection is needed to clean it", func(o *infrav1.SSHHost) { confirmed(o); deleting(o) }, snapshot{Check: with(claimA), Machine: machine(true)}, nil, 0, infrav1.SSHHostInUse, reasonInUse},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.snapshot
			s.Object, s.Now = sshHost(tc.object), now
			p := decide(s)
			if diff := cmp.Diff(tc.want, p.Actions); diff != "" {
				t.Errorf("%s: actions (-want +got):\n%s", tc.reason, diff)
			}
			if len(p.Reads) != tc.reads {
				t.Errorf("%s: reads %v", tc.reason, p.Reads)
			}
			if got := states()[p.Stage.Order]; got != tc.state && tc.reads == 0 {
				t.Errorf("%s: state %q, want %q", tc.reason, got, tc.state)
			}
			switch {
			case tc.wait == "" && len(p.Waits) > 0, tc.wait != "" && (len(p.Waits) != 1 || p.Waits[0].Reason != tc.wait):
				t.Errorf("%s: waits %+v, want %q", tc.reason, p.Waits, tc.wait)
			}
			if s.Check != nil && p.Recheck == 0 && tc.state != "" && tc.reads == 0 {
				t.Errorf("%s: the host is not checked again", tc.reason)
			}
		})
	}
}

func TestReport(t *testing.T) {
	report := func(s snapshot, out reconciler.Outcome) infrav1.SSHHostStatus {
		return report(s, decide(s), out).Status.(infrav1.SSHHostStatus)
	}
	check := free()
	check.Facts = remote.Facts{Hostname: "h", CPUs: 2, MemoryMiB: 1 << 60, Architecture: "amd64", ClockOffset: 40 * time.Second, Disks: []remote.Disk{{Name: "sda", SizeMiB: 1 << 60}}, SecurityModule: "AppArmor",
		Cleaning: &remote.CleaningRecord{ClaimID: claimA, CleanedAt: now, Verified: []string{"mounts", ""}}, Bundles: []string{strings.Repeat("a", 64)}}
	check.Findings = []remote.Finding{{Check: "Cgroup", Problem: "the host has control groups v1", Remedy: "it is handled"}}
	s := snapshot{Object: sshHost(nil), Check: check, Now: now, Versions: map[string]string{strings.Repeat("a", 64): "v1.36.3"}}
	got := report(s, reconciler.Outcome{})
	c := condition.Set(got.Conditions)
	if !c.IsTrue(infrav1.AvailableCondition) || !c.IsTrue(infrav1.ReachableCondition) || !c.IsTrue(infrav1.PreflightPassedCondition) {
		t.Errorf("conditions %+v", got.Conditions)
	}
	if m := c.Get(infrav1.PreflightPassedCondition).Message; !strings.Contains(m, "* The host has control groups v1; it is handled") {
		t.Errorf("the warning is missing: %q", m)
	}
	if diff := cmp.Diff(&infrav1.SSHHostCleaningRecord{ClaimID: claimA, Time: ptr.To(metav1.NewTime(now)), Verified: []string{"mounts"}}, got.LastCleaning); diff != "" {
		t.Errorf("last cleaning: %s", diff)
	}
	if got.State != infrav1.SSHHostAvailable || !got.StateSince.Time.Equal(now) || got.Claim != nil || got.Facts.Hostname != "h" || got.Facts.MemoryMiB != maxMiB || ptr.Deref(got.Facts.ClockOffsetSeconds, 0) != 60 ||
		len(got.Facts.Disks) != 1 || got.Facts.Disks[0] != (infrav1.SSHHostDisk{Name: "sda", SizeMiB: maxMiB}) || got.Facts.SecurityModule != "AppArmor" || len(got.Bundles) != 1 || got.Bundles[0].Version != "v1.36.3" {
		t.Errorf("status %+v", got)
	}

	s.Object.Spec.Maintenance = ptr.To(true)
	if c := condition.Set(report(s, reconciler.Outcome{}).Conditions).Get(infrav1.AvailableCondition); c.Status != "False" || c.Reason != reasonMaintenance {
		t.Errorf("in maintenance: %+v", c)
	}

	// The claim is confirmed in the same reconciliation, and the time of a state changes with the state.
	s = snapshot{Object: sshHost(claimed), Check: free(), Machine: machine(false), Now: now.Add(time.Hour)}
	s.Check.At = s.Now
	s.Object.Status.State, s.Object.Status.StateSince = infrav1.SSHHostPreparing, ptr.To(metav1.NewTime(now))
	got = report(s, reconciler.Outcome{Done: []reconciler.Action{recordClaim{claimA, "team-a/m"}}})
	if got.ConfirmedClaimID != claimA || got.Record == nil || got.Record.ClaimID != claimA || got.Claim != nil || !got.StateSince.Time.Equal(now) || got.LastNamespace != "team-a" {
		t.Errorf("recorded: %+v", got)
	}
	if got = report(s, reconciler.Outcome{}); got.ConfirmedClaimID != "" || got.Record != nil {
		t.Errorf("not recorded yet: %+v", got)
	}

	// The UID belongs to the namespace in the annotation: after a move only the name is known, and somebody may change it.
	for name, tc := range map[string]struct {
		annotation, reported, uid, want string
	}{
		"known": {"team-a", "team-a", "uid-a", "uid-a"}, "moved": {"team-a", "", "", ""}, "reinstalled": {"", "team-a", "uid-a", ""}, "changed": {"team-b", "team-a", "uid-a", ""},
	} {
		s := snapshot{Object: sshHost(nil), Check: free(), Now: now}
		s.Object.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: tc.annotation}
		s.Object.Status.LastNamespace, s.Object.Status.LastNamespaceUID = tc.reported, tc.uid
		if got := report(s, reconciler.Outcome{}); got.LastNamespaceUID != tc.want || got.LastNamespace != tc.annotation {
			t.Errorf("%s: %q (%q), want %q", name, got.LastNamespace, got.LastNamespaceUID, tc.want)
		}
	}

	// A clean host has no claim.
	s = snapshot{Object: sshHost(released), Check: with(claimA), Now: now}
	got = report(s, reconciler.Outcome{Done: []reconciler.Action{finishCleaning{Claim: claimA}}})
	if got.ConfirmedClaimID != "" || got.Record != nil {
		t.Errorf("clean: %+v", got)
	}

	// What is known of a host that does not respond stays.
	s = snapshot{Object: sshHost(confirmed), Check: &hostCheck{At: now, Generation: 1, Fault: fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond")}, Machine: machine(true), Now: now}
	s.Object.Status.Facts.Hostname, s.Object.Status.Record = "h", &infrav1.SSHHostRecord{ClaimID: claimA}
	got = report(s, reconciler.Outcome{})
	if got.Facts.Hostname != "h" || got.Record == nil || got.ConfirmedClaimID != claimA || got.State != infrav1.SSHHostUnreachable {
		t.Errorf("unreachable: %+v", got)
	}
	if c := condition.Set(got.Conditions).Get(infrav1.ReachableCondition); c.Status != "False" || c.Message != "Host h does not respond" {
		t.Errorf("unreachable: %+v", c)
	}
}
