package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const deniedReplicas = "5 replicas exceed the limit of 4 for one object: set fewer, or ask the operator to raise maxima.replicas in the configuration file (--config of slipway up or slipway manager)"

func TestDecide(t *testing.T) {
	annotated := func(key string) func(*snapshot) {
		return func(s *snapshot) { s.Set.Annotations = map[string]string{key: "true"} }
	}
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled":        {"nothing to do", settled(), nil},
		"no cluster":     {"MS-02", settled(func(s *snapshot) { s.Cluster = nil }), []string{"wait: Cluster c does not exist; reconciliation of MachineSet ms resumes when it does"}},
		"not joined yet": {"MS-02: label and owner come first", settled(func(s *snapshot) { s.Set.OwnerReferences = nil }), []string{"do: join Cluster c"}},
		"labelled, not owned": {"MS-02: never joined by itself, and idle until the MachineDeployment has adopted it",
			settled(replicas(3), func(s *snapshot) {
				s.Set.Labels[clusterv1.MachineDeploymentNameLabel], s.Set.OwnerReferences = "md", nil
			}), []string{"wait: MachineSet ms is labelled as part of MachineDeployment md, which has not adopted it yet"}},
		"orphan": {"MS-03: counted once it is adopted", settled(replicas(3), func(s *snapshot) { s.Others = []*clusterv1.Machine{orphan("a")} }),
			[]string{"do: adopt Machine a: it matches the selector", "wait: Adopting a"}},
		"orphan that goes": {"MS-03: not adopted, and not waited for",
			settled(func(s *snapshot) { s.Others = []*clusterv1.Machine{orphan("a", going(time.Minute))} }), nil},
		"of the set by label only": {"OR-01: it blocks creation",
			settled(replicas(3), func(s *snapshot) {
				s.Others = []*clusterv1.Machine{orphan("a", func(m *clusterv1.Machine) { delete(m.Labels, "set") })}
			}), []string{"wait: Machine a: labelled as part of MachineSet ms, which cannot adopt it: correct its labels or its owner"}},
		"workload cluster not seen": {"OR-01: an empty status may be a lost one",
			settled(with(), func(s *snapshot) {
				s.Set.Status.ObservedGeneration, s.Workload.Problem, s.Unanswered = 0, "it is not connected", true
			}),
			[]string{"wait: Machines are created once the workload cluster has been seen: it is not connected", "recheck: 5s"}},
		"workload cluster not there": {"OR-01: its Cluster wakes the set when it is",
			settled(with(), func(s *snapshot) {
				s.Set.Status.ObservedGeneration, s.Workload.Problem = 0, "its control plane is not initialized yet"
			}),
			[]string{"wait: Machines are created once the workload cluster has been seen: its control plane is not initialized yet"}},
		"templates of a standalone set": {"OR-01: they go with the Cluster", settled(func(s *snapshot) {
			s.Infra.Object.SetOwnerReferences(nil)
			s.Bootstrap.Object.SetOwnerReferences(nil)
		}), []string{"do: make the Cluster an owner of FooConfigTemplate bt: Machines are created from it", "do: make the Cluster an owner of FooMachineTemplate it: Machines are created from it"}},
		"templates of a MachineDeployment": {"OR-01: its own affair", settled(ofDeployment(), func(s *snapshot) { s.Infra.Object.SetOwnerReferences(nil) }), nil},
		"scale up": {"MS-04, MS-06: names by the default template", settled(replicas(4)),
			[]string{"do: create Machines ms-aaaaa, ms-bbbbb: scale up from 2 to 4"}},
		"scale up from none": {"", settled(with()), []string{"do: create Machines ms-aaaaa, ms-bbbbb: scale up from 0 to 2"}},
		"names": {"MS-06", settled(replicas(3), func(s *snapshot) { s.Set.Spec.MachineNaming.Template = "{{ .cluster.name }}x{{ .random }}" }),
			[]string{"do: create Machine cxaaaaa: scale up from 2 to 3"}},
		"name taken": {"MS-06: never two of a name", settled(replicas(3), func(s *snapshot) { s.Machines[0].Name = "ms-aaaaa" }),
			[]string{"do: create Machine ms-bbbbb: scale up from 2 to 3"}},
		"names that are none": {"refused by the webhook, and no crash", settled(replicas(3), func(s *snapshot) { s.Set.Spec.MachineNaming.Template = "x" }),
			[]string{"wait: spec.machineNaming.template has to use {{ .random }}: names would not be unique without it"}},
		"created a moment ago": {"never one too many while the cache lags", settled(replicas(3), func(s *snapshot) { s.Created = []string{"ms-x"} }),
			[]string{"wait: Waiting for the cache to show 1 new Machines", "recheck: 5s"}},
		"replicas not said": {"MS-22 did not run", settled(func(s *snapshot) { s.Set.Spec.Replicas = nil }), []string{"wait: " + waitingForReplicas}},
		"creation disabled": {"MS-11", settled(replicas(3), annotated(clusterv1.DisableMachineCreateAnnotation)),
			[]string{"wait: Annotation cluster.x-k8s.io/disable-machine-create of the MachineSet is true: no Machine is created until it is removed"}},
		"template not there": {"", settled(replicas(3), func(s *snapshot) { s.Infra.Object = contract.Object{} }),
			[]string{"wait: FooMachineTemplate it does not exist", "recheck: 30s"}},
		"template unreadable": {"", settled(replicas(3), func(s *snapshot) { s.Bootstrap.Object = contract.Object{Problem: "install it"} }), []string{"wait: install it", "recheck: 30s"}},
		"preflight": {"MS-12", settled(replicas(3), func(s *snapshot) { s.Set.Spec.Template.Spec.Version = "v1.37.0" }, func(s *snapshot) {
			for _, m := range s.Machines {
				says(is("UpToDate", "True", "UpToDate", ""))(m.Machine)
			}
		}), []string{"wait: Version v1.37.0 of the MachineSet is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)", "recheck: 15s"}},
		"policy": {"admission refuses it; an object from before, or from where admission did not run, is not larger for that",
			settled(replicas(5), func(s *snapshot) { s.Settings.Policy.Maxima.Replicas = 4 }), []string{"wait: " + deniedReplicas}},
		"policy, scale down": {"always", settled(replicas(1), func(s *snapshot) { s.Settings.Policy.Maxima.Replicas = 1 }),
			[]string{"do: delete Machine m1: scale down to 1, in random order"}},
		"scale down":                            {"MS-10: in an order that stays the same", settled(replicas(1)), []string{"do: delete Machine m1: scale down to 1, in random order"}},
		"scale down, one goes already":          {"it counts", settled(replicas(1), with(asIs, going(time.Minute))), nil},
		"scale down, deletion not in the cache": {"never one too many while the cache lags", settled(replicas(1), func(s *snapshot) { s.Machines[1].Deleted = true }), nil},
		"to nothing":                            {"", settled(replicas(0)), []string{"do: delete Machines m1, m2: scale down to 0, in random order"}},
		"not verified": {"clones are looked at once for each generation", settled(func(s *snapshot) { s.Verified = false }),
			[]string{"ask: bootstrap configs and infrastructure machines of the Machines"}},
		"drift": {"MS-08", settled(func(s *snapshot) { s.Set.Spec.Template.Labels["new"] = "1" }),
			[]string{"ask: bootstrap configs and infrastructure machines of the Machines"}},
		"drift of what was just written": {"wait for the cache", settled(func(s *snapshot) {
			s.Set.Spec.Template.Labels["new"] = "1"
			s.Machines[0].Stale, s.Machines[1].Stale = true, true
		}), nil},
		"drift, clones known": {"MS-08: clones first", settled(known("m1", "m2"), func(s *snapshot) { s.Set.Spec.Template.Labels["new"] = "1" }),
			[]string{
				"do: sync labels and annotations to FooConfig m1", "do: sync labels and annotations to FooMachine m1",
				"do: sync labels and annotations to FooConfig m2", "do: sync labels and annotations to FooMachine m2",
				"do: sync Machine m1: it differs from the template", "do: sync Machine m2: it differs from the template",
			}},
		"timeouts of a Machine that goes": {"MS-08: nothing else", settled(with(asIs, going(time.Minute)), known("m1"), func(s *snapshot) {
			s.Set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(1))
			s.Set.Spec.Template.Labels["new"] = "1"
			s.Machines = s.Machines[1:]
			s.Set.Spec.Replicas = new(int32(1))
		}), []string{"do: sync Machine m2: the timeouts of its deletion changed"}},
		"orphaned clone": {"MS-04", settled(known("m1", "m2", "lost"), func(s *snapshot) { s.Clones.Orphans = s.Clones.FindOrphans(s.clones()) }),
			[]string{"do: delete FooConfig lost: its Machine was never created", "do: delete FooMachine lost: its Machine was never created"}},
		"deletion": {"MS-25", settled(func(s *snapshot) { s.Set.DeletionTimestamp = new(ago(0)) }),
			[]string{"do: delete Machines m1, m2: the MachineSet is deleted", "wait: Waiting for 2 Machines to be deleted"}},
		"deletion under way": {"MS-25", settled(with(going(time.Minute)), func(s *snapshot) { s.Set.DeletionTimestamp = new(ago(0)) }),
			[]string{"wait: Waiting for 1 Machines to be deleted"}},
		"deletion over": {"MS-25: the finalizer goes", settled(with(), func(s *snapshot) { s.Set.DeletionTimestamp = new(ago(0)) }), nil},
		"deletion with a Machine that is not in the cache": {"MS-25", settled(with(), func(s *snapshot) {
			s.Set.DeletionTimestamp, s.Created = new(ago(0)), []string{"a"}
		}), []string{"wait: Waiting for 1 Machines to be deleted", "recheck: 5s"}},
		"deletion without its Cluster": {"nothing of it is needed", settled(with(asIs), func(s *snapshot) {
			s.Set.DeletionTimestamp, s.Cluster = new(ago(0)), nil
		}), []string{"do: delete Machine m1: the MachineSet is deleted", "wait: Waiting for 1 Machines to be deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// known answers the question for clones: those of the named Machines are as they were made.
func known(names ...string) func(*snapshot) {
	return func(s *snapshot) {
		s.Clones = &clone.Clones{Items: map[clone.Key]contract.Object{}}
		for _, name := range names {
			objects, err := s.State().Definition.Objects(name)
			if err != nil {
				panic(err)
			}
			for _, o := range objects[:2] {
				s.Clones.Items[clone.Key{Kind: o.GetKind(), Name: name}] = contract.Object{Unstructured: o}
			}
		}
	}
}

func TestDeletionOrder(t *testing.T) { // MS-10
	age := func(d time.Duration) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.CreationTimestamp = ago(d) }
	}
	both := func(fs ...func(*clusterv1.Machine)) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			for _, f := range fs {
				f(m)
			}
		}
	}
	annotated := func(key string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) { m.Annotations[key] = "" }
	}
	noNode := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "" }
	young, old := age(time.Minute), age(time.Hour)
	const random, newest, oldest = clusterv1.RandomMachineSetDeletionOrder, clusterv1.NewestMachineSetDeletionOrder, clusterv1.OldestMachineSetDeletionOrder
	cases := map[string]struct {
		reason string
		order  clusterv1.MachineSetDeletionOrder
		// The first Machine is m1, the second m2; first names which of them goes.
		a, b  func(*clusterv1.Machine)
		first string
	}{
		"newest":                  {"", newest, old, young, "m2"},
		"oldest":                  {"", oldest, young, old, "m2"},
		"newest, same age":        {"the name decides", newest, old, old, "m1"},
		"deleting before marked":  {"it goes anyway", newest, annotated(clusterv1.DeleteMachineAnnotation), going(0), "m2"},
		"marked before updating":  {"a person said so", newest, annotated(clusterv1.UpdateInProgressAnnotation), annotated(clusterv1.DeleteMachineAnnotation), "m2"},
		"marked before newest":    {"a person said so", newest, young, both(old, annotated(clusterv1.DeleteMachineAnnotation)), "m2"},
		"updating before sick":    {"its update is lost either way", newest, sick(), annotated(clusterv1.UpdateInProgressAnnotation), "m2"},
		"sick before newest":      {"it does no work", newest, young, both(old, sick()), "m2"},
		"no Node before newest":   {"it does no work yet", newest, young, both(old, noNode), "m2"},
		"Node sick before oldest": {"it does no work", oldest, old, both(young, says(is("NodeHealthy", "False", "NodeNotHealthy", ""))), "m2"},
		"Node not known":          {"what is not known is not held against it", oldest, old, both(young, says(is("NodeHealthy", "Unknown", "NodeHealthUnknown", ""))), "m1"},
		"both sick, newest":       {"then the order decides", newest, both(old, sick()), both(young, noNode), "m2"},
		"random":                  {"by a hash of the UID: always the same", random, young, old, "m1"},
		"random, not said":        {"the default", "", young, old, "m1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, compare := settled(with(tc.a, tc.b)), machines.ByDeletionPriority(tc.order)
			if got := compare(s.Machines[0], s.Machines[1]); (got < 0) != (tc.first == "m1") || got == 0 {
				t.Errorf("got %d, want %s to go: %s", got, tc.first, tc.reason)
			}
			if a, b := compare(s.Machines[0], s.Machines[1]), compare(s.Machines[1], s.Machines[0]); (a < 0) == (b < 0) {
				t.Errorf("no order: %d and %d", a, b)
			}
		})
	}
}

