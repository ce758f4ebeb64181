package machines

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	claimA = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	claimB = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func sshMachine(change func(*infrav1.SSHMachine)) *infrav1.SSHMachine {
	o := &infrav1.SSHMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "m", UID: "u", Generation: 1, CreationTimestamp: metav1.NewTime(now), Finalizers: []string{infrav1.SSHMachineFinalizer},
		Labels:          map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "core", UID: "core"}},
	}}
	o.Spec.Bundle = infrav1.SSHBundleManaged
	if change != nil {
		change(o)
	}
	return o
}

func identified(o *infrav1.SSHMachine) {
	o.Spec.ClaimID, o.Spec.ProviderID = claimA, inventory.ProviderID(claimA)
}

func provisioned(o *infrav1.SSHMachine) {
	identified(o)
	o.Status.Initialization.Provisioned = ptr.To(true)
}

func wasPrepared(o *infrav1.SSHMachine) {
	identified(o)
	o.Status.Conditions = []metav1.Condition{{Type: infrav1.HostPreparedCondition, Status: metav1.ConditionTrue, Reason: reasonPrepared}}
}

func coreMachine(change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "core", UID: "core"}}
	m.Spec.ClusterName, m.Spec.Version, m.Spec.Bootstrap.DataSecretName = "c", "v1.36.3", ptr.To("boot")
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: "m"}
	if change != nil {
		change(m)
	}
	return m
}

func coreCluster(provisioned bool) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c"}}
	c.Status.Initialization.InfrastructureProvisioned, c.Status.Initialization.ControlPlaneInitialized = &provisioned, &provisioned
	return c
}

func sshHost(name string, change func(*infrav1.SSHHost)) *infrav1.SSHHost {
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts", Name: name, UID: types.UID(name), Generation: 1}}
	h.Spec.Address, h.Spec.User, h.Spec.CredentialsRef.Name, h.Spec.OfferedTo, h.Spec.FailureDomain = "192.0.2.1", "root", "key", &metav1.LabelSelector{}, "rack-1"
	h.Status.State, h.Status.ObservedGeneration = infrav1.SSHHostAvailable, 1
	h.Status.Facts = infrav1.SSHHostFacts{Hostname: name, Architecture: "amd64"}
	h.Status.Conditions = []metav1.Condition{{Type: infrav1.ReachableCondition, Status: "True", Reason: "Connected"}}
	if change != nil {
		change(h)
	}
	return h
}

func claimed(h *infrav1.SSHHost) {
	h.Status.State = infrav1.SSHHostPreparing
	h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimA}
}

func confirmed(h *infrav1.SSHHost) {
	claimed(h)
	h.Status.ConfirmedClaimID = claimA
}

func released(h *infrav1.SSHHost) {
	confirmed(h)
	h.Status.Claim.Released, h.Status.State = ptr.To(true), infrav1.SSHHostCleaning
}

func in(state infrav1.SSHHostState, then func(*infrav1.SSHHost)) func(*infrav1.SSHHost) {
	return func(h *infrav1.SSHHost) { then(h); h.Status.State = state }
}

func progress(state remote.BootstrapState) *remote.Progress { return &remote.Progress{State: state} }

func theBundle() bundle.Bundle {
	return bundle.Bundle{Digest: strings.Repeat("d", 64), Manifest: bundle.Manifest{KubernetesVersion: "v1.36.3", Architecture: "amd64"}}
}

const preparation = "prepare host hosts/h for claim " + claimA + " with bundle dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"

