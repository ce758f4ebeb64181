package move

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
)

var (
	planeID   = graph.ID{Group: "controlplane.slipway.dev", Kind: "HostedControlPlane", Namespace: "ns", Name: "demo"}
	networkID = graph.ID{Group: "infrastructure.slipway.dev", Kind: "LocalCluster", Namespace: "ns", Name: "demo"}
	machineID = graph.ID{Group: "infrastructure.slipway.dev", Kind: "LocalMachine", Namespace: "ns", Name: "w"}
)

func whole() HostResources {
	return HostResources{From: "a", To: "b", Target: "/b", Versions: []string{"v1.35.2", "v1.36.3"}, Clusters: []HostCluster{{
		Key: "ns/demo", UID: "u", Networks: []graph.ID{networkID}, Machines: []HostMachine{{machineID, "ns/w"}},
		Planes: []HostPlane{{ID: planeID, Name: "ns.demo", AtSource: true, Initialized: true, PID: 7, Version: "v1.36.3", Relocatable: true}},
		Items: []hosttransfer.Item{
			{Kind: hosttransfer.Network, ID: "n", Creator: "a", Object: "ns/demo"}, {Kind: hosttransfer.Container, ID: "c", Creator: "a", Object: "ns/w"},
			{Kind: hosttransfer.Volume, ID: "v@1", Creator: "a", Object: "ns/w"},
		},
	}}}
}

