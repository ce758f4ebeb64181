package machineset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestDecide(t *testing.T) {
	annotated := func(key string) func(*Snapshot) {
		return func(s *Snapshot) { s.Set.Annotations = map[string]string{key: "true"} }
	}
	cases := map[string]struct {
		reason string
		s      Snapshot
		want   []string
	}{
		"settled":        {"nothing to do", settled(), nil},
		"no cluster":     {"MS-02", settled(func(s *Snapshot) { s.Cluster = nil }), []string{"wait: Cluster c does not exist; reconciliation of MachineSet ms resumes when it does"}},
		"not joined yet": {"MS-02: label and owner come first", settled(func(s *Snapshot) { s.Set.OwnerReferences = nil }), []string{"do: join Cluster c"}},
		"labelled, not owned": {"MS-02: never joined by itself, and idle until the MachineDeployment has adopted it",
			settled(replicas(3), func(s *Snapshot) {
				s.Set.Labels[clusterv1.MachineDeploymentNameLabel], s.Set.OwnerReferences = "md", nil
			}), []string{"wait: MachineSet ms is labelled as part of MachineDeployment md, which has not adopted it yet"}},
		"orphan": {"MS-03: counted once it is adopted", settled(replicas(3), func(s *Snapshot) { s.Others = []*clusterv1.Machine{orphan("a")} }),
			[]string{"do: adopt Machine a: it matches the selector", "wait: adopting a"}},
		"orphan that goes": {"MS-03: not adopted, and not waited for",
			settled(func(s *Snapshot) { s.Others = []*clusterv1.Machine{orphan("a", going(time.Minute))} }), nil},
		"of the set by label only": {"OR-01: it blocks creation",
			settled(replicas(3), func(s *Snapshot) {
				s.Others = []*clusterv1.Machine{orphan("a", func(m *clusterv1.Machine) { delete(m.Labels, "set") })}
			}), []string{"wait: Machine a: labelled as part of MachineSet ms, which cannot adopt it: correct its labels or its owner"}},
		"workload cluster not seen": {"OR-01: an empty status may be a lost one",
			settled(with(), func(s *Snapshot) {
				s.Set.Status.ObservedGeneration, s.Workload.Problem, s.Unanswered = 0, "it is not connected", true
			}),
			[]string{"wait: Machines are made once the workload cluster has been seen: it is not connected", "recheck: 5s"}},
		"workload cluster not there": {"OR-01: its Cluster wakes the set when it is",
			settled(with(), func(s *Snapshot) {
				s.Set.Status.ObservedGeneration, s.Workload.Problem = 0, "its control plane is not initialized yet"
			}),
			[]string{"wait: Machines are made once the workload cluster has been seen: its control plane is not initialized yet"}},
		"templates of a standalone set": {"OR-01: they go with the Cluster", settled(func(s *Snapshot) {
			s.Infra.Object.SetOwnerReferences(nil)
			s.Bootstrap.Object.SetOwnerReferences(nil)
		}), []string{"do: make the Cluster an owner of FooConfigTemplate bt", "do: make the Cluster an owner of FooMachineTemplate it"}},
		"templates of a MachineDeployment": {"OR-01: its own affair", settled(ofDeployment(), func(s *Snapshot) { s.Infra.Object.SetOwnerReferences(nil) }), nil},
		"scale up": {"MS-04, MS-06: names by the default template", settled(replicas(4)),
			[]string{"do: create Machines ms-aaaaa, ms-bbbbb: scale up from 2 to 4"}},
		"scale up from none": {"", settled(with()), []string{"do: create Machines ms-aaaaa, ms-bbbbb: scale up from 0 to 2"}},
		"names": {"MS-06", settled(replicas(3), func(s *Snapshot) { s.Set.Spec.MachineNaming.Template = "{{ .cluster.name }}x{{ .random }}" }),
			[]string{"do: create Machine cxaaaaa: scale up from 2 to 3"}},
		"name taken": {"MS-06: never two of a name", settled(replicas(3), func(s *Snapshot) { s.Machines[0].Name = "ms-aaaaa" }),
			[]string{"do: create Machine ms-bbbbb: scale up from 2 to 3"}},
		"names that are none": {"refused by the webhook, and no crash", settled(replicas(3), func(s *Snapshot) { s.Set.Spec.MachineNaming.Template = "x" }),
			[]string{"wait: spec.machineNaming.template has to use {{ .random }}: names would not be unique without it"}},
		"created a moment ago": {"never one too many while the cache lags", settled(replicas(3), func(s *Snapshot) { s.Created = []string{"ms-x"} }),
			[]string{"wait: 1 new Machines are not in the cache yet", "recheck: 5s"}},
		"replicas not said": {"MS-22 did not run", settled(func(s *Snapshot) { s.Set.Spec.Replicas = nil }), []string{"wait: " + waitingForReplicas}},
		"creation disabled": {"MS-11", settled(replicas(3), annotated(clusterv1.DisableMachineCreateAnnotation)),
			[]string{"wait: annotation cluster.x-k8s.io/disable-machine-create stops the creation of Machines"}},
		"template not there": {"", settled(replicas(3), func(s *Snapshot) { s.Infra.Object = contract.Object{} }),
			[]string{"wait: FooMachineTemplate it does not exist", "recheck: 30s"}},
		"template unreadable": {"", settled(replicas(3), func(s *Snapshot) { s.Bootstrap.Problem = "install it" }), []string{"wait: install it", "recheck: 30s"}},
		"preflight": {"MS-12", settled(replicas(3), func(s *Snapshot) { s.Set.Spec.Template.Spec.Version = "v1.37.0" }, func(s *Snapshot) {
			for _, m := range s.Machines {
				says(is("UpToDate", "True", "UpToDate", ""))(m.Machine)
			}
		}), []string{"wait: Version v1.37.0 of the MachineSet is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)", "recheck: 15s"}},
		"scale down":                            {"MS-10: in an order that stays the same", settled(replicas(1)), []string{"do: delete Machine m1: scale down to 1, in random order"}},
		"scale down, one goes already":          {"it counts", settled(replicas(1), with(asIs, going(time.Minute))), nil},
		"scale down, deletion not in the cache": {"never one too many while the cache lags", settled(replicas(1), func(s *Snapshot) { s.Machines[1].Deleted = true }), nil},
		"to nothing":                            {"", settled(replicas(0)), []string{"do: delete Machines m1, m2: scale down to 0, in random order"}},
		"not verified": {"clones are looked at once for each generation", settled(func(s *Snapshot) { s.Verified = false }),
			[]string{"ask: bootstrap configs and infrastructure machines of the Machines"}},
		"drift": {"MS-08", settled(func(s *Snapshot) { s.Set.Spec.Template.Labels["new"] = "1" }),
			[]string{"ask: bootstrap configs and infrastructure machines of the Machines"}},
		"drift of what was just written": {"wait for the cache", settled(func(s *Snapshot) {
			s.Set.Spec.Template.Labels["new"] = "1"
			s.Machines[0].Stale, s.Machines[1].Stale = true, true
		}), nil},
		"drift, clones known": {"MS-08: clones first", settled(known("m1", "m2"), func(s *Snapshot) { s.Set.Spec.Template.Labels["new"] = "1" }),
			[]string{
				"do: sync labels and annotations to FooConfig m1", "do: sync labels and annotations to FooMachine m1",
				"do: sync labels and annotations to FooConfig m2", "do: sync labels and annotations to FooMachine m2",
				"do: sync Machine m1: it is not what the template says", "do: sync Machine m2: it is not what the template says",
			}},
		"timeouts of a Machine that goes": {"MS-08: nothing else", settled(with(asIs, going(time.Minute)), known("m1"), func(s *Snapshot) {
			s.Set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr(int32(1))
			s.Set.Spec.Template.Labels["new"] = "1"
			s.Machines = s.Machines[1:]
			s.Set.Spec.Replicas = ptr(int32(1))
		}), []string{"do: sync Machine m2: the timeouts of its deletion changed"}},
		"orphaned clone": {"MS-04", settled(known("m1", "m2", "lost"), func(s *Snapshot) { s.Clones.Orphans = orphans(*s) }),
			[]string{"do: delete FooConfig lost: its Machine was never made", "do: delete FooMachine lost: its Machine was never made"}},
		"deletion": {"MS-25", settled(func(s *Snapshot) { s.Set.DeletionTimestamp = ptr(ago(0)) }),
			[]string{"do: delete Machines m1, m2: the MachineSet is deleted", "wait: Waiting for 2 Machines to be deleted"}},
		"deletion under way": {"MS-25", settled(with(going(time.Minute)), func(s *Snapshot) { s.Set.DeletionTimestamp = ptr(ago(0)) }),
			[]string{"wait: Waiting for 1 Machines to be deleted"}},
		"deletion over": {"MS-25: the finalizer goes", settled(with(), func(s *Snapshot) { s.Set.DeletionTimestamp = ptr(ago(0)) }), nil},
		"deletion with a Machine that is not in the cache": {"MS-25", settled(with(), func(s *Snapshot) {
			s.Set.DeletionTimestamp, s.Created = ptr(ago(0)), []string{"a"}
		}), []string{"wait: Waiting for 1 Machines to be deleted", "recheck: 5s"}},
		"deletion without its Cluster": {"nothing of it is needed", settled(with(asIs), func(s *Snapshot) {
			s.Set.DeletionTimestamp, s.Cluster = ptr(ago(0)), nil
		}), []string{"do: delete Machine m1: the MachineSet is deleted", "wait: Waiting for 1 Machines to be deleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(Decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// known answers the question for clones: those of the named Machines are as they were made.
func known(names ...string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Clones = &Clones{Items: map[cloneKey]contract.Object{}}
		for _, name := range names {
			parts, err := build(*s, name)
			if err != nil {
				panic(err)
			}
			for _, o := range parts.objects[:2] {
				s.Clones.Items[cloneKey{o.GetKind(), name}] = contract.Object{Unstructured: o}
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
			s := settled(with(tc.a, tc.b))
			if got := lessMissed(s.Machines[0], s.Machines[1], tc.order); (got < 0) != (tc.first == "m1") || got == 0 {
				t.Errorf("got %d, want %s to go: %s", got, tc.first, tc.reason)
			}
			if a, b := lessMissed(s.Machines[0], s.Machines[1], tc.order), lessMissed(s.Machines[1], s.Machines[0], tc.order); (a < 0) == (b < 0) {
				t.Errorf("no order: %d and %d", a, b)
			}
		})
	}
}

func TestPreflight(t *testing.T) { // MS-12 to MS-17
	version := func(v string) func(*Snapshot) { return func(s *Snapshot) { s.Set.Spec.Template.Spec.Version = v } }
	planeIs := func(spec, status string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.ControlPlane = plane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {" + spec + "}, status: {" + status + "}}")
		}
	}
	topology := func(v, step string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: v}
			if step != "" {
				s.Cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: step}
			}
		}
	}
	kubeadm := func(s *Snapshot) {
		s.Set.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "bt"}
	}
	skip := func(text string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Set.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: text}
		}
	}
	settings := func(v Settings) func(*Snapshot) { return func(s *Snapshot) { s.Settings = v } }
	stable := func(v string) func(*Snapshot) { return planeIs("version: "+v, "versions: [{version: "+v+"}]") }
	const newer = "Version v1.37.0 of the MachineSet is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)"
	cases := map[string]struct {
		reason  string
		changes []func(*Snapshot)
		want    []string
	}{
		"fine": {"all versions the same", nil, nil},
		"nothing to make": {"MS-12: asked for only where it matters",
			[]func(*Snapshot){replicas(2), version("v1.37.0")}, nil},
		"no control plane object": {"MS-17", []func(*Snapshot){version("v1.37.0"), func(s *Snapshot) {
			s.Cluster.Spec.ControlPlaneRef, s.ControlPlane = clusterv1.ContractVersionedObjectReference{}, nil
		}}, nil},
		"control plane without version": {"MS-17", []func(*Snapshot){version("v1.37.0"), planeIs("", "")}, nil},
		"control plane not there yet":   {"nothing is known of it", []func(*Snapshot){func(s *Snapshot) { s.ControlPlane = nil }}, []string{"FooPlane p does not exist"}},
		"control plane unreadable":      {"", []func(*Snapshot){func(s *Snapshot) { s.ControlPlaneProblem = "install it" }}, []string{"install it"}},
		"no version is a version":       {"", []func(*Snapshot){planeIs("version: next", "")}, []string{`Version "next" of FooPlane p is not a semantic version`}},
		"set's version is none":         {"", []func(*Snapshot){version("next")}, []string{`Version "next" of the MachineSet is not a semantic version`}},
		"set without version":           {"MS-17", []func(*Snapshot){version("")}, nil},
		"provisioning":                  {"MS-13", []func(*Snapshot){planeIs("version: v1.36.3", "")}, []string{"FooPlane p is being provisioned (preflight check ControlPlaneIsStable)"}},
		"upgrading": {"MS-13: the oldest of its Machines counts",
			[]func(*Snapshot){planeIs("version: v1.36.3", "versions: [{version: v1.36.2}, {version: v1.36.3}]")},
			[]string{"FooPlane p is being upgraded from v1.36.2 to v1.36.3 (preflight check ControlPlaneIsStable)"}},
		"upgrade pending": {"MS-13: the topology wants more", []func(*Snapshot){topology("v1.37.0", "")},
			[]string{"FooPlane p is about to be upgraded to v1.37.0 (preflight check ControlPlaneIsStable)"}},
		"upgrade pending, another step": {"MS-13", []func(*Snapshot){topology("v1.38.0", "v1.37.0")},
			[]string{"FooPlane p is about to be upgraded to v1.37.0 (preflight check ControlPlaneIsStable)"}},
		"at this step of an upgrade": {"MS-13: workers follow step by step", []func(*Snapshot){topology("v1.38.0", "v1.36.3")}, nil},
		"newer":                      {"MS-14", []func(*Snapshot){version("v1.37.0")}, []string{newer}},
		"newer patch":                {"MS-14: minor versions count", []func(*Snapshot){version("v1.36.9")}, nil},
		"three older":                {"MS-14", []func(*Snapshot){version("v1.33.0")}, nil},
		"four older": {"MS-14", []func(*Snapshot){version("v1.32.9")},
			[]string{"Version v1.32.9 of the MachineSet is more than 3 minor versions older than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)"}},
		"three older, before v1.28": {"MS-14: as for every other version", []func(*Snapshot){version("v1.24.0"), stable("v1.27.0")}, nil},
		"four older, before v1.28": {"MS-14", []func(*Snapshot){version("v1.23.0"), stable("v1.27.0")},
			[]string{"Version v1.23.0 of the MachineSet is more than 3 minor versions older than version v1.27.0 of FooPlane p (preflight check KubernetesVersionSkew)"}},
		"no patch number": {"MS-13, MS-14: managed control planes have versions without", []func(*Snapshot){version("v1.29.4"),
			planeIs("version: v1.29", "version: v1.29.7-eks-5e0fdde")}, nil},
		"no patch number, nor v": {"MS-13, MS-14", []func(*Snapshot){version("v1.29.4"), planeIs("version: \"1.29\"", "version: \"1.29\"")}, nil},
		"no patch number, kubeadm": {"MS-15", []func(*Snapshot){kubeadm, version("v1.28.4"), planeIs("version: v1.29", "version: v1.29")},
			[]string{"Version v1.28.4 of the MachineSet must have the minor version of what it joins with kubeadm: version v1.29 of FooPlane p (preflight check KubeadmVersionSkew)"}},
		"no patch number, upgrading": {"MS-13: by minor version", []func(*Snapshot){version("v1.28.4"), planeIs("version: v1.29", "version: v1.28.9-eks-036c24b")},
			[]string{"FooPlane p is being upgraded from v1.28.9-eks-036c24b to v1.29 (preflight check ControlPlaneIsStable)"}},
		"no patch number, topology": {"MS-13, MS-16: the Cluster says more precisely what it asks for",
			[]func(*Snapshot){topology("v1.29.4", ""), version("v1.29.4"), planeIs("version: v1.29", "version: v1.29.7-eks-5e0fdde")}, nil},
		"suffix of a distribution": {"MS-13: that is what the spec asks for", []func(*Snapshot){planeIs("version: v1.36.3", "version: v1.36.3-eks-5e0fdde")}, nil},
		"another build": {"MS-13: an upgrade, too", []func(*Snapshot){planeIs("version: v1.36.3+b2", "version: v1.36.3+b1")},
			[]string{"FooPlane p is being upgraded from v1.36.3+b1 to v1.36.3+b2 (preflight check ControlPlaneIsStable)"}},
		"newer than the spec": {"MS-13: providers upgrade patch versions by themselves", []func(*Snapshot){planeIs("version: v1.36.3", "version: v1.36.5")}, nil},
		"as the spec, which does not run": {"MS-15: what runs decides who can join", []func(*Snapshot){kubeadm, version("v1.35.4"), planeIs("version: v1.35.4", "version: v1.36.3")},
			[]string{"Version v1.35.4 of the MachineSet must have the minor version of what it joins with kubeadm: version v1.36.3, which FooPlane p runs while its spec asks for v1.35.4 (preflight check KubeadmVersionSkew)"}},
		"as what runs, the spec is older": {"MS-14, MS-15: it can join", []func(*Snapshot){kubeadm, version("v1.36.3"), planeIs("version: v1.35.4", "version: v1.36.3")}, nil},
		"newer than what runs": {"MS-14: although the spec asks for it", []func(*Snapshot){version("v1.37.0"), skip("ControlPlaneIsStable"), planeIs("version: v1.37.0", "version: v1.36.3")},
			[]string{"Version v1.37.0 of the MachineSet is newer than version v1.36.3, which FooPlane p runs while its spec asks for v1.37.0 (preflight check KubernetesVersionSkew)"}},
		"unreadable status":   {"nobody can tell what runs", []func(*Snapshot){planeIs("version: v1.36.3", "version: main")}, []string{`Version "main" that FooPlane p runs is not a semantic version`}},
		"kubeadm, same minor": {"MS-15", []func(*Snapshot){kubeadm, version("v1.36.0")}, nil},
		"kubeadm, older minor": {"MS-15", []func(*Snapshot){kubeadm, version("v1.35.3")},
			[]string{"Version v1.35.3 of the MachineSet must have the minor version of what it joins with kubeadm: version v1.36.3 of FooPlane p (preflight check KubeadmVersionSkew)"}},
		"topology, other patch": {"MS-16", []func(*Snapshot){topology("v1.36.3", ""), version("v1.36.2")},
			[]string{"Version v1.36.2 of the MachineSet is not version v1.36.3 of FooPlane p: it will be replaced soon (preflight check ControlPlaneVersionSkew)"}},
		"skipped":         {"MS-17", []func(*Snapshot){version("v1.37.0"), skip("ControlPlaneIsStable, KubernetesVersionSkew")}, nil},
		"another skipped": {"MS-17", []func(*Snapshot){version("v1.37.0"), skip("KubeadmVersionSkew")}, []string{newer}},
		"all skipped":     {"MS-17", []func(*Snapshot){version("v1.37.0"), planeIs("version: v1.36.3", ""), skip("All")}, nil},
		"skipped by the MachineDeployment": {"MS-17", []func(*Snapshot){version("v1.37.0"), ofDeployment(func(d *clusterv1.MachineDeployment) {
			d.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation] = "KubernetesVersionSkew"
		})}, nil},
		"skipped by the bootstrap template": {"MS-17", []func(*Snapshot){version("v1.37.0"), func(s *Snapshot) {
			s.Bootstrap.Object.SetAnnotations(map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "KubernetesVersionSkew"})
		}}, nil},
		"gate off": {"MS-12", []func(*Snapshot){version("v1.37.0"), settings(Settings{NoPreflight: true})}, nil},
		"chosen by the flag, others": {"MS-17", []func(*Snapshot){version("v1.37.0"),
			settings(Settings{Preflight: []clusterv1.MachineSetPreflightCheck{clusterv1.MachineSetPreflightCheckKubeadmVersionSkew}})}, nil},
		"chosen by the flag": {"MS-17", []func(*Snapshot){version("v1.37.0"),
			settings(Settings{Preflight: []clusterv1.MachineSetPreflightCheck{clusterv1.MachineSetPreflightCheckAll}})}, []string{newer}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settled(append([]func(*Snapshot){replicas(3)}, tc.changes...)...)
			if diff := cmp.Diff(tc.want, preflight(s)); diff != "" {
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
	atOnce := func(v intstr.IntOrString) func(*Snapshot) {
		return ofDeployment(func(d *clusterv1.MachineDeployment) { d.Spec.Remediation.MaxInFlight = &v })
	}
	one := atOnce(intstr.FromInt32(1))
	judged := func(name, reason string) string {
		return "do: judge Machine " + name + ": UpToDate is as it was, OwnerRemediated is False (" + reason + ")"
	}
	cases := map[string]struct {
		reason string
		s      Snapshot
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
		"limit reached": {"one is replaced already", settled(one, with(started, sick()), func(s *Snapshot) { s.Machines[0].Deleted = true }),
			[]string{judged("m2", "RemediationDeferred")}},
		"limit in percent": {"25% of 4 replicas is one", settled(atOnce(intstr.FromString("25%")), with(sick(), older)),
			[]string{judged("m1", "MachineDeleting"), judged("m2", "RemediationDeferred")}},
		"limit that is none": {"refused by the webhook, and no crash", settled(atOnce(intstr.FromString("many")), with(sick(), asIs)), []string{judged("m1", "CannotBeRemediated")}},
		"old revision": {"the rollout replaces it", settled(ofDeployment(), with(sick(), asIs), func(s *Snapshot) {
			s.Set.Annotations[clusterv1.RevisionAnnotation] = "1"
		}), []string{judged("m1", "CannotBeRemediated")}},
		"preflight": {"MS-12: a replacement could not join", settled(ofDeployment(), with(sick(), asIs), func(s *Snapshot) {
			s.ControlPlane = plane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {version: v1.36.3}}")
		}), []string{judged("m1", "RemediationDeferred"), "recheck: 15s"}},
		"well again": {"what was said is withdrawn", settled(ofDeployment(), with(says(
			is("HealthCheckSucceeded", "True", "HealthCheckSucceeded", ""), is("OwnerRemediated", "False", "RemediationDeferred", "x")), asIs)),
			[]string{"do: judge Machine m1: UpToDate is as it was"}},
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
			if diff := cmp.Diff(tc.want, texts(Decide(tc.s))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUpToDate(t *testing.T) { // MA-24
	cases := map[string]struct {
		reason string
		s      Snapshot
		want   string
	}{
		"of a deployment": {"the Machine controller judges it", settled(known("m1", "m2"), ofDeployment()), "  "},
		"updating": {"", settled(known("m1", "m2"), with(func(m *clusterv1.Machine) { m.Annotations[clusterv1.UpdateInProgressAnnotation] = "" })),
			"False Updating * In-place update in progress"},
		"standalone": {"made from the template", settled(known("m1", "m2")), "True UpToDate "},
		"standalone, other template": {"its clones remember", settled(known("m1"), func(s *Snapshot) { s.Set.Spec.Template.Spec.InfrastructureRef.Name = "it2" }),
			"False NotUpToDate * FooMachineTemplate it, it2 required"},
		"standalone, clones not asked for": {"what was said stays", settled(), "True UpToDate "},
		"standalone, clones not there":     {"the cache is behind, or they were deleted", settled(known("other")), "True UpToDate "},
		"standalone, new, clones not there": {"nothing is known, and nothing was said", settled(known("other"), func(s *Snapshot) {
			s.Machines[0].Status.Conditions = nil
		}), "  "},
		"standalone, adopted": {"what can be compared is the same, and the rest is said", settled(known("m1"), byHand("FooMachine")),
			"Unknown UpToDateUnknown * FooMachine m1 does not say which template it was made from: name it in its annotations cluster.x-k8s.io/cloned-from-name and cluster.x-k8s.io/cloned-from-groupkind, or replace the Machine"},
		"standalone, adopted, other version": {"what differs is known", settled(known("m1"), byHand("FooMachine"), byHand("FooConfig"), func(s *Snapshot) {
			s.Machines[0].Spec.Version = "v1.35.0"
		}), "False NotUpToDate * Version v1.35.0, v1.36.3 required"},
		"standalone, adopted, of another template": {"made by another set", settled(known("m1"), func(s *Snapshot) {
			annotate(s, "FooConfig", map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "old", clusterv1.TemplateClonedFromGroupKindAnnotation: "FooConfigTemplate.b"})
		}), "False NotUpToDate * FooConfigTemplate old, bt required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := upToDate(tc.s, tc.s.Machines[0].Machine)
			if got := string(v.Status) + " " + v.Reason + " " + v.Message; got != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// byHand makes the clone of the first Machine one that no template was used for.
func byHand(kind string) func(*Snapshot) {
	return func(s *Snapshot) { annotate(s, kind, map[string]string{"note": "1"}) }
}

func annotate(s *Snapshot, kind string, annotations map[string]string) {
	s.Clones.Items[cloneKey{kind, s.Machines[0].Name}].SetAnnotations(annotations)
}

// TestUndecided: as long as it cannot be told what a Machine was made from, its clones are looked at again.
func TestUndecided(t *testing.T) { // MA-24
	fresh := func(s *Snapshot) { s.Machines[0].Status.Conditions = nil }
	for name, tc := range map[string]struct {
		reason string
		s      Snapshot
		want   bool
	}{
		"settled":                     {"nothing is open", settled(known("m1", "m2")), false},
		"made by hand":                {"somebody may annotate it", settled(known("m1", "m2"), byHand("FooMachine")), true},
		"new, clones not there yet":   {"it was never judged", settled(known("m2"), fresh), true},
		"judged before, clones gone":  {"it stays as it was", settled(known("m2")), false},
		"a MachineDeployment's, none": {"judged by its set", settled(known(), fresh, ofDeployment()), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(tc.s).Recheck == missingRecheck; got != tc.want {
				t.Errorf("looks again: %v, want %v: %s", got, tc.want, tc.reason)
			}
			if got := !verified(tc.s); tc.want && !got {
				t.Errorf("takes it for settled: %s", tc.reason)
			}
		})
	}
}

func TestControllerOf(t *testing.T) { // MS-03
	ref := func(kind, name, uid string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr(true)}}
		}
	}
	for name, tc := range map[string]struct {
		m    *clusterv1.Machine
		want ownership.Controller
	}{
		"nobody":          {orphan("a"), ownership.Nobody},
		"its former self": {withOwner(ref("MachineSet", "ms", "other")), ownership.Nobody},
		"itself":          {withOwner(ref("MachineSet", "ms", "ms")), ownership.Self},
		"another set":     {withOwner(ref("MachineSet", "ms2", "other")), ownership.Other},
		"a control plane": {withOwner(ref("FooPlane", "ms", "other")), ownership.Other},
	} {
		if got := controllerOf(newSet(), tc.m); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func withOwner(f func(*clusterv1.Machine)) *clusterv1.Machine {
	m := orphan("a")
	f(m)
	return m
}