func TestDecide(t *testing.T) {
	h := func(change func(*infrav1.SSHHost)) *infrav1.SSHHost { return sshHost("h", change) }
	list := func(hosts ...*infrav1.SSHHost) []*infrav1.SSHHost { return hosts }
	prepared := jobs.State{What: preparation, Ended: now.Add(-time.Second)}
	failed := func(err error, ago time.Duration) jobs.State {
		return jobs.State{What: preparation, Ended: now.Add(-ago), Err: err}
	}
	deleting := func(then func(*infrav1.SSHMachine)) func(*infrav1.SSHMachine) {
		return func(o *infrav1.SSHMachine) { then(o); o.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	}
	forced := func(o *infrav1.SSHMachine) {
		deleting(provisioned)(o)
		o.Annotations = map[string]string{infrav1.ForceReleaseAnnotation: "true"}
	}
	recorded := func(h *infrav1.SSHHost) {
		h.Status.Record = &infrav1.SSHHostRecord{ClaimID: claimA, Namespace: "team-a", Name: "m"}
	}
	since := func(then func(*infrav1.SSHHost), ago time.Duration) func(*infrav1.SSHHost) {
		return func(h *infrav1.SSHHost) { then(h); h.Status.StateSince = ptr.To(metav1.NewTime(now.Add(-ago))) }
	}
	remediated := func(reason string) *clusterv1.Machine {
		return coreMachine(func(m *clusterv1.Machine) {
			m.DeletionTimestamp = ptr.To(metav1.NewTime(now))
			m.Status.Conditions = []metav1.Condition{
				{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason},
				{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: reason},
			}
		})
	}
	replaced := remediated(clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	patient := func(seconds int32) func(*infrav1.SSHMachine) {
		return func(o *infrav1.SSHMachine) {
			deleting(provisioned)(o)
			o.Spec.Cleaning.UnreachableTimeoutSeconds = &seconds
		}
	}
	lost := func(ago time.Duration) *infrav1.SSHHost {
		return h(since(in(infrav1.SSHHostUnreachable, released), ago))
	}
	preflight := fault.New(fault.Invalid, reasonPreflight, "the host cannot become this node")
	damaged := fault.New(fault.Invalid, "DiskSuspected", "bin/kubelet is damaged on host h each time it is copied").RetryIn(10 * time.Minute)
	gone := fault.New(fault.Unreachable, remote.ReasonUnreachable, "host h does not respond")
	for name, tc := range map[string]struct {
		reason   string
		object   func(*infrav1.SSHMachine)
		snapshot snapshot
		want     []reconciler.Action
		reads    int
		stage    int
		wait     string
	}{
		"no owner":            {"it is not used yet", nil, snapshot{Cluster: coreCluster(true), Hosts: list(h(nil))}, nil, 0, stageClaim, reasonOwner},
		"no cluster":          {"its infrastructure is first", nil, snapshot{Machine: coreMachine(nil)}, nil, 0, stageClaim, reasonInfrastructure},
		"no infrastructure":   {"its infrastructure is first", nil, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(false)}, nil, 0, stageClaim, reasonInfrastructure},
		"no claim ID":         {"it stands in the spec before a host is claimed", nil, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Hosts: list(h(nil))}, []reconciler.Action{identify{}}, 0, stageClaim, ""},
		"half an identity":    {"a restore lost the provider ID", func(o *infrav1.SSHMachine) { o.Spec.ClaimID = claimA }, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true)}, []reconciler.Action{identify{}}, 0, stageClaim, ""},
		"claim":               {"a host is free", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Hosts: list(h(nil))}, []reconciler.Action{claimHost{"hosts/h", "it is available and matches"}}, 0, stageClaim, ""},
		"no host":             {"none is free", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Hosts: list(h(in(infrav1.SSHHostInUse, func(h *infrav1.SSHHost) { h.Status.Claim = &infrav1.SSHHostClaim{} })))}, nil, 0, stageClaim, reasonNoHost},
		"stale":               {"the last claim may be another host's", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Hosts: list(h(nil)), Stale: true}, nil, 0, stageClaim, reasonClaiming},
		"restored":            {"its host has the record", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Recorded: list(h(recorded))}, []reconciler.Action{claimHost{"hosts/h", "it has the record of this machine"}}, 0, stageClaim, ""},
		"restored, not known": {"another host would be a second node", identified, snapshot{Machine: coreMachine(func(m *clusterv1.Machine) { m.Spec.ProviderID = "ssh://x" }), Cluster: coreCluster(true), Hosts: list(h(nil))}, nil, 0, stageClaim, reasonHostLost},
		"two records":         {"one is a forgery", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Recorded: list(h(recorded), sshHost("i", recorded))}, nil, 0, stageClaim, reasonAmbiguous},
		"moved": {"the Namespace at the target lacks the labels", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Recorded: list(h(func(h *infrav1.SSHHost) {
			recorded(h)
			h.Spec.OfferedTo, h.Annotations = nil, map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}
		}))}, []reconciler.Action{claimHost{"hosts/h", "it has the record of this machine"}}, 0, stageClaim, ""},
		"record, not offered":       {"the operator took it away", identified, snapshot{Machine: coreMachine(nil), Cluster: coreCluster(true), Recorded: list(h(func(h *infrav1.SSHHost) { recorded(h); h.Spec.OfferedTo = nil }))}, nil, 0, stageClaim, reasonNoHost},
		"two claims":                {"a machine has one host", identified, snapshot{Host: h(confirmed), Surplus: list(sshHost("i", claimed))}, []reconciler.Action{dropClaim{"hosts/i", "host hosts/h has the claim too"}}, 0, stageClaim, ""},
		"not recorded":              {"nothing is changed before the record", identified, snapshot{Host: h(claimed)}, nil, 0, stageClaim, reasonRecording},
		"taken by others":           {"another management cluster has it", identified, snapshot{Host: h(in(infrav1.SSHHostQuarantined, claimed))}, []reconciler.Action{dropClaim{"hosts/h", "the host was quarantined before anything on it was changed"}}, 0, stageClaim, ""},
		"just adopted":              {"its record was foreign until now", identified, snapshot{Host: h(func(h *infrav1.SSHHost) { in(infrav1.SSHHostQuarantined, claimed)(h); recorded(h) })}, nil, 0, stageClaim, reasonRecording},
		"unreachable":               {"it may come back", identified, snapshot{Host: h(in(infrav1.SSHHostUnreachable, confirmed))}, nil, 0, stagePreparation, reasonUnreachable},
		"quarantined":               {"the record is lost", identified, snapshot{Host: h(in(infrav1.SSHHostQuarantined, confirmed))}, nil, 0, stagePreparation, reasonQuarantined},
		"just unreachable":          {"it may reboot", identified, snapshot{Host: h(since(in(infrav1.SSHHostUnreachable, claimed), time.Minute))}, nil, 0, stageClaim, reasonUnreachable},
		"died unrecorded":           {"another host can be used", identified, snapshot{Host: h(since(in(infrav1.SSHHostUnreachable, claimed), unrecordedTimeout))}, []reconciler.Action{releaseHost{"hosts/h", "it does not respond, and the claim was not recorded on it"}}, 0, stageClaim, ""},
		"died recorded":             {"it may be a node", identified, snapshot{Host: h(since(in(infrav1.SSHHostUnreachable, confirmed), time.Hour))}, nil, 0, stagePreparation, reasonUnreachable},
		"died, restored":            {"it may be a node, whose record the status lost", identified, snapshot{Host: h(since(in(infrav1.SSHHostUnreachable, claimed), time.Hour)), Machine: coreMachine(func(m *clusterv1.Machine) { m.Spec.ProviderID = "ssh://x" })}, nil, 0, stageClaim, reasonUnreachable},
		"unknown progress":          {"it may be a node already", identified, snapshot{Host: h(confirmed)}, nil, 1, stageBootstrap, ""},
		"connection lost":           {"it is tried again", identified, snapshot{Host: h(confirmed), Fault: gone}, nil, 0, stagePreparation, remote.ReasonUnreachable},
		"prepare":                   {"nothing is installed", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone)}, []reconciler.Action{prepare{"hosts/h", preparation}}, 0, stagePreparation, reasonPreparing},
		"preparing":                 {"it runs", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Preparing: jobs.State{Running: true}}, nil, 0, stagePreparation, reasonPreparing},
		"others prepare":            {"they are first", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: jobs.State{Busy: true}}, nil, 0, stagePreparation, reasonPreparing},
		"another bundle":            {"the job was for another", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: jobs.State{What: "prepare x", Ended: now}}, []reconciler.Action{prepare{"hosts/h", preparation}}, 0, stagePreparation, reasonPreparing},
		"preflight":                 {"the host has problems", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: failed(preflight, time.Second)}, nil, 0, stagePreparation, reasonPreflight},
		"preflight, later":          {"they may be solved", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: failed(preflight, waitRecheck)}, []reconciler.Action{prepare{"hosts/h", preparation}}, 0, stagePreparation, reasonPreparing},
		"upload cut":                {"it is continued", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: failed(gone, time.Second)}, nil, 0, stagePreparation, remote.ReasonUnreachable},
		"damaged":                   {"the disk may be defective", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: failed(damaged, 9*time.Minute)}, nil, 0, stagePreparation, "DiskSuspected"},
		"damaged, later":            {"the disk may be replaced", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: failed(damaged, 10*time.Minute)}, []reconciler.Action{prepare{"hosts/h", preparation}}, 0, stagePreparation, reasonPreparing},
		"no bundle":                 {"the operator has to build it", identified, snapshot{Host: h(confirmed), NoBundle: fault.New(fault.Invalid, "BundleMissing", "there is no bundle"), Progress: progress(remote.BootstrapNone)}, nil, 0, stagePreparation, "BundleMissing"},
		"no version":                {"which bundle?", identified, snapshot{Host: h(confirmed), Machine: coreMachine(func(m *clusterv1.Machine) { m.Spec.Version = "" }), Progress: progress(remote.BootstrapNone)}, nil, 0, stagePreparation, reasonNoVersion},
		"no node address":           {"a name is no address", identified, snapshot{Host: h(func(h *infrav1.SSHHost) { confirmed(h); h.Spec.Address = "a.example" }), Bundle: theBundle(), Progress: progress(remote.BootstrapNone)}, nil, 0, stagePreparation, "NodeAddressMissing"},
		"unreachable, prepared":     {"its data may run", wasPrepared, snapshot{Host: h(in(infrav1.SSHHostUnreachable, confirmed))}, nil, 0, stageBootstrap, reasonUnreachable},
		"connection lost, prepared": {"its data may run", wasPrepared, snapshot{Host: h(confirmed), Fault: gone}, nil, 0, stageBootstrap, remote.ReasonUnreachable},
		"without a bundle": {"the checks run nevertheless", func(o *infrav1.SSHMachine) { identified(o); o.Spec.Bundle = infrav1.SSHBundleNone }, snapshot{Host: h(confirmed), Progress: progress(remote.BootstrapNone)},
			[]reconciler.Action{prepare{"hosts/h", "prepare host hosts/h for claim " + claimA + " without a bundle"}}, 0, stagePreparation, reasonPreparing},
		"no data":       {"the host is ready before the data", identified, snapshot{Host: h(confirmed), Machine: coreMachine(func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = nil }), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: prepared}, nil, 0, stageBootstrap, infrastructure.ReasonBootstrapData},
		"bootstrap":     {"all is there", identified, snapshot{Host: h(confirmed), Bundle: theBundle(), Progress: progress(remote.BootstrapNone), Preparing: prepared}, []reconciler.Action{runBootstrap{"hosts/h", "boot"}}, 0, stageBootstrap, reasonBootstrapping},
		"bootstrapping": {"it runs, whatever became of the bundle", identified, snapshot{Host: h(confirmed), NoBundle: preflight, Progress: progress(remote.BootstrapRunning)}, nil, 0, stageBootstrap, reasonBootstrapping},
		"bootstrapped":  {"it is a node", identified, snapshot{Host: h(confirmed), Progress: progress(remote.BootstrapDone)}, nil, 0, stageProvisioned, ""},
		"failed":        {"its owner replaces it", identified, snapshot{Host: h(confirmed), Progress: progress(remote.BootstrapFailed)}, nil, 0, stageBootstrap, reasonFailed},
		"provisioned":   {"nothing is left to do", provisioned, snapshot{Host: h(in(infrav1.SSHHostInUse, confirmed))}, nil, 0, stageProvisioned, ""},
		"lost":          {"it is only reported", provisioned, snapshot{Hosts: list(h(nil))}, nil, 0, stageProvisioned, ""},

		"deleting, never claimed": {"there is no host", deleting(identified), snapshot{Hosts: list(h(nil))}, nil, 0, stageDeletion, ""},
		"deleting":                {"the host is given back", deleting(provisioned), snapshot{Host: h(in(infrav1.SSHHostInUse, confirmed))}, []reconciler.Action{releaseHost{"hosts/h", "the SSHMachine is being deleted"}}, 0, stageDeletion, reasonReleasing},
		"deleting, unchecked": {"the host may have the record of the restored machine", deleting(provisioned), snapshot{Hosts: list(h(func(h *infrav1.SSHHost) { h.Status.State = "" }))},
			nil, 0, stageDeletion, reasonUnchecked},
		"deleting, two records": {"both are cleaned", deleting(identified), snapshot{Recorded: list(h(recorded), sshHost("h2", recorded))}, []reconciler.Action{
			releaseHost{"hosts/h", "it has the record of this machine, which is being deleted"}, releaseHost{"hosts/h2", "it has the record of this machine, which is being deleted"},
		}, 0, stageDeletion, ""},
		"deleting, preparing":         {"both would change the host", deleting(identified), snapshot{Host: h(confirmed), Preparing: jobs.State{Running: true}}, []reconciler.Action{cancelPreparation{"hosts/h"}}, 0, stageDeletion, reasonReleasing},
		"deleting, restored":          {"its host is cleaned too", deleting(identified), snapshot{Recorded: list(h(recorded))}, []reconciler.Action{releaseHost{"hosts/h", "it has the record of this machine, which is being deleted"}}, 0, stageDeletion, ""},
		"cleaning":                    {"the host is not clean yet", deleting(provisioned), snapshot{Host: h(released)}, nil, 0, stageDeletion, reasonReleasing},
		"released, unreachable":       {"it is not clean", deleting(provisioned), snapshot{Host: h(in(infrav1.SSHHostUnreachable, released))}, nil, 0, stageDeletion, reasonUnreachable},
		"replaced, unreachable":       {"it may come back", deleting(provisioned), snapshot{Host: lost(defaultUnreachableTimeout - time.Second), Machine: replaced}, nil, 0, stageDeletion, reasonUnreachable},
		"replaced, lost":              {"the replacement needs no user", deleting(provisioned), snapshot{Host: lost(defaultUnreachableTimeout), Machine: replaced}, nil, 0, stageDeletion, ""},
		"replaced, not released":      {"the host is marked first", deleting(provisioned), snapshot{Host: h(since(in(infrav1.SSHHostUnreachable, confirmed), time.Hour)), Machine: replaced}, []reconciler.Action{releaseHost{"hosts/h", "the SSHMachine is being deleted"}}, 0, stageDeletion, reasonReleasing},
		"replaced, cleaning":          {"it responds", deleting(provisioned), snapshot{Host: h(since(released, time.Hour)), Machine: replaced}, nil, 0, stageDeletion, reasonReleasing},
		"replaced, other time":        {"the template chose it", patient(30), snapshot{Host: lost(30 * time.Second), Machine: replaced}, nil, 0, stageDeletion, ""},
		"replaced, patient":           {"the template chose it", patient(3600), snapshot{Host: lost(59 * time.Minute), Machine: replaced}, nil, 0, stageDeletion, reasonUnreachable},
		"replaced, never":             {"the template chose it", patient(0), snapshot{Host: lost(time.Hour), Machine: replaced}, nil, 0, stageDeletion, reasonUnreachable},
		"deleted by a user, lost":     {"the user decides", deleting(provisioned), snapshot{Host: lost(time.Hour), Machine: coreMachine(func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })}, nil, 0, stageDeletion, reasonUnreachable},
		"deleted unhealthy, lost":     {"a user deleted it before its owner did", deleting(provisioned), snapshot{Host: lost(time.Hour), Machine: remediated(clusterv1.MachineSetMachineRemediationDeferredReason)}, nil, 0, stageDeletion, reasonUnreachable},
		"replaced, not being deleted": {"only its SSHMachine was deleted", deleting(provisioned), snapshot{Host: lost(time.Hour), Machine: func() *clusterv1.Machine { m := replaced.DeepCopy(); m.DeletionTimestamp = nil; return m }()}, nil, 0, stageDeletion, reasonUnreachable},
		"replaced, no owner":          {"nobody recorded why", deleting(provisioned), snapshot{Host: lost(time.Hour), Machine: coreMachine(nil)}, nil, 0, stageDeletion, reasonUnreachable},
		"forced":                      {"the user does not wait", forced, snapshot{Host: h(in(infrav1.SSHHostUnreachable, released))}, nil, 0, stageDeletion, ""},
		"forced, not released":        {"the host is marked first", forced, snapshot{Host: h(in(infrav1.SSHHostUnreachable, confirmed))}, []reconciler.Action{releaseHost{"hosts/h", "the SSHMachine is being deleted"}}, 0, stageDeletion, reasonReleasing},
		"released, unclean":           {"the operator has to act", deleting(provisioned), snapshot{Host: h(in(infrav1.SSHHostQuarantined, released))}, nil, 0, stageDeletion, ""},
		"released, not recorded":      {"nothing was changed", deleting(identified), snapshot{Host: h(func(h *infrav1.SSHHost) { released(h); h.Status.ConfirmedClaimID = "" })}, nil, 0, stageDeletion, ""},
		"deleted, claim dropped":      {"the host is clean", deleting(provisioned), snapshot{}, nil, 0, stageDeletion, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.snapshot
			s.Object, s.Now, s.Namespace = sshMachine(tc.object), now, inventory.Namespace{Name: "team-a"}
			if s.Host != nil && s.Machine == nil {
				s.Machine = coreMachine(nil)
			}
			if s.Host != nil && s.Cluster == nil {
				s.Cluster = coreCluster(true)
			}
			p := decide(s)
			if diff := cmp.Diff(tc.want, p.Actions); diff != "" {
				t.Errorf("%s: actions (-want +got):\n%s", tc.reason, diff)
			}
			if len(p.Reads) != tc.reads || p.Stage.Order != tc.stage {
				t.Errorf("%s: reads %v, stage %+v", tc.reason, p.Reads, p.Stage)
			}
			switch {
			case tc.wait == "" && len(p.Waits) > 0, tc.wait != "" && (len(p.Waits) != 1 || p.Waits[0].Reason != tc.wait):
				t.Errorf("%s: waits %+v, want %q", tc.reason, p.Waits, tc.wait)
			}
			for _, c := range report(s, p, reconciler.Outcome{}).Status.(infrav1.SSHMachineStatus).Conditions {
				if c.Reason == "" || strings.Contains(c.Message, "%!") {
					t.Errorf("%s: condition %+v", tc.reason, c)
				}
			}
		})
	}
}

