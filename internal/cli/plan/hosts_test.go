package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/plan"
)

// sshCluster is a cluster with workers on SSHHosts with a label.
func sshCluster(replicas int, version string) string {
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: team-a}
spec:
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: SSHCluster, name: demo}
  controlPlaneRef: {apiGroup: controlplane.slipway.dev, kind: HostedControlPlane, name: demo}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: SSHCluster
metadata: {name: demo, namespace: team-a}
spec: {}
---
apiVersion: controlplane.slipway.dev/v1alpha1
kind: HostedControlPlane
metadata: {name: demo, namespace: team-a}
spec: {version: v1.36.3}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: SSHMachineTemplate
metadata: {name: demo, namespace: team-a}
spec: {template: {spec: {hostSelector: {matchLabels: {size: large}}}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: demo, namespace: team-a}
spec: {template: {spec: {verbosity: 1}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, namespace: team-a}
spec:
  clusterName: demo
  replicas: %d
  template:
    spec:
      clusterName: demo
      version: %s
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: demo}}
      infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: SSHMachineTemplate, name: demo}
`, replicas, version)
}

// kubeadmCluster is a cluster with control plane Machines on SSHHosts, which a plan does not simulate one by one.
func kubeadmCluster(replicas int, version string) string {
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: team-a}
spec:
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: SSHCluster, name: demo}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: demo}
  controlPlaneEndpoint: {host: 192.0.2.100, port: 6443}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: SSHCluster
metadata: {name: demo, namespace: team-a}
spec: {}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: SSHMachineTemplate
metadata: {name: demo, namespace: team-a}
spec: {template: {spec: {hostSelector: {matchLabels: {size: large}}}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: demo, namespace: team-a}
spec:
  replicas: %d
  version: %s
  machineTemplate:
    spec: {infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: SSHMachineTemplate, name: demo}}
  kubeadmConfigSpec: {verbosity: 1}
`, replicas, version)
}

// inventory has SSHHosts with a label, named a, b, c …, and a Namespace that they are offered to. They are given to the simulation
// without a status, so that it checks them.
func inventory(n int) string {
	out := "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a, labels: {team: a}}\n"
	for i := range n {
		out += fmt.Sprintf(`---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: SSHHost
metadata: {name: %c, namespace: hosts, labels: {size: large}}
spec: {address: 192.0.2.%d, credentialsRef: {name: key}, hostKeys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGi3fUG25faB2CKtwD8tykBAQiR9S8youC4Wv3m3MB+1], offeredTo: {matchLabels: {team: a}}}
`, 'a'+i, i+1)
	}
	return out
}

