package rootcause

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// completeMemory is a memory in which some objects are known to be missing.
type completeMemory struct {
	*Memory
	missing []string
}

// IsMissing implements [Graph].
func (m completeMemory) IsMissing(of Ref) bool {
	return slices.ContainsFunc(m.missing, func(object string) bool { return refTo(object) == of })
}

// deployment returns a MachineDeployment of the templates t, which wants three Machines and has some.
func deployment(machines int64, options ...option) *unstructured.Unstructured {
	return thing("MachineDeployment c-workers", append([]option{
		owner("Cluster c"), field(int64(3), "spec", "replicas"), field(machines, "status", "replicas"), field("c", "spec", "clusterName"),
		template("LocalMachineTemplate t", "infrastructureRef"), template("KubeadmConfigTemplate t", "bootstrap", "configRef"),
	}, options...)...)
}

func template(object string, path ...string) option {
	return refers(object, append([]string{"template", "spec"}, path...)...)
}

// templateFaults are templates that do not exist, with controllers that report it in different ways.
func templateFaults() map[string]injectedFault {
	const infrastructure, config = "LocalMachineTemplate t", "KubeadmConfigTemplate t"
	scaling := cond("ScalingUp", "True", "ScalingUp", "Scaling up from 0 to 3 replicas", 7)
	unavailable := bad("Available", "NotAvailable", "0 available replicas, at least 2 required", 7)
	edit := "correct spec.template.spec.infrastructureRef of MachineDeployment c-workers, which determines the reference\nslipway kubectl edit machinedeployment.cluster.x-k8s.io c-workers -n ns"
	return map[string]injectedFault{
		"infrastructure template, which no condition names": {
			reason:  "the reference alone is enough",
			objects: things(deployment(0, scaling, unavailable), thing(config)), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 7, remedy: "Create LocalMachineTemplate t, or " + edit,
		},
		"bootstrap template": {
			objects: things(deployment(0, scaling, unavailable), thing(infrastructure)), missing: []string{config},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > KubeadmConfigTemplate t", cause: "does not exist", since: 7, remedy: "correct spec.template.spec.bootstrap.configRef of MachineDeployment c-workers",
		},
		"template, of the Cluster": {
			objects: things(cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: 0 available replicas", 7)), deployment(0, unavailable)), missing: []string{infrastructure},
			of: "Cluster c", path: "Cluster c > MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 7, remedy: "Create LocalMachineTemplate t, or " + edit,
		},
		"template that a condition names": {
			reason:  "since is the time of that condition",
			objects: things(deployment(3, bad("MachinesReady", "NotReady", "x", 9), bad("Available", "NotAvailable", "2 of 3\n* LocalMachineTemplate t does not exist", 3))), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 3, remedy: edit,
		},
		"template that a plan names": {
			objects: things(deployment(3, bad("Available", "NotAvailable", "2 of 3", 9))), missing: []string{infrastructure},
			plans: map[string]Plan{"MachineDeployment c-workers": {Waits: []Wait{{Reason: "RolloutHeld", Message: "LocalMachineTemplate t does not exist", User: true, Since: now.Add(-2 * minute)}}}},
			of:    "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 2, remedy: edit,
		},
		"template of a MachineSet": {
			reason: "the reference is determined by the MachineDeployment",
			objects: things(thing("MachineSet c-w", owner("MachineDeployment c-workers"), field(int64(2), "spec", "replicas"), template(infrastructure, "infrastructureRef"),
				bad("MachinesCreated", "InfrastructureTemplateCloningFailed", "failed to clone", 4))), missing: []string{infrastructure},
			of: "MachineSet c-w", path: "MachineSet c-w > LocalMachineTemplate t", cause: "does not exist", since: 4, remedy: edit,
		},
		"template of a rollout": {
			objects: things(deployment(3, field(int64(1), "status", "upToDateReplicas"), cond("RollingOut", "True", "RollingOut", "Rolling out 2 not up-to-date replicas", 5))), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 5, remedy: edit,
		},
		"template of a topology": {
			objects: things(thing("MachineDeployment c-workers", owner("Cluster c"), template(infrastructure, "infrastructureRef"), unavailable, func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""})
			})), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 7, remedy: "correct spec.topology of Cluster c",
		},
		"template of a control plane": {
			objects: things(thing("KubeadmControlPlane c", owner("Cluster c"), refers(infrastructure, "machineTemplate", "spec", "infrastructureRef"), bad("Available", "NotAvailable", "x", 6))), missing: []string{infrastructure},
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c > LocalMachineTemplate t", cause: "does not exist", since: 6, remedy: "correct spec.machineTemplate.spec.infrastructureRef of KubeadmControlPlane c",
		},
		"template that is not needed": {
			reason: "all Machines exist, so that the problem of one is the cause",
			objects: things(deployment(3, bad("MachinesReady", "NotReady", "* Machine c-w1: x", 5)), thing("MachineSet c-w", owner("MachineDeployment c-workers")),
				worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 4))), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > Machine c-w1", cause: "stopped posting", since: 4, remedy: "Start the kubelet",
		},
		"template of a new deployment": {
			reason:  "the objects of a manifest are created one after the other",
			objects: things(deployment(0, bad("Available", "NotAvailable", "0 available replicas", 0))), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > LocalMachineTemplate t", cause: "does not exist", since: 0, remedy: "If it does not: create LocalMachineTemplate t", automatic: true,
		},
		"template of a paused deployment": {
			objects: things(deployment(0, annotated("cluster.x-k8s.io/paused", ""), cond("Paused", "True", "Paused", "", 3))), missing: []string{infrastructure},
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers", cause: "paused by annotation", since: 3, remedy: "Resume the MachineDeployment",
		},
	}
}

// A template that may only be unreadable is not reported as missing.
func TestReaderOfMissingTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		api  api
		want string
	}{
		"missing":    {api{}, "MachineDeployment c-workers > LocalMachineTemplate t"},
		"exists":     {api{objects: things(thing("LocalMachineTemplate t"))}, "MachineDeployment c-workers > KubeadmConfigTemplate t"},
		"forbidden":  {api{forbidden: "LocalMachineTemplate"}, "MachineDeployment c-workers > KubeadmConfigTemplate t"},
		"an error":   {api{failing: map[string]error{"LocalMachineTemplate": errors.New("x"), "KubeadmConfigTemplate": errors.New("x")}}, "MachineDeployment c-workers"},
		"all exist":  {api{objects: things(thing("LocalMachineTemplate t"), thing("KubeadmConfigTemplate t"))}, "MachineDeployment c-workers"},
		"one listed": {api{objects: things(thing("LocalMachineTemplate other"))}, "MachineDeployment c-workers > LocalMachineTemplate t"},
	} {
		a := tc.api
		a.objects = append(a.objects, deployment(0, bad("Available", "NotAvailable", "x", 3)))
		r := NewReader(t.Context(), ReaderOptions{Client: &a, Mapper: mapper(), Namespace: "ns"})
		if name == "one listed" {
			r.list(refTo("LocalMachineTemplate other").GroupKind())
		}
		if got := path(checkExplained(t, r, "MachineDeployment c-workers")); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