// TestReleaseTime checks that the wait for a lost host names the time at which it ends, and is not before it.
func TestReleaseTime(t *testing.T) {
	host := sshHost("h", func(h *infrav1.SSHHost) {
		released(h)
		h.Status.State, h.Status.StateSince = infrav1.SSHHostUnreachable, ptr.To(metav1.NewTime(now.Add(-time.Minute)))
	})
	machine := coreMachine(func(m *clusterv1.Machine) {
		m.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		m.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineHealthCheckUnhealthyNodeReason},
			{Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, Reason: clusterv1.MachineSetMachineRemediationMachineDeletingReason},
		}
	})
	object := sshMachine(func(o *infrav1.SSHMachine) { provisioned(o); o.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })
	p := decide(snapshot{Object: object, Machine: machine, Cluster: coreCluster(true), Host: host, Now: now})
	const want = "SSHHost h cannot be cleaned, because it does not respond since 2025-12-31T23:59:00Z. A health check replaces the Machine: the host is released without cleaning at 2026-01-01T00:04:00Z, " +
		"and cannot be claimed until it responds and is clean"
	if len(p.Waits) != 1 || p.Waits[0].Message != want || p.Waits[0].Until != reconciler.UntilTime || p.Recheck != 4*time.Minute {
		t.Errorf("waits %+v, recheck %s", p.Waits, p.Recheck)
	}
}

