package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// decided is what a table says of a verdict.
type decided struct {
	ControlPlane Part
	Workers      []Part
	Reason       string
	Message      string
}

func md(name, v string, change ...func(*Worker)) Worker {
	w := Worker{Kind: "MachineDeployment", Topology: name, Name: name, Exists: true, Version: v}
	for _, f := range change {
		f(&w)
	}
	return w
}

func pool(name, v string, change ...func(*Worker)) Worker {
	w := md(name, v, change...)
	w.Kind = "MachinePool"
	return w
}

func upgradingWorker(w *Worker) { w.Upgrading = true }

func rolling(w *Worker) { w.RollingOut = true }

func missing(w *Worker) { w.Exists, w.Name, w.Version = false, "", "" }

func annotated(name string) func(*Worker) {
	return func(w *Worker) { w.Annotations = map[string]string{name: ""} }
}

// at is a cluster of which the control plane runs a version.
func at(v, target string, workers ...Worker) Input {
	f := Input{
		Cluster: &clusterv1.Cluster{}, Class: "class", Versions: minors(20, 40), Workers: workers,
		ControlPlane: &ControlPlane{Kind: "HostedControlPlane", Name: "cp", Version: v, Running: v},
	}
	f.Cluster.Spec.Topology.Version = target
	f.Cluster.Spec.ControlPlaneRef.Name, f.Cluster.Spec.InfrastructureRef.Name = "cp", "infra"
	return f
}

func with(f Input, changes ...func(*Input)) Input {
	for _, change := range changes {
		change(&f)
	}
	return f
}

func clusterAnnotation(name, value string) func(*Input) {
	return func(f *Input) { metav1.SetMetaDataAnnotation(&f.Cluster.ObjectMeta, name, value) }
}

func answering(hook Hook, a HookResult) func(*Input) {
	return func(f *Input) { f.RuntimeSDK, f.Results = true, map[Hook]HookResult{hook: a} }
}

func running(v string) func(*Input) { return func(f *Input) { f.ControlPlane.Running = v } }

func scaling(f *Input) { f.ControlPlane.Scaling = true }

const (
	pendingHooks = "runtime.cluster.x-k8s.io/pending-hooks"
	v33, v34     = "v1.33.0", "v1.34.0"
	hold         = clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation
	postpone     = clusterv1.ClusterTopologyDeferUpgradeAnnotation
)