func objects(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	all, err := plan.ReadFiles([]string{"-"}, strings.NewReader(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// planned returns the plan of a change of a management cluster, and the text about it.
func planned(t *testing.T, s plan.Snapshot, c plan.Change) (*plan.Plan, plan.Snapshot, string) {
	t.Helper()
	o, err := simulationOptions(at)
	if err != nil {
		t.Fatal(err)
	}
	if s.Kinds == nil {
		s.Kinds = emptyFolder(t).Kinds
	}
	p, after, err := plan.Run(t.Context(), o, s, c)
	if err != nil || len(p.Refused) > 0 || !p.Settled {
		t.Fatalf("%v %+v", err, p)
	}
	var out bytes.Buffer
	if err := render(&out, p, false); err != nil {
		t.Fatal(err)
	}
	return p, after, out.String()
}

// users returns "host: Machine or owner" for the hosts that are taken, and "host: -" for those that are released.
func users(p *plan.Plan) (out []string) {
	for _, h := range p.Hosts {
		switch {
		case h.After == nil:
			out = append(out, h.Name+": -")
		case h.After.Generated:
			out = append(out, h.Name+": "+h.After.Owner)
		default:
			out = append(out, h.Name+": "+h.After.Machine)
		}
	}
	return out
}

// A plan says which hosts are taken, and that there are too few, without a connection to any of them.
func TestPlanOfHosts(t *testing.T) {
	workers := "MachineDeployment/md"
	spoil := func(s plan.Snapshot) {
		for _, u := range s.Objects {
			if u.GetKind() == "SSHHost" && u.GetName() == "e" {
				_ = unstructured.SetNestedField(u.Object, "Quarantined", "status", "state")
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		hosts  int
		before string
		after  func(plan.Snapshot)
		change string
		delete bool
		users  []string
		// missing is part of the message about missing hosts, and count the number of the machines that lack one.
		missing string
		count   int
		// anyUsers is true if the machines of a rollout have the hosts in any order at the end.
		anyUsers bool
	}{
		"create":                   {"the first free hosts are taken", 4, "", nil, sshCluster(2, "v1.36.3"), false, []string{"a: " + workers, "b: " + workers}, "", 0, false},
		"create, too few":          {"each host is taken once", 2, "", nil, sshCluster(5, "v1.36.3"), false, []string{"a: " + workers, "b: " + workers}, `hostSelector "size=large"): of the 2 that are offered to namespace team-a and match, 2 in use`, 3, false},
		"create, none":             {"nothing is offered", 0, "", nil, sshCluster(1, "v1.36.3"), false, nil, "No SSHHost is offered to namespace team-a", 1, false},
		"scale up":                 {"a quarantined host is not taken", 5, sshCluster(2, "v1.36.3"), spoil, sshCluster(5, "v1.36.3"), false, []string{"c: " + workers, "d: " + workers}, "4 in use, 1 quarantined (SSHHost hosts/e)", 1, false},
		"scale down":               {"the hosts are free again", 3, sshCluster(2, "v1.36.3"), nil, sshCluster(0, "v1.36.3"), false, []string{"a: -", "b: -"}, "", 0, false},
		"rollout with a spare":     {"one spare host is enough", 3, sshCluster(2, "v1.36.3"), nil, sshCluster(2, "v1.36.2"), false, nil, "", 0, true},
		"rollout without a spare":  {"no Machine can be replaced", 2, sshCluster(2, "v1.36.3"), nil, sshCluster(2, "v1.36.2"), false, nil, "2 in use", 1, false},
		"delete":                   {"the hosts are free again", 2, sshCluster(2, "v1.36.3"), nil, sshCluster(2, "v1.36.3"), true, []string{"a: -", "b: -"}, "", 0, false},
		"control plane":            {"its Machines take hosts, too", 4, "", nil, kubeadmCluster(3, "v1.36.3"), false, []string{"a: KubeadmControlPlane/demo", "b: KubeadmControlPlane/demo", "c: KubeadmControlPlane/demo"}, "", 0, false},
		"control plane, too few":   {"it waits for the third", 2, "", nil, kubeadmCluster(3, "v1.36.3"), false, []string{"a: KubeadmControlPlane/demo", "b: KubeadmControlPlane/demo"}, "2 in use", 1, false},
		"control plane, no spare":  {"no Machine can be replaced", 3, kubeadmCluster(3, "v1.36.2"), nil, kubeadmCluster(3, "v1.36.3"), false, nil, "3 in use", 1, false},
		"control plane with spare": {"one spare host is enough", 4, kubeadmCluster(3, "v1.36.2"), nil, kubeadmCluster(3, "v1.36.3"), false, nil, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, s, _ := planned(t, plan.Snapshot{}, plan.Change{Apply: objects(t, inventory(tc.hosts)+"---\n"+tc.before)})
			if tc.after != nil {
				tc.after(s)
			}
			change := plan.Change{Apply: objects(t, tc.change)}
			if tc.delete {
				change = plan.Change{Delete: objects(t, tc.change)}
			}
			p, after, text := planned(t, s, change)
			if got := users(p); !tc.anyUsers && !slices.Equal(got, tc.users) {
				t.Errorf("%s: %v, want %v\n%s", tc.reason, got, tc.users, text)
			}
			switch {
			case tc.missing == "" && len(p.MissingHosts) > 0, tc.missing != "" && (len(p.MissingHosts) != 1 || p.MissingHosts[0].Count != tc.count || !strings.Contains(p.MissingHosts[0].Message, tc.missing)):
				t.Errorf("%s: %+v\n%s", tc.reason, p.MissingHosts, text)
			case tc.missing != "" && !strings.Contains(text, tc.missing):
				t.Errorf("%s: the text lacks it:\n%s", tc.reason, text)
			}
			if strings.Contains(text, "SSHHost "+"hosts") && strings.Contains(text, "~ SSHHost") {
				t.Errorf("a claim is no change of the host by the user:\n%s", text)
			}
			machineOf := map[string]string{} // never two machines on one host, nor one on two
			for _, u := range after.Objects {
				machine, _, _ := unstructured.NestedString(u.Object, "status", "claim", "name")
				if u.GetKind() != "SSHHost" || machine == "" {
					continue
				}
				if other := machineOf[machine]; other != "" {
					t.Errorf("hosts %s and %s have the same machine", other, u.GetName())
				}
				machineOf[machine] = u.GetName()
			}
		})
	}
}

// Without the right to read the hosts, a plan says that it assumes enough of them, if it needs any.
func TestPlanWithoutHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		before, change string
		want           bool
	}{
		"workers":                {"", sshCluster(2, "v1.36.3"), true},
		"control plane":          {"", kubeadmCluster(3, "v1.36.3"), true},
		"control plane, grows":   {kubeadmCluster(1, "v1.36.3"), kubeadmCluster(3, "v1.36.3"), true},
		"control plane, spare":   {kubeadmCluster(3, "v1.36.2"), kubeadmCluster(3, "v1.36.3"), true},
		"control plane, same":    {kubeadmCluster(3, "v1.36.3"), kubeadmCluster(3, "v1.36.3"), false},
		"control plane, shrinks": {kubeadmCluster(3, "v1.36.3"), kubeadmCluster(1, "v1.36.3"), false},
	} {
		_, s, _ := planned(t, plan.Snapshot{}, plan.Change{Apply: objects(t, inventory(4)+"---\n"+tc.before)})
		s.Objects = slices.DeleteFunc(s.Objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "SSHHost" })
		s.WithoutHosts = true
		p, _, text := planned(t, s, plan.Change{Apply: objects(t, tc.change)})
		if p.HostsUnknown != tc.want || len(p.MissingHosts) > 0 || strings.Contains(text, "assumes that there are enough") != tc.want {
			t.Errorf("%s: %+v\n%s", name, p, text)
		}
	}
}