func TestReport(t *testing.T) {
	report := func(s snapshot, out reconciler.Outcome) (infrav1.SSHMachineStatus, condition.Set) {
		got := report(s, decide(s), out).Status.(infrav1.SSHMachineStatus)
		return got, got.Conditions
	}
	base := snapshot{Object: sshMachine(identified), Machine: coreMachine(nil), Cluster: coreCluster(true), Now: now,
		Host: sshHost("h", func(h *infrav1.SSHHost) { confirmed(h); h.Spec.Interruptible = ptr.To(true) })}

	s := base
	s.Progress = progress(remote.BootstrapDone)
	got, c := report(s, reconciler.Outcome{})
	want := infrav1.SSHMachineStatus{
		ObservedGeneration: 1, FailureDomain: "rack-1", Interruptible: ptr.To(true), HostRef: &infrav1.SSHHostReference{Namespace: "hosts", Name: "h"},
		Initialization: infrav1.SSHMachineInitializationStatus{Provisioned: ptr.To(true)},
		Addresses:      clusterv1.MachineAddresses{{Type: "Hostname", Address: "h"}, {Type: "InternalIP", Address: "192.0.2.1"}},
	}
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("provisioned (-want +got):\n%s", diff)
	}
	if !c.IsTrue("Ready") || !c.IsTrue(infrav1.HostClaimedCondition) || !c.IsTrue(infrav1.HostPreparedCondition) || !c.IsTrue(infrav1.BootstrapExecSucceededCondition) {
		t.Errorf("provisioned: %+v", c)
	}

	s.Progress = &remote.Progress{State: remote.BootstrapFailed, ExitCode: 3, Log: []byte("line one\nline two")}
	got, c = report(s, reconciler.Outcome{})
	if b := c.Get(infrav1.BootstrapExecSucceededCondition); got.Initialization.Provisioned != nil || b.Reason != reasonFailed || !strings.Contains(b.Message, "exit status 3 on SSHHost h") || !strings.Contains(b.Message, "\n  line two") {
		t.Errorf("failed: %+v", b)
	}

	s = base
	s.Object, s.Host = sshMachine(provisioned), sshHost("h", in(infrav1.SSHHostQuarantined, confirmed))
	if _, c = report(s, reconciler.Outcome{}); c.Get(infrav1.HostClaimedCondition).Reason != reasonMachineRemoved || c.IsTrue("Ready") {
		t.Errorf("quarantined: %+v", c)
	}
	s.Host = nil
	s.Object.Status.Addresses = clusterv1.MachineAddresses{{Type: "Hostname", Address: "h"}}
	if got, c = report(s, reconciler.Outcome{}); c.Get(infrav1.HostClaimedCondition).Reason != reasonMachineRemoved || !ptr.Deref(got.Initialization.Provisioned, false) || len(got.Addresses) != 1 {
		t.Errorf("lost: %+v", got)
	}
}