func TestWhatMayChange(t *testing.T) { // TP-20, TP-21, TP-22, TP-23, TP-24, TP-28, LH-12, LH-13, LH-17, CP-19
	still, frozen := Part{Version: v33}, Part{Version: v33, Frozen: true}
	next, withheld := Part{Version: v34}, Part{Version: v33, Withheld: true}
	begun := clusterAnnotation(clusterv1.ClusterTopologyUpgradeStepAnnotation, v34)
	for name, tc := range map[string]struct {
		reason string
		facts  Input
		want   decided
	}{
		"nothing": {"", at(v33, v33, md("a", v33)), decided{still, []Part{still}, "ReconcileSucceeded", ""}},
		"control plane first": {
			"its spec changes with the version, the workers' does not", at(v33, v34, md("a", v33), md("b", v33)),
			decided{next, []Part{frozen, frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.0\n* MachineDeployments a, b wait for their upgrades to v1.34.0"},
		},
		"control plane under way": {
			"a change of its spec is made: it rolls already", with(at(v34, v34, md("a", v33)), begun, running(v33)),
			decided{next, []Part{frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.0\n* MachineDeployment a waits for its upgrade to v1.34.0"},
		},
		"chain under way": {
			"a change of its spec waits for the next version", with(at(v34, "v1.36.0"), running(v33), begun),
			decided{Part{Version: v34, Frozen: true}, nil, "ClusterUpgrading", "HostedControlPlane cp is upgrading to v1.34.0, then v1.35.0, v1.36.0"},
		},
		"workers one by one": {
			"each kind by itself", with(at(v34, v34, md("a", v33), md("b", v33), pool("p", v33)), begun),
			decided{next, []Part{next, frozen, next}, "ClusterUpgrading", "* MachineDeployment a is upgrading to v1.34.0\n* MachineDeployment b waits for its upgrade to v1.34.0\n* MachinePool p is upgrading to v1.34.0"},
		},
		"two at once": {
			"", with(at(v34, v34, md("a", v34, upgradingWorker), md("b", v33), md("c", v33)), begun, clusterAnnotation(clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, "2")),
			decided{next, []Part{next, next, frozen}, "ClusterUpgrading", "* MachineDeployments a, b are upgrading to v1.34.0\n* MachineDeployment c waits for its upgrade to v1.34.0"},
		},
		"wrong concurrency": {
			"is one", with(at(v34, v34, md("a", v34, upgradingWorker), md("b", v33)), begun, clusterAnnotation(clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, "-3")),
			decided{next, []Part{next, frozen}, "ClusterUpgrading", "* MachineDeployment a is upgrading to v1.34.0\n* MachineDeployment b waits for its upgrade to v1.34.0"},
		},
		"a version that never runs, corrected forward": {
			"the annotation is the way out",
			with(at(v34, "v1.34.1", md("a", v33)), running(v33), clusterAnnotation(clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation, ""), func(f *Input) { f.Versions = nil }),
			decided{Part{Version: "v1.34.1"}, []Part{frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.1\n* MachineDeployment a waits for its upgrade to v1.34.1"},
		},
		"a version that never runs, corrected back": {
			"the control plane gets the version that it runs",
			with(at(v34, v33, md("a", v33)), running(v33), clusterAnnotation(clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation, "")),
			decided{still, []Part{still}, "ClusterUpgrading", "HostedControlPlane cp is changing to v1.33.0 from v1.34.0, which it never completely ran"},
		},
		"a version that never runs, not corrected": {
			"without the annotation nothing goes on",
			with(at(v34, "v1.34.1", md("a", v33)), running(v33), func(f *Input) { f.Versions = nil }),
			decided{Part{Version: v34, Frozen: true}, []Part{frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.0, then v1.34.1\n* MachineDeployment a waits for its upgrade to v1.34.1"},
		},
		"workers roll out, upgrade waits, they may change": {
			"their new Machines would be replaced before they are ready; a change may be what ends a rollout that is stuck",
			at(v33, v34, md("a", v33, rolling), md("b", v33)),
			decided{frozen, []Part{still, still}, "ClusterUpgrading", "* HostedControlPlane cp waits for its upgrade from v1.33.0 to v1.34.0\n* MachineDeployment a must complete its rollout before the upgrade starts; to skip it in the upgrade, set the annotation topology.cluster.x-k8s.io/defer-upgrade on it in spec.topology\n* MachineDeployments a, b wait for their upgrades to v1.34.0"},
		},
		"a rollout that is deferred is not waited for": {
			"it is the way out where a rollout never ends",
			at(v33, v34, md("a", v33, rolling, annotated(clusterv1.ClusterTopologyDeferUpgradeAnnotation)), md("b", v33)),
			decided{next, []Part{still, frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.0\n* MachineDeployment b waits for its upgrade to v1.34.0\n* MachineDeployment a: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology"},
		},
		"a rollout that begins during an upgrade ends nothing": {
			"what has begun goes on",
			with(at(v33, "v1.35.0", md("a", v33, rolling)), clusterAnnotation("topology.internal.cluster.x-k8s.io/upgrade-step", v33)),
			decided{next, []Part{frozen}, "ClusterUpgrading", "* HostedControlPlane cp is upgrading to v1.34.0, then v1.35.0\n* MachineDeployment a waits for its upgrade to v1.35.0"},
		},
		"the API server does not respond": {
			"why nothing moves can be read",
			with(at(v34, v34, md("a", v34, upgradingWorker)), func(f *Input) {
				f.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterRemoteConnectionProbeCondition, Status: metav1.ConditionFalse}}
			}),
			decided{next, []Part{next}, "ClusterUpgrading", "* MachineDeployment a is upgrading to v1.34.0\n* The API server of the cluster does not respond, so that new Machines cannot join; see condition RemoteConnectionProbe"},
		},
		"deferred": {
			"the others go on; its other changes are made", with(at(v34, v34, md("a", v33, annotated(postpone)), md("b", v33)), begun),
			decided{next, []Part{still, next}, "ClusterUpgrading", "* MachineDeployment b is upgrading to v1.34.0\n* MachineDeployment a: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology"},
		},
		"held sequence": {
			"it and those that follow, of its kind", with(at(v34, v34, md("a", v34), md("b", v33, annotated(hold)), md("c", v33), pool("p", v33)), begun),
			decided{next, []Part{next, still, still, next}, "ClusterUpgrading", "* MachinePool p is upgrading to v1.34.0\n* MachineDeployments b, c: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology"},
		},
		"all deferred": {
			"", with(at(v34, v34, md("a", v33, annotated(postpone)), pool("p", v33, annotated(postpone))), begun),
			decided{next, []Part{still, still}, "MachineDeploymentsUpgradeDeferred", "* MachineDeployment a: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology\n* MachinePool p: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology"},
		},
		"pool deferred": {
			"", with(at(v34, v34, pool("p", v33, annotated(postpone))), begun),
			decided{next, []Part{still}, "MachinePoolsUpgradeDeferred", "MachinePool p: upgrade to v1.34.0 deferred until the annotation topology.cluster.x-k8s.io/defer-upgrade or topology.cluster.x-k8s.io/hold-upgrade-sequence is removed in spec.topology"},
		},
		"annotation": {
			"held by a person, without the Runtime SDK too", with(at(v33, v34, md("a", v33)), clusterAnnotation("before-upgrade.hook.cluster.cluster.x-k8s.io/backup", "")),
			decided{frozen, []Part{frozen}, "ClusterUpgrading", "* Following hooks are blocking upgrade of the Cluster to v1.34.0: annotations of the Cluster: before-upgrade.hook.cluster.cluster.x-k8s.io/backup; remove them to upgrade\n* HostedControlPlane cp waits for its upgrade from v1.33.0 to v1.34.0\n* MachineDeployment a waits for its upgrade to v1.34.0"},
		},
		"annotation too late": {
			"the upgrade has begun", with(at(v34, "v1.35.0"), begun, clusterAnnotation("before-upgrade.hook.cluster.cluster.x-k8s.io/backup", "")),
			decided{Part{Version: "v1.35.0"}, nil, "ClusterUpgrading", "HostedControlPlane cp is upgrading to v1.35.0"},
		},
		"hook blocks": {
			"", with(at(v33, v34, md("a", v33), md("new", "", missing)), answering(BeforeClusterUpgrade, blocking(time.Minute))),
			decided{frozen, []Part{frozen, withheld}, "ClusterUpgrading", "* Following hooks are blocking upgrade of the Cluster to v1.34.0: BeforeClusterUpgrade: handler h.x: not yet\n* HostedControlPlane cp waits for its upgrade from v1.33.0 to v1.34.0\n* MachineDeployment a waits for its upgrade to v1.34.0\n* MachineDeployment new is created when the control plane is stable"},
		},
		"hook fails": {
			"it holds back as well", with(at(v33, v34), answering(BeforeClusterUpgrade, HookResult{Problem: errExtension})),
			decided{frozen, nil, "ReconcileFailed", "* Hook BeforeClusterUpgrade failed: handler h.x: responded with status Failure: no; retrying\n* HostedControlPlane cp waits for its upgrade from v1.33.0 to v1.34.0"},
		},
		"after the control plane": {
			"", with(at(v34, v34, md("a", v33), md("new", "", missing)), answering(AfterControlPlaneUpgrade, blocking(time.Minute)), begun, clusterAnnotation(pendingHooks, "AfterClusterUpgrade,AfterControlPlaneUpgrade")),
			decided{next, []Part{frozen, {Version: v34, Withheld: true}}, "ClusterUpgrading", "* Following hooks are blocking upgrade of the Cluster to v1.34.0: AfterControlPlaneUpgrade: handler h.x: not yet\n* MachineDeployment a waits for its upgrade to v1.34.0\n* MachineDeployment new is created when the control plane is stable"},
		},
		"after the cluster": {
			"nothing is held back but the next upgrade", with(at(v34, v34, md("a", v34), md("new", "", missing)), answering(AfterClusterUpgrade, blocking(time.Minute)), begun, clusterAnnotation(pendingHooks, "AfterClusterUpgrade")),
			decided{next, []Part{next, next}, "ClusterUpgrading", "Following hooks are blocking next upgrade: AfterClusterUpgrade: handler h.x: not yet"},
		},
		"no plan": {
			"", with(at(v33, "v1.35.0", md("a", v33)), func(f *Input) { f.Versions = []string{v33} }),
			decided{frozen, []Part{frozen}, "ReconcileFailed", "* No plan for the upgrade of the Cluster to v1.35.0: spec.kubernetesVersions of ClusterClass class does not list v1.35.0; add it, or set spec.topology.version to a listed version\n* MachineDeployment a waits for its upgrade to v1.35.0"},
		},
		"provisioning": {
			"workers are created with the control plane", with(at(v33, v33, md("new", "", missing)), running(""), scaling),
			decided{still, []Part{still}, "ReconcileSucceeded", ""},
		},
		"scaling": {
			"", with(at(v33, v33, md("new", "", missing)), scaling),
			decided{still, []Part{withheld}, "ClusterUpgrading", "MachineDeployment new is created when the control plane is stable"},
		},
		"no version": {
			"a control plane whose kind has no version is no reason to wait", with(at("", v34, md("a", v33)), running("")),
			decided{next, []Part{next}, "ClusterUpgrading", "MachineDeployment a is upgrading to v1.34.0"},
		},
		"suffix": {"", with(at(v33, v33), running("v1.33.0+vendor1")), decided{still, nil, "ReconcileSucceeded", ""}},
		"worker ahead": {
			"is corrected, when the control plane has nothing before it", at(v33, v33, md("a", "v1.36.0"), md("b", "")),
			decided{still, []Part{still, {Version: "", Frozen: true}}, "ClusterUpgrading", "* MachineDeployment a is upgrading to v1.33.0\n* MachineDeployment b waits for its upgrade to v1.33.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := Next(tc.facts)
			if len(v.Calls) > 0 {
				t.Fatalf("asks %v", v.Calls)
			}
			if diff := cmp.Diff(tc.want, decided{v.ControlPlane, v.Workers, v.Reason, v.Message}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCreation(t *testing.T) { // LH-01, LH-02, LH-10, LH-15
	fresh := func(f *Input) {
		f.ControlPlane, f.Cluster.Spec.ControlPlaneRef.Name, f.Cluster.Spec.InfrastructureRef.Name = nil, "", ""
		f.RuntimeSDK = true
	}
	pending := "AfterControlPlaneInitialized"
	for name, tc := range map[string]struct {
		reason    string
		facts     Input
		ask       Hook
		held      bool
		mark      map[string]*string
		condition string
		message   string
		failed    int
		keep      bool
	}{
		"asks":      {"", with(at("", v33), fresh), BeforeClusterCreate, false, nil, "", "", 0, false},
		"blocks":    {"", with(at("", v33), fresh, answering(BeforeClusterCreate, blocking(time.Minute))), "", true, nil, "ClusterCreating", "Following hooks are blocking creation of the topology: BeforeClusterCreate: handler h.x: not yet", 0, false},
		"fails":     {"", with(at("", v33), fresh, answering(BeforeClusterCreate, HookResult{Problem: errExtension})), "", true, nil, "ReconcileFailed", "Hook BeforeClusterCreate failed: handler h.x: responded with status Failure: no; retrying", 1, false},
		"later":     {"what the condition says stays", with(at("", v33), fresh, answering(BeforeClusterCreate, HookResult{RetryAfter: time.Second})), "", true, nil, "ClusterCreating", "", 0, true},
		"lets go":   {"", with(at("", v33), fresh, answering(BeforeClusterCreate, HookResult{Handlers: []string{"h.x"}})), "", false, map[string]*string{pendingHooks: &pending}, "ReconcileSucceeded", "", 0, false},
		"let go":    {"not called again after a crash", with(at("", v33), fresh, clusterAnnotation(pendingHooks, pending)), "", false, nil, "ReconcileSucceeded", "", 0, false},
		"gate off":  {"", with(at("", v33), fresh, func(f *Input) { f.RuntimeSDK = false }), "", false, nil, "ReconcileSucceeded", "", 0, false},
		"one ref":   {"the creation has begun", with(at(v33, v33), fresh, func(f *Input) { f.Cluster.Spec.InfrastructureRef.Name = "i" }), "", false, nil, "ReconcileSucceeded", "", 0, false},
		"waits":     {"the control plane is not initialized", with(at(v33, v33), running(""), clusterAnnotation(pendingHooks, pending), func(f *Input) { f.RuntimeSDK = true }), "", false, nil, "ReconcileSucceeded", "", 0, false},
		"initial":   {"", with(at(v33, v33), initialized, clusterAnnotation(pendingHooks, pending), func(f *Input) { f.RuntimeSDK = true }), AfterControlPlaneInitialized, false, nil, "", "", 0, false},
		"told":      {"", with(at(v33, v33), initialized, clusterAnnotation(pendingHooks, pending+",Foreign"), answering(AfterControlPlaneInitialized, HookResult{})), "", false, map[string]*string{pendingHooks: new("Foreign")}, "ReconcileSucceeded", "", 0, false},
		"not heard": {"nothing is held back", with(at(v33, v34), initialized, clusterAnnotation(clusterv1.ClusterTopologyUpgradeStepAnnotation, v33), clusterAnnotation(pendingHooks, "AfterClusterUpgrade,"+pending), answering(AfterControlPlaneInitialized, HookResult{Problem: errExtension}), letting(BeforeControlPlaneUpgrade)), "", false, map[string]*string{pendingHooks: new("AfterClusterUpgrade,AfterControlPlaneInitialized,AfterControlPlaneUpgrade"), clusterv1.ClusterTopologyUpgradeStepAnnotation: new(v34)}, "ReconcileFailed", "* Hook AfterControlPlaneInitialized failed: handler h.x: responded with status Failure: no; retrying\n* HostedControlPlane cp is upgrading to v1.34.0", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := Next(tc.facts)
			if tc.ask != "" {
				if len(v.Calls) != 1 || v.Calls[0].Hook != tc.ask {
					t.Fatalf("asks %v", v.Calls)
				}
				return
			}
			if len(v.Calls) > 0 || v.Suspended != tc.held || v.Reason != tc.condition || v.Message != tc.message || len(v.Failed) != tc.failed || v.KeepsCondition != tc.keep {
				t.Errorf("%s: ask %v, held %v, %s: %s, failed %v, keep %v", tc.reason, v.Calls, v.Suspended, v.Reason, v.Message, v.Failed, v.KeepsCondition)
			}
			if diff := cmp.Diff(tc.mark, v.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func initialized(f *Input) {
	f.Cluster.Status.Conditions = append(f.Cluster.Status.Conditions, initializedCondition())
}

func letting(hook Hook) func(*Input) {
	return func(f *Input) { f.Results[hook] = HookResult{Handlers: []string{"h.x"}} }
}

func TestDeletion(t *testing.T) { // LH-09, TP-34
	deleted := func(f *Input) { f.RuntimeSDK, f.Cluster.DeletionTimestamp = true, &metav1.Time{Time: time.Unix(1, 0)} }
	empty := ""
	for name, tc := range map[string]struct {
		facts           Input
		asks            int
		annotations     map[string]*string
		reason, message string
	}{
		"asks":     {with(at(v33, v34), deleted), 1, nil, "Deleting", "Cluster is deleting"},
		"blocks":   {with(at(v33, v34), deleted, answering(BeforeClusterDelete, blocking(time.Minute))), 0, nil, "Deleting", "Cluster is deleting. Following hooks are blocking deletion: BeforeClusterDelete: handler h.x: not yet"},
		"fails":    {with(at(v33, v34), deleted, answering(BeforeClusterDelete, HookResult{Problem: errExtension})), 0, nil, "ReconcileFailed", "Hook BeforeClusterDelete failed: handler h.x: responded with status Failure: no; retrying"},
		"lets go":  {with(at(v33, v34), deleted, answering(BeforeClusterDelete, HookResult{})), 0, map[string]*string{"runtime.cluster.x-k8s.io/ok-to-delete": &empty}, "Deleting", "Cluster is deleting"},
		"let go":   {with(at(v33, v34), deleted, clusterAnnotation("runtime.cluster.x-k8s.io/ok-to-delete", "")), 0, nil, "Deleting", "Cluster is deleting"},
		"gate off": {with(at(v33, v34), deleted, func(f *Input) { f.RuntimeSDK = false }), 0, nil, "Deleting", "Cluster is deleting"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Next(tc.facts)
			if len(v.Calls) != tc.asks || !v.Suspended || v.Reason != tc.reason || v.Message != tc.message {
				t.Errorf("ask %v, held %v, %s: %s", v.Calls, v.Suspended, v.Reason, v.Message)
			}
			if diff := cmp.Diff(tc.annotations, v.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanExtension(t *testing.T) { // UP-01, RT-33
	named := func(f *Input) { f.PlanExtension, f.RuntimeSDK = "plan.x", true }
	v := Next(with(at(v33, v34, md("a", "v1.32.0"), md("b", v33)), named))
	want := []HookCall{{Hook: GenerateUpgradePlan, Handler: "plan.x", From: v33, FromWorkers: "v1.32.0", To: v34}}
	if diff := cmp.Diff(want, v.Calls); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
	v = Next(with(at(v33, v33, md("a", v33)), named))
	if len(v.Calls) > 0 {
		t.Errorf("asked without need: %v", v.Calls)
	}
	v = Next(with(at(v33, v34, md("a", v33)), named, func(f *Input) { f.RuntimeSDK = false }))
	message := "* No plan for the upgrade of the Cluster to v1.34.0: ClusterClass class uses handler plan.x for upgrade plans, but the feature gate RuntimeSDK is disabled; enable it, or remove spec.upgrade.external\n* MachineDeployment a waits for its upgrade to v1.34.0"
	if v.Reason != "ReconcileFailed" || v.Message != message || !v.ControlPlane.Frozen {
		t.Errorf("gate off: %s: %s", v.Reason, v.Message)
	}
	v = Next(with(at(v33, v34, md("a", v33)), named, func(f *Input) {
		f.Results = map[Hook]HookResult{GenerateUpgradePlan: {Handlers: []string{"plan.x"}, Plan: UpgradePlan{ControlPlane: []string{v34}}}}
	}))
	if len(v.Calls) != 1 || v.Calls[0].Hook != BeforeClusterUpgrade {
		t.Errorf("with a plan: asks %v", v.Calls)
	}
}

func TestReleased(t *testing.T) { // LH-17
	plan := HookResult{Handlers: []string{"plan.x"}, Plan: UpgradePlan{ControlPlane: []string{v34}}}
	v := Next(with(at(v33, v34), answering(GenerateUpgradePlan, plan), letting(BeforeClusterUpgrade), letting(BeforeControlPlaneUpgrade), func(f *Input) { f.PlanExtension = "plan.x" }))
	want := []Released{{BeforeClusterUpgrade, []string{"h.x"}}, {BeforeControlPlaneUpgrade, []string{"h.x"}}}
	if diff := cmp.Diff(want, v.Released); diff != "" {
		t.Errorf("a plan is asked for again and again, and is nothing that was let go (-want +got):\n%s", diff)
	}
}

func TestPlanForStatus(t *testing.T) { // TP-25
	f := with(at(v33, "v1.36.0", md("a", v33)), clusterAnnotation(clusterv1.ClusterTopologyUpgradeStepAnnotation, v33))
	want := UpgradePlan{ControlPlane: minors(35, 36), Workers: []string{"v1.36.0"}}
	if diff := cmp.Diff(want, Next(f).Plan); diff != "" {
		t.Errorf("a version that is applied is not in the plan (-want +got):\n%s", diff)
	}
}
