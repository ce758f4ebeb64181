package machines_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func preflightControlPlane(text string) contract.ControlPlaneView {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return contract.ControlPlane(contract.Object{Unstructured: u, Contract: contract.V1Beta2})
}

func TestWorkers(t *testing.T) { // MS-12 to MS-17
	version := func(v string) func(*machines.PreflightWorkers) {
		return func(w *machines.PreflightWorkers) { w.Machine.Version = v }
	}
	planeIs := func(spec, status string) func(*machines.PreflightWorkers) {
		return func(w *machines.PreflightWorkers) {
			w.ControlPlane = preflightControlPlane("{apiVersion: p/v1, kind: FooPlane, metadata: {name: p}, spec: {" + spec + "}, status: {" + status + "}}")
		}
	}
	topology := func(v, step string) func(*machines.PreflightWorkers) {
		return func(w *machines.PreflightWorkers) {
			w.Cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: v}
			if step != "" {
				w.Cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeStepAnnotation: step}
			}
		}
	}
	kubeadm := func(w *machines.PreflightWorkers) {
		w.Machine.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "bt"}
	}
	stable := func(v string) func(*machines.PreflightWorkers) {
		return planeIs("version: "+v, "versions: [{version: "+v+"}]")
	}
	const newer = "Version v1.37.0 of the MachineSet is newer than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)"
	cases := map[string]struct {
		reason  string
		changes []func(*machines.PreflightWorkers)
		want    []string
	}{
		"fine":                          {"all versions the same", nil, nil},
		"control plane without version": {"MS-17", []func(*machines.PreflightWorkers){version("v1.37.0"), planeIs("", "")}, nil},
		"control plane not there yet":   {"nothing is known of it", []func(*machines.PreflightWorkers){func(w *machines.PreflightWorkers) { w.ControlPlane = contract.ControlPlaneView{} }}, []string{"FooPlane p does not exist"}},
		"control plane unreadable": {"", []func(*machines.PreflightWorkers){func(w *machines.PreflightWorkers) {
			w.ControlPlane = contract.ControlPlane(contract.Object{Problem: "install it"})
		}}, []string{"install it"}},
		"no version is a version": {"", []func(*machines.PreflightWorkers){planeIs("version: next", "")}, []string{`Version "next" of FooPlane p is not a semantic version`}},
		"set's version is none":   {"", []func(*machines.PreflightWorkers){version("next")}, []string{`Version "next" of the MachineSet is not a semantic version`}},
		"set without version":     {"MS-17", []func(*machines.PreflightWorkers){version("")}, nil},
		"provisioning":            {"MS-13", []func(*machines.PreflightWorkers){planeIs("version: v1.36.3", "")}, []string{"FooPlane p is being provisioned (preflight check ControlPlaneIsStable)"}},
		"upgrading": {"MS-13: the oldest of its Machines counts",
			[]func(*machines.PreflightWorkers){planeIs("version: v1.36.3", "versions: [{version: v1.36.2}, {version: v1.36.3}]")},
			[]string{"FooPlane p is being upgraded from v1.36.2 to v1.36.3 (preflight check ControlPlaneIsStable)"}},
		"upgrade pending": {"MS-13: the topology wants more", []func(*machines.PreflightWorkers){topology("v1.37.0", "")},
			[]string{"FooPlane p is about to be upgraded to v1.37.0 (preflight check ControlPlaneIsStable)"}},
		"upgrade pending, another step": {"MS-13", []func(*machines.PreflightWorkers){topology("v1.38.0", "v1.37.0")},
			[]string{"FooPlane p is about to be upgraded to v1.37.0 (preflight check ControlPlaneIsStable)"}},
		"at this step of an upgrade": {"MS-13: workers follow step by step", []func(*machines.PreflightWorkers){topology("v1.38.0", "v1.36.3")}, nil},
		"newer":                      {"MS-14", []func(*machines.PreflightWorkers){version("v1.37.0")}, []string{newer}},
		"newer patch":                {"MS-14: minor versions count", []func(*machines.PreflightWorkers){version("v1.36.9")}, nil},
		"three older":                {"MS-14", []func(*machines.PreflightWorkers){version("v1.33.0")}, nil},
		"four older": {"MS-14", []func(*machines.PreflightWorkers){version("v1.32.9")},
			[]string{"Version v1.32.9 of the MachineSet is more than 3 minor versions older than version v1.36.3 of FooPlane p (preflight check KubernetesVersionSkew)"}},
		"three older, before v1.28": {"MS-14: as for every other version", []func(*machines.PreflightWorkers){version("v1.24.0"), stable("v1.27.0")}, nil},
		"four older, before v1.28": {"MS-14", []func(*machines.PreflightWorkers){version("v1.23.0"), stable("v1.27.0")},
			[]string{"Version v1.23.0 of the MachineSet is more than 3 minor versions older than version v1.27.0 of FooPlane p (preflight check KubernetesVersionSkew)"}},
		"no patch number": {"MS-13, MS-14: managed control planes have versions without", []func(*machines.PreflightWorkers){version("v1.29.4"),
			planeIs("version: v1.29", "version: v1.29.7-eks-5e0fdde")}, nil},
		"no patch number, nor v": {"MS-13, MS-14", []func(*machines.PreflightWorkers){version("v1.29.4"), planeIs("version: \"1.29\"", "version: \"1.29\"")}, nil},
		"no patch number, kubeadm": {"MS-15", []func(*machines.PreflightWorkers){kubeadm, version("v1.28.4"), planeIs("version: v1.29", "version: v1.29")},
			[]string{"Version v1.28.4 of the MachineSet must have the minor version of the control plane that it joins with kubeadm: version v1.29 of FooPlane p (preflight check KubeadmVersionSkew)"}},
		"no patch number, upgrading": {"MS-13: by minor version", []func(*machines.PreflightWorkers){version("v1.28.4"), planeIs("version: v1.29", "version: v1.28.9-eks-036c24b")},
			[]string{"FooPlane p is being upgraded from v1.28.9-eks-036c24b to v1.29 (preflight check ControlPlaneIsStable)"}},
		"no patch number, topology": {"MS-13, MS-16: the Cluster says more precisely what it asks for",
			[]func(*machines.PreflightWorkers){topology("v1.29.4", ""), version("v1.29.4"), planeIs("version: v1.29", "version: v1.29.7-eks-5e0fdde")}, nil},
		"suffix of a distribution": {"MS-13: that is what the spec asks for", []func(*machines.PreflightWorkers){planeIs("version: v1.36.3", "version: v1.36.3-eks-5e0fdde")}, nil},
		"another build": {"MS-13: an upgrade, too", []func(*machines.PreflightWorkers){planeIs("version: v1.36.3+b2", "version: v1.36.3+b1")},
			[]string{"FooPlane p is being upgraded from v1.36.3+b1 to v1.36.3+b2 (preflight check ControlPlaneIsStable)"}},
		"newer than the spec": {"MS-13: providers upgrade patch versions by themselves", []func(*machines.PreflightWorkers){planeIs("version: v1.36.3", "version: v1.36.5")}, nil},
		"as the spec, which does not run": {"MS-15: what runs decides who can join", []func(*machines.PreflightWorkers){kubeadm, version("v1.35.4"), planeIs("version: v1.35.4", "version: v1.36.3")},
			[]string{"Version v1.35.4 of the MachineSet must have the minor version of the control plane that it joins with kubeadm: version v1.36.3, which FooPlane p runs while its spec requires v1.35.4 (preflight check KubeadmVersionSkew)"}},
		"as what runs, the spec is older": {"MS-14, MS-15: it can join", []func(*machines.PreflightWorkers){kubeadm, version("v1.36.3"), planeIs("version: v1.35.4", "version: v1.36.3")}, nil},
		"unreadable status":               {"nobody can tell what runs", []func(*machines.PreflightWorkers){planeIs("version: v1.36.3", "version: main")}, []string{`Version "main" that FooPlane p runs is not a semantic version`}},
		"kubeadm, same minor":             {"MS-15", []func(*machines.PreflightWorkers){kubeadm, version("v1.36.0")}, nil},
		"kubeadm, older minor": {"MS-15", []func(*machines.PreflightWorkers){kubeadm, version("v1.35.3")},
			[]string{"Version v1.35.3 of the MachineSet must have the minor version of the control plane that it joins with kubeadm: version v1.36.3 of FooPlane p (preflight check KubeadmVersionSkew)"}},
		"topology, other patch": {"MS-16", []func(*machines.PreflightWorkers){topology("v1.36.3", ""), version("v1.36.2")},
			[]string{"Version v1.36.2 of the MachineSet is not version v1.36.3 of FooPlane p: it will be replaced soon (preflight check ControlPlaneVersionSkew)"}},
		"no control plane object": {"MS-17", []func(*machines.PreflightWorkers){version("v1.37.0"), func(w *machines.PreflightWorkers) {
			w.Cluster.Spec.ControlPlaneRef, w.ControlPlane = clusterv1.ContractVersionedObjectReference{}, contract.ControlPlaneView{}
		}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := machines.PreflightWorkers{Cluster: &clusterv1.Cluster{}, Owner: "the MachineSet"}
			w.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "FooPlane", Name: "p"}
			for _, change := range append([]func(*machines.PreflightWorkers){version("v1.36.3"), stable("v1.36.3")}, tc.changes...) {
				change(&w)
			}
			var got []string
			for _, b := range w.Blockers(machines.WorkerChecks()) {
				got = append(got, b.Message)
				if invalid := !strings.Contains(b.Message, "preflight check") && !strings.Contains(b.Message, "does not exist"); b.Invalid != invalid {
					t.Errorf("a person has to correct something: %t, for %q", b.Invalid, b.Message)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := w.Blockers(nil); len(got) > 0 {
				t.Errorf("no checks are asked for: %v", got)
			}
		})
	}
}

// TestChecks: any owner brings checks over facts of its own.
func TestChecks(t *testing.T) { // MS-17
	type facts struct{ deleting, certificates bool }
	checks := machines.PreflightChecks[facts]{
		{Name: "Certificates", Blocker: func(f facts) string {
			if f.certificates {
				return ""
			}
			return "Secret c-ca does not exist"
		}},
		{Name: "NoDeletion", Blocker: func(f facts) string {
			if f.deleting {
				return "Machine m is being deleted"
			}
			return ""
		}},
	}
	want := []string{"Secret c-ca does not exist (preflight check Certificates)", "Machine m is being deleted (preflight check NoDeletion)"}
	if diff := cmp.Diff(want, checks.Blockers(facts{deleting: true})); diff != "" {
		t.Errorf("all that fail, in order (-want +got):\n%s", diff)
	}
	if got := checks.Filter(func(name string) bool { return name == "NoDeletion" }); !cmp.Equal(got.Names(), []string{"NoDeletion"}) || len(got.Blockers(facts{})) > 0 {
		t.Errorf("filtered: %v", got.Names())
	}
}