// The machine that creates a control plane waits until its host holds the virtual IP address, because kubeadm uses it.
func TestVirtualIPBeforeBootstrap(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*snapshot)
		waits  bool
	}{
		"not held":      {"kubeadm would wait for it in vain", nil, true},
		"held by other": {"another machine creates the cluster", func(s *snapshot) { s.SSHCluster.Status.VirtualIP.Members[0].Machine = "other" }, true},
		"held":          {"its host holds it", func(s *snapshot) { s.SSHCluster.Status.VirtualIP.Members[0].Holder = ptr.To(true) }, false},
		"initialized":   {"it joins a control plane that exists", func(s *snapshot) { s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }, false},
		"no address":    {"the user has a load balancer", func(s *snapshot) { s.SSHCluster.Spec.VirtualIP = "" }, false},
		"another kind":  {"infrastructure of another provider", func(s *snapshot) { s.SSHCluster = nil }, false},
		"worker":        {"workers join", func(s *snapshot) { s.Machine.Labels = nil }, false},
	} {
		s := machine(infrav1.SSHHostPreparing, remote.BootstrapNone)
		s.Object.Name, s.Object.Spec.Bundle = "m", infrav1.SSHBundleNone
		s.Machine = coreMachine(func(m *clusterv1.Machine) { m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""} })
		s.Preparing = jobs.State{What: s.preparation(), Ended: now.Add(-time.Second)}
		s.SSHCluster = &infrav1.SSHCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		s.SSHCluster.Spec.VirtualIP, s.SSHCluster.Status.VirtualIP.Members = "192.0.2.10", []infrav1.SSHVirtualIPMember{{Machine: "m"}}
		if tc.change != nil {
			tc.change(&s)
		}
		p := decide(s)
		if waits := p.Stage.Reason == reasonVirtualIP; waits != tc.waits || (len(p.Actions) == 1) == tc.waits {
			t.Errorf("%s: %+v (%s)", name, p, tc.reason)
		}
		if got := condition.Set(report(s, p, reconciler.Outcome{}).Status.(infrav1.SSHMachineStatus).Conditions); !got.IsTrue(infrav1.HostPreparedCondition) {
			t.Errorf("%s: the host is prepared: %+v", name, got)
		}
	}
}

// The checks before a host is used compare it with the facts of the hosts of the cluster's other machines.
func TestPreflightOptions(t *testing.T) {
	facts := func(h *infrav1.SSHHost) {
		h.Status.Facts.MachineIDHash, h.Status.Facts.ProductUUIDHash = "machine-"+h.Name, "product-"+h.Name
	}
	own := sshHost("h", facts)
	s := snapshot{Object: sshMachine(identified), Machine: coreMachine(nil), Host: own, Bundle: theBundle(), Peers: []*infrav1.SSHHost{own, sshHost("i", facts), sshHost("old", nil)}}
	want := remote.PreflightOptions{
		ManagedBundle: true, Architecture: "amd64", BundleDigest: theBundle().Digest,
		Hostnames:  map[string]string{"i": "hosts/i", "old": "hosts/old"},
		MachineIDs: map[string]string{"machine-i": "hosts/i"}, ProductUUIDs: map[string]string{"product-i": "hosts/i"},
	}
	if diff := cmp.Diff(want, s.preflightOptions()); diff != "" {
		t.Error(diff)
	}
}