// TestPreflight: which checks run, and when; what they check is tested in their own package.
func TestPreflight(t *testing.T) { // MS-12, MS-17
	version := func(v string) func(*snapshot) { return func(s *snapshot) { s.Set.Spec.Template.Spec.Version = v } }
	planeIs := func(spec, status string) func(*snapshot) {
		return func(s *snapshot) {
			s.ControlPlane = plane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {" + spec + "}, status: {" + status + "}}")
		}
	}
	skip := func(text string) func(*snapshot) {
		return func(s *snapshot) {
			s.Set.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: text}
		}
	}
	settings := func(v Settings) func(*snapshot) { return func(s *snapshot) { s.Settings = v } }
	const newer = "Version v1.37.0 of the MachineSet is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)"
	cases := map[string]struct {
		reason  string
		changes []func(*snapshot)
		want    []string
	}{
		"nothing to make": {"MS-12: asked for only where it matters",
			[]func(*snapshot){replicas(2), version("v1.37.0")}, nil},
		"no control plane object": {"MS-17", []func(*snapshot){version("v1.37.0"), func(s *snapshot) {
			s.Cluster.Spec.ControlPlaneRef, s.ControlPlane = clusterv1.ContractVersionedObjectReference{}, contract.ControlPlaneView{}
		}}, nil},
		"newer than what runs": {"MS-14: although the spec asks for it", []func(*snapshot){version("v1.37.0"), skip("ControlPlaneIsStable"), planeIs("version: v1.37.0", "version: v1.36.3")},
			[]string{"Version v1.37.0 of the MachineSet is newer than version v1.36.3, which FooPlane p runs while its spec requires v1.37.0 (preflight check KubernetesVersionSkew)"}},
		"skipped":         {"MS-17", []func(*snapshot){version("v1.37.0"), skip("ControlPlaneIsStable, KubernetesVersionSkew")}, nil},
		"another skipped": {"MS-17", []func(*snapshot){version("v1.37.0"), skip("KubeadmVersionSkew")}, []string{newer}},
		"all skipped":     {"MS-17", []func(*snapshot){version("v1.37.0"), planeIs("version: v1.36.3", ""), skip("All")}, nil},
		"skipped by the MachineDeployment": {"MS-17", []func(*snapshot){version("v1.37.0"), ofDeployment(func(d *clusterv1.MachineDeployment) {
			d.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation] = "KubernetesVersionSkew"
		})}, nil},
		"skipped by the bootstrap template": {"MS-17", []func(*snapshot){version("v1.37.0"), func(s *snapshot) {
			s.Bootstrap.Object.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "KubernetesVersionSkew"})
		}}, nil},
		"gate off": {"MS-12", []func(*snapshot){version("v1.37.0"), settings(Settings{NoPreflight: true})}, nil},
		"chosen by the flag, others": {"MS-17", []func(*snapshot){version("v1.37.0"),
			settings(Settings{Preflight: []clusterv1.MachineSetPreflightCheck{clusterv1.MachineSetPreflightCheckKubeadmVersionSkew}})}, nil},
		"chosen by the flag": {"MS-17", []func(*snapshot){version("v1.37.0"),
			settings(Settings{Preflight: []clusterv1.MachineSetPreflightCheck{clusterv1.MachineSetPreflightCheckAll}})}, []string{newer}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settled(append([]func(*snapshot){replicas(3)}, tc.changes...)...)
			var got []string
			for _, w := range creationBlockers(s) {
				if w.Reason == waitForPreflight {
					got = append(got, w.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRemediation(t *testing.T) { // MS-18, DP-15
	started := says(is("HealthCheckSucceeded", "False", "UnhealthyNode", "bad"), is("OwnerRemediated", "False", "MachineDeleting", "Machine is deleted to be replaced"))
	older := func(m *clusterv1.Machine) { sick()(m); m.CreationTimestamp = ago(2 * time.Hour) }
	chosen := func(m *clusterv1.Machine) {
		older(m)
		m.Annotations[clusterv1.RemediateMachineAnnotation] = ""
	}
	atOnce := func(v intstr.IntOrString) func(*snapshot) {
		return ofDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Remediation.MaxInFlight = &v })
	}
	one := atOnce(intstr.FromInt32(1))
	judged := func(name, reason string) string {
		return "do: set conditions of Machine " + name + ": UpToDate unchanged, OwnerRemediated False (" + reason + ")"
	}
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"on record first": {"so that the budget holds after a crash", settled(ofDeployment(), with(sick(), asIs)), []string{judged("m1", "MachineDeleting")}},
		"then deleted":    {"its replacement comes by itself", settled(ofDeployment(), with(started, asIs)), []string{"do: delete Machine m1: a health check failed"}},
		"being deleted":   {"nothing more", settled(ofDeployment(), with(func(m *clusterv1.Machine) { started(m); going(0)(m) }, asIs)), nil},
		"only unhealthy": {"nobody asked for its replacement",
			settled(ofDeployment(), with(says(is("HealthCheckSucceeded", "False", "UnhealthyNode", "bad")), asIs)), nil},
		"all at once":  {"no limit is set", settled(ofDeployment(), with(sick(), sick())), []string{judged("m1", "MachineDeleting"), judged("m2", "MachineDeleting")}},
		"newest first": {"the limit is one", settled(one, with(older, sick())), []string{judged("m1", "RemediationDeferred"), judged("m2", "MachineDeleting")}},
		"chosen first": {"a person marked it", settled(one, with(chosen, sick())), []string{judged("m1", "MachineDeleting"), judged("m2", "RemediationDeferred")}},
		"limit reached": {"one is replaced already", settled(one, with(started, sick()), func(s *snapshot) { s.Machines[0].Deleted = true }),
			[]string{judged("m2", "RemediationDeferred")}},
		"limit in percent": {"25% of 4 replicas is one", settled(atOnce(intstr.FromString("25%")), with(sick(), older)),
			[]string{judged("m1", "MachineDeleting"), judged("m2", "RemediationDeferred")}},
		"limit that is none": {"refused by the webhook, and no crash", settled(atOnce(intstr.FromString("many")), with(sick(), asIs)), []string{judged("m1", "CannotBeRemediated")}},
		"old revision": {"the rollout replaces it", settled(ofDeployment(), with(sick(), asIs), func(s *snapshot) {
			s.Set.Annotations[clusterv1.RevisionAnnotation] = "1"
		}), []string{judged("m1", "CannotBeRemediated")}},
		"preflight": {"MS-12: a replacement could not join", settled(ofDeployment(), with(sick(), asIs), func(s *snapshot) {
			s.ControlPlane = plane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {version: v1.36.3}}")
		}), []string{judged("m1", "RemediationDeferred"), "recheck: 15s"}},
		"policy": {"a replacement could not be created", settled(ofDeployment(), replicas(5), with(sick(), asIs), func(s *snapshot) {
			s.Settings.Policy.Maxima.Replicas = 4
		}), []string{judged("m1", "RemediationDeferred"), "wait: " + deniedReplicas}},
		"well again": {"what was said is withdrawn", settled(ofDeployment(), with(says(
			is("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ""), is("OwnerRemediated", "False", "RemediationDeferred", "x")), asIs)),
			[]string{"do: set conditions of Machine m1: UpToDate unchanged"}},
		"somebody else's word": {"stays", settled(ofDeployment(), with(says(
			is("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ""), is("OwnerRemediated", "True", "Done", "")), asIs)), nil},
		"sick, and too many": {"scaling down takes it too", settled(ofDeployment(), replicas(1), with(asIs, started)),
			[]string{"do: delete Machine m2: a health check failed", "do: delete Machine m2: scale down to 1, in random order"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, m := range tc.s.Machines {
				m.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
			}
			if diff := cmp.Diff(tc.want, texts(decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUpToDate(t *testing.T) { // MA-24
	cases := map[string]struct {
		reason string
		s      snapshot
		want   string
	}{
		"of a deployment": {"the Machine controller judges it", settled(known("m1", "m2"), ofDeployment()), "  "},
		"updating": {"", settled(known("m1", "m2"), with(func(m *clusterv1.Machine) { m.Annotations[clusterv1.UpdateInProgressAnnotation] = "" })),
			"False Updating * In-place update in progress"},
		"standalone": {"made from the template", settled(known("m1", "m2")), "True UpToDate "},
		"standalone, other template": {"its clones remember", settled(known("m1"), func(s *snapshot) { s.Set.Spec.Template.Spec.InfrastructureRef.Name = "it2" }),
			"False NotUpToDate * FooMachineTemplate it, it2 required"},
		"standalone, clones not asked for": {"what was said stays", settled(), "True UpToDate "},
		"standalone, clones not there":     {"the cache is behind, or they were deleted", settled(known("other")), "True UpToDate "},
		"standalone, new, clones not there": {"nothing is known, and nothing was said", settled(known("other"), func(s *snapshot) {
			s.Machines[0].Status.Conditions = nil
		}), "  "},
		"standalone, adopted": {"what can be compared is the same, and the rest is said", settled(known("m1"), byHand("FooMachine")),
			"Unknown UpToDateUnknown * FooMachine m1 does not say which template it was created from: name it in its annotations cluster.x-k8s.io/cloned-from-name and cluster.x-k8s.io/cloned-from-groupkind, or replace the Machine"},
		"standalone, adopted, other version": {"what differs is known", settled(known("m1"), byHand("FooMachine"), byHand("FooConfig"), func(s *snapshot) {
			s.Machines[0].Spec.Version = "v1.35.0"
		}), "False NotUpToDate * Version v1.35.0, v1.36.3 required"},
		"standalone, adopted, of another template": {"made by another set", settled(known("m1"), func(s *snapshot) {
			annotate(s, "FooConfig", map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "old", clusterv1.TemplateClonedFromGroupKindAnnotation: "FooConfigTemplate.b"})
		}), "False NotUpToDate * FooConfigTemplate old, bt required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := tc.s.State().UpToDate(tc.s.Machines[0].Machine)
			if got := string(v.Status) + " " + v.Reason + " " + v.Message; got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// byHand makes the clone of the first Machine one that no template was used for.
func byHand(kind string) func(*snapshot) {
	return func(s *snapshot) { annotate(s, kind, map[string]string{"note": "1"}) }
}

func annotate(s *snapshot, kind string, annotations map[string]string) {
	s.Clones.Items[clone.Key{Kind: kind, Name: s.Machines[0].Name}].SetAnnotations(annotations)
}

// TestUndecided: as long as it cannot be told what a Machine was made from, its clones are looked at again.
func TestUndecided(t *testing.T) { // MA-24
	fresh := func(s *snapshot) { s.Machines[0].Status.Conditions = nil }
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   bool
	}{
		"settled":                     {"nothing is open", settled(known("m1", "m2")), false},
		"made by hand":                {"somebody may annotate it", settled(known("m1", "m2"), byHand("FooMachine")), true},
		"new, clones not there yet":   {"it was never judged", settled(known("m2"), fresh), true},
		"judged before, clones gone":  {"it stays as it was", settled(known("m2")), false},
		"a MachineDeployment's, none": {"judged by its set", settled(known(), fresh, ofDeployment()), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.s).Recheck == missingRecheck; got != tc.want {
				t.Errorf("looks again: %v, want %v: %s", got, tc.want, tc.reason)
			}
			if got := !tc.s.State().IsUpToDate(); tc.want && !got {
				t.Errorf("takes it for settled: %s", tc.reason)
			}
		})
	}
}