// MV-03, MV-13: what is handed over, and what is refused before anything is written.
func TestSurvey(t *testing.T) {
	things := "host: hand over 1 network, 1 container, 1 volume of Cluster ns/demo: nothing restarts"
	plane := "host: hand over HostedControlPlane ns/demo with its data: "
	began := func(f *HostResources) {
		f.Clusters[0].Record = &hosttransfer.Record{Cluster: "ns/demo", UID: "u", From: "a", To: "b", InProgress: true, Planes: []string{"ns.demo"}, Items: f.Clusters[0].Items}
		f.Clusters[0].Items = nil
	}
	cases := map[string]struct {
		reason   string
		change   func(*HostResources)
		steps    []string
		problems []string
	}{
		"whole":         {"nothing restarts", func(*HostResources) {}, []string{plane + "process 7 keeps running", things}, nil},
		"load balancer": {"its folder goes along", func(f *HostResources) { f.Clusters[0].Balancers = []string{"ns.demo"} }, []string{plane + "process 7 keeps running", "host: hand over 1 network, 1 container, 1 volume, the load balancer of Cluster ns/demo: nothing restarts"}, nil},
		"not running":   {"the target starts it", func(f *HostResources) { f.Clusters[0].Planes[0].PID = 0 }, []string{plane + "it does not run now", things}, nil},
		"old process": {"it knows its files by their path", func(f *HostResources) { f.Clusters[0].Planes[0].Relocatable = false },
			[]string{plane + "process 7 restarts, because it was started by an older version of slipway, or in a folder with a long path, and would not find its files at another place", things}, nil},
		"another patch version": {"the target would restart it by itself", func(f *HostResources) { f.Versions = []string{"v1.36.4"} }, []string{plane + "process 7 restarts, because the target runs it at v1.36.4", things}, nil},
		"version missing": {"no one would keep it running", func(f *HostResources) { f.Versions = []string{"v1.35.2"} }, []string{plane + "process 7 keeps running", things},
			[]string{`HostedControlPlane ns/demo is of Kubernetes v1.36.3, which the target does not have: add it there first, with "slipway versions add v1.36.3 --data-dir /b"`}},
		"no data":         {"there is nothing to hand over", func(f *HostResources) { f.Clusters[0].Planes[0].AtSource = false }, []string{plane + "process 7 keeps running", things}, []string{"HostedControlPlane ns/demo has no data on this host: restore it from a backup, or delete the cluster"}},
		"folder there":    {"one of the two would be lost", func(f *HostResources) { f.Clusters[0].Planes[0].AtTarget = true }, []string{plane + "process 7 keeps running", things}, []string{"HostedControlPlane ns/demo has a folder of its name in the target's data directory already: delete the control plane there, or move /b/planes/ns.demo away if it is of none"}},
		"restoring":       {"a file is being written there", func(f *HostResources) { f.Clusters[0].Planes[0].Restoring = true }, []string{plane + "process 7 keeps running", things}, []string{"HostedControlPlane ns/demo is being restored from a snapshot: wait until that is over"}},
		"not initialized": {"the target would start it empty", func(f *HostResources) { f.Clusters[0].Planes[0].Initialized = false }, []string{plane + "process 7 keeps running", things}, []string{"HostedControlPlane ns/demo is not noted to be initialized yet: wait a moment"}},
		"nothing in Docker": {"the target would create others", func(f *HostResources) { f.Clusters[0].Items = nil }, []string{plane + "process 7 keeps running"},
			[]string{"LocalCluster ns/demo has no network on this host that is the source's", "LocalMachine ns/w has no container on this host that is the source's: delete its Machine"}},
		"stray": {"it would be left behind", func(f *HostResources) { f.Orphans = []graph.ID{machineID} }, []string{plane + "process 7 keeps running", things}, []string{"LocalMachine ns/w has something on this host, and is of no Cluster that moves"}},
		"begun, folder moved": {"the rest is continued", func(f *HostResources) {
			began(f)
			f.Clusters[0].Planes[0].AtSource, f.Clusters[0].Planes[0].AtTarget, f.Versions = false, true, nil
		}, []string{plane + "process 7 keeps running", things}, nil},
		"images": {"those for later nodes go along", func(f *HostResources) { f.Clusters[0].Images = []string{"ns/demo"} },
			[]string{plane + "process 7 keeps running", strings.Replace(things, " of Cluster", ", the images that are kept for later nodes of Cluster", 1)}, nil},
		"images there": {"they are of another Cluster", func(f *HostResources) { f.Clusters[0].Images, f.Clusters[0].ImagesAtTarget = []string{"ns/demo"}, true },
			[]string{plane + "process 7 keeps running", strings.Replace(things, " of Cluster", ", the images that are kept for later nodes of Cluster", 1)},
			[]string{"the target keeps images for a Cluster ns/demo already: move /b/images/ns/demo away"}},
		"begun, both folders": {"one was made meanwhile", func(f *HostResources) { began(f); f.Clusters[0].Planes[0].AtTarget = true }, []string{plane + "process 7 keeps running", things}, []string{"HostedControlPlane ns/demo has a folder of its name in the target's data directory already: delete the control plane there, or move /b/planes/ns.demo away if it is of none"}},
		"begun, to another": {"two would have it", func(f *HostResources) {
			f.Clusters[0].Record = &hosttransfer.Record{Cluster: "ns/demo", UID: "u", From: "a", To: "c", InProgress: true}
		}, []string{plane + "process 7 keeps running", things}, []string{"Cluster ns/demo is being handed over to another data directory: complete that move, or take it back with --rollback, first"}},
		"none": {"simulated ones have nothing here", func(f *HostResources) { f.Clusters = []HostCluster{{Key: "ns/sim", UID: "s"}} }, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := whole()
			tc.change(&f)
			holdings, problems := hostSurvey(f)
			var steps []string
			for _, h := range holdings {
				steps = append(steps, h.Steps()...)
			}
			if diff := cmp.Diff(tc.steps, steps); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestApart(t *testing.T) {
	found := func(name string) hostLocation {
		return hostLocation{Name: name, Named: true, Location: hosttransfer.Location{Dir: "/" + name, Instance: name, Boot: "boot"}, InstanceID: name, OwnedByUser: true, Locked: true, TrustsCA: true, Mount: 1}
	}
	cases := map[string]struct {
		change func(source, target *hostLocation)
		want   string
	}{
		"together":          {func(*hostLocation, *hostLocation) {}, ""},
		"somewhere":         {func(_, target *hostLocation) { target.Named = false }, "the target does not tell this user on which host it runs"},
		"another host":      {func(_, target *hostLocation) { target.Boot = "other" }, "the target runs on another host"},
		"both elsewhere":    {func(s, target *hostLocation) { s.Boot, target.Boot = "other", "other" }, "run it there"},
		"another directory": {func(s, _ *hostLocation) { s.InstanceID = "x" }, "cannot be read, or is another one"},
		"another user's":    {func(s, _ *hostLocation) { s.OwnedByUser = false }, "is another user's"},
		"ended":             {func(_, target *hostLocation) { target.Locked = false }, "no process of slipway runs in /target"},
		"another server":    {func(_, target *hostLocation) { target.TrustsCA = false }, "does not trust the authority of its data directory"},
		"file systems":      {func(_, target *hostLocation) { target.Mount = 2 }, "on different file systems"},
		"engines":           {func(_, target *hostLocation) { target.Docker = "tcp://x" }, "different Docker Engines"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source, target := found("source"), found("target")
			tc.change(&source, &target)
			if got := sharedHostProblem(source, target, "boot"); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
