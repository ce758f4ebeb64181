package rootcause

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// injectedFault is an injected fault: the objects as their controllers leave them, and the explanation that users need.
type injectedFault struct {
	reason  string
	objects []*unstructured.Unstructured
	plans   map[string]Plan // by object
	// missing are objects that are known not to exist.
	missing []string
	of      string
	// path is the expected chain.
	path string
	// cause is part of the message of the root.
	cause string
	// since is the age of the cause in minutes.
	since int
	// remedy is part of the text and command of the remedy.
	remedy    string
	automatic bool
	// isWithoutCommand is true if no command ends the problem.
	isWithoutCommand bool
}

// TestFaults explains faults that were injected into real clusters.
func TestFaults(t *testing.T) {
	all := map[string]injectedFault{}
	for _, table := range []map[string]injectedFault{managementFaults(), machineFaults(), planeFaults(), topologyFaults(), deletionFaults(), faultsWithoutPlans(), templateFaults(), sshFaults()} {
		for name, f := range table {
			if _, twice := all[name]; twice {
				t.Errorf("%s exists twice", name)
			}
			all[name] = f
		}
	}
	if len(all) < 55 {
		t.Errorf("only %d faults", len(all))
	}
	for name, f := range all {
		t.Run(name, func(t *testing.T) { f.check(t) })
	}
}

func (f injectedFault) check(t *testing.T) {
	g := completeMemory{memory(f.objects...), f.missing}
	for object, plan := range f.plans {
		g.SetPlans(refTo(object), []Plan{plan})
	}
	c := checkExplained(t, g, f.of)
	root := c.Root()
	remedy := c.Remedy.Text + "\n" + c.Remedy.Command
	if got := path(c); got != f.path {
		t.Errorf("%s: the chain is %q, want %q", f.reason, got, f.path)
	}
	if !strings.Contains(root.Message, f.cause) {
		t.Errorf("%s: the cause is %q, want %q", f.reason, root.Message, f.cause)
	}
	if got := int(now.Sub(root.Since).Minutes()); got != f.since {
		t.Errorf("%s: since %d minutes (%s), want %d", f.reason, got, root.Since, f.since)
	}
	if !strings.Contains(remedy, f.remedy) || strings.Contains(remedy, "{") && !strings.Contains(remedy, "'{") || strings.Contains(remedy, "NAME") {
		t.Errorf("%s: the remedy is %q, want %q", f.reason, remedy, f.remedy)
	}
	if c.Remedy.Automatic != f.automatic || c.NeedsUser() == f.automatic {
		t.Errorf("%s: automatic is %t, want %t: %s", f.reason, c.Remedy.Automatic, f.automatic, remedy)
	}
	if f.isWithoutCommand != (c.Remedy.Command == "") && !c.Remedy.Automatic {
		t.Errorf("%s: the command is %q", f.reason, c.Remedy.Command)
	}
	if c.Plans != (len(f.plans) > 0) {
		t.Errorf("%s: plans used: %t", f.reason, c.Plans)
	}
	if !strings.HasPrefix(Summary(c), root.Object.String()+": ") || strings.Contains(Summary(c), "\n") {
		t.Errorf("%s: the summary is %q", f.reason, Summary(c))
	}
}

func things(objects ...*unstructured.Unstructured) []*unstructured.Unstructured { return objects }

// available is a Cluster that is initialized, with an infrastructure and a control plane.
func cluster(options ...option) *unstructured.Unstructured {
	return thing("Cluster c", append([]option{
		infrastructure("LocalCluster c"), plane("HostedControlPlane c"),
		field(true, "status", "initialization", "controlPlaneInitialized"),
	}, options...)...)
}

// worker is a Machine of a MachineSet with its provider objects.
func worker(options ...option) *unstructured.Unstructured {
	return thing("Machine c-w1", append([]option{owner("MachineSet c-w"), field("c-w1", "status", "nodeRef", "name"), infrastructure("LocalMachine c-w1"), bootstrap("KubeadmConfig c-w1"), field("c", "spec", "clusterName")}, options...)...)
}

func localMachine(options ...option) *unstructured.Unstructured {
	return thing("LocalMachine c-w1", append([]option{owner("Machine c-w1")}, options...)...)
}

func config(options ...option) *unstructured.Unstructured {
	return thing("KubeadmConfig c-w1", append([]option{owner("Machine c-w1"), field(true, "status", "initialization", "dataSecretCreated")}, options...)...)
}

// workers are the owners of a Machine with a problem.
func workers(message string, minutes int) []*unstructured.Unstructured {
	return things(
		thing("MachineDeployment c-workers", owner("Cluster c"), bad("Available", "NotAvailable", "1 available replicas, at least 2 required", minutes), bad("MachinesReady", "NotReady", message, minutes)),
		thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("MachinesReady", "NotReady", message, minutes)),
	)
}

func managementFaults() map[string]injectedFault {
	return map[string]injectedFault{
		"M4 client certificate of the kubeconfig expired": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server rejects the credentials of the kubeconfig Secret; the client certificate in Secret m4-kubeconfig expired on 2024-02-01", 9))),
			of:      "Cluster c", path: "Cluster c", cause: "expired on 2024-02-01", since: 9, remedy: "m4-kubeconfig",
		},
		"M6 quota": {
			objects: things(thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("Available", "NotAvailable", "1 of 3", 3),
				cond("ScalingUp", "True", "ScalingUp", "Scaling up from 1 to 3 replicas\n* Machines could not be created: forbidden: exceeded quota: q", 3))),
			plans: map[string]Plan{"MachineSet c-w": {Errors: []string{`machines.cluster.x-k8s.io is forbidden: exceeded quota: q, requested: count/machines=1`}}},
			of:    "MachineSet c-w", path: "MachineSet c-w", cause: "exceeded quota: q", since: 3, remedy: "Raise the ResourceQuota",
		},
		"M6 quota, and another Machine with a problem": {
			objects: things(thing("MachineDeployment c-workers", owner("Cluster c"), bad("MachinesReady", "NotReady", "* Machine c-w1: x", 9), cond("ScalingUp", "True", "ScalingUp", "Scaling up from 3 to 5 replicas", 3)),
				thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("Reconciled", "Forbidden", "Creating objects of kind Machine: exceeded quota: q", 3)), worker(bad("NodeHealthy", "NodeNotHealthy", "x", 1))),
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > MachineSet c-w", cause: "exceeded quota: q", since: 3, remedy: "Raise the ResourceQuota",
		},
		"webhook without a server": {
			objects: things(thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("MachinesCreated", "FailedCreate", `Creating objects of kind Machine: failed calling webhook "machines.policy.corp.example": connection refused; retrying`, 1))),
			of:      "MachineSet c-w", path: "MachineSet c-w", cause: "machines.policy.corp.example", since: 1,
			remedy: "Repair the server of webhook machines.policy.corp.example, or delete its ValidatingWebhookConfiguration or MutatingWebhookConfiguration\nslipway kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations",
		},
		"policy denies Machines": {
			objects: things(thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("MachinesCreated", "Invalid", `Creating objects of kind Machine: machines.cluster.x-k8s.io is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied request: label team is missing`, 2))),
			of:      "MachineSet c-w", path: "MachineSet c-w", cause: "team is missing", since: 2,
			remedy: "Correct MachineDeployment c-workers, which determines the object, as the policy in the message requires, or change the policy\nslipway kubectl edit machinedeployment.cluster.x-k8s.io c-workers -n ns",
		},
		"M7 rights of a provider deleted": {
			reason: "the provider cannot write its condition: the plan has the error",
			objects: things(
				cluster(bad("InfrastructureReady", "NotReady", "LocalCluster status.initialization.provisioned is false", 8), bad("Available", "NotAvailable", "* InfrastructureReady: …", 8)),
				thing("LocalCluster c", owner("Cluster c"), noStatus(), field([]any{"localcluster.infrastructure.slipway.dev"}, "metadata", "finalizers"))),
			plans: map[string]Plan{"LocalCluster c": {Errors: []string{"User slipway:manager:infrastructure-local cannot patch resource localclusters/status in API group infrastructure.slipway.dev"}, ErrorsSince: now.Add(-8 * minute)}},
			of:    "Cluster c", path: "Cluster c > LocalCluster c", cause: "cannot patch resource localclusters/status", since: 8, remedy: "ClusterRoleBinding",
		},
		"M8 CRD deleted": {
			objects: things(thing("Cluster c", infrastructure("FooCluster c"), bad("InfrastructureReady", "KindNotInstalled", "kind FooCluster of group infrastructure.foo.dev is not installed; install the provider it belongs to", 4))),
			of:      "Cluster c", path: "Cluster c", cause: "FooCluster", since: 4, remedy: "Install the provider",
		},
		"M10 no aggregated role": {
			objects: things(thing("Cluster c", infrastructure("FooCluster c"), bad("InfrastructureReady", "Forbidden", "this manager has no right to list and watch kind BazCluster", 4))),
			of:      "Cluster c", path: "Cluster c", cause: "no right", since: 4, remedy: "aggregate-to-manager=true",
		},
		"user acts before other problems": {
			reason: "a wait of a plan for a user is the cause, whatever else is wrong",
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection not established yet", 9)), thing("MachineDeployment c-workers", owner("Cluster c"), bad("MachinesReady", "NotReady", "* Machine c-w1: x", 9)),
				worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 9))),
			plans: map[string]Plan{"MachineDeployment c-workers": {Waits: []Wait{{Reason: "RolloutHeld", Message: "LocalMachineTemplate fleet-workers does not exist", User: true, Since: now.Add(-2 * minute)}}}},
			of:    "MachineDeployment c-workers", path: "MachineDeployment c-workers", cause: "LocalMachineTemplate fleet-workers does not exist", since: 2, remedy: "Create the template",
		},
		"M9 CRD without a contract label": {
			objects: things(thing("Cluster c", infrastructure("FooCluster c"), bad("InfrastructureReady", "NoContract", "CRD barclusters.infrastructure.foo.dev has no label cluster.x-k8s.io/v1beta2 or v1beta1: its provider must set one", 4))),
			of:      "Cluster c", path: "Cluster c", cause: "has no label", since: 4, remedy: "Set the label of the CustomResourceDefinition",
		},
		"M11 authority expired": {
			objects: things(cluster(bad("ControlPlaneAvailable", "NotAvailable", "HostedControlPlane c: see its conditions", 5)),
				thing("HostedControlPlane c", owner("Cluster c"), bad("CertificatesAvailable", "CertificatesInvalid", "The certificate of Secret c-ca expired on 2024-02-01", 6))),
			of: "Cluster c", path: "Cluster c > HostedControlPlane c", cause: "expired on 2024-02-01", since: 6, remedy: "slipway kubectl get secret c-ca -n ns",
		},
		"paused Cluster": {
			objects: things(cluster(field(true, "spec", "paused"), cond("Paused", "True", "Paused", "Cluster spec.paused is true", 70)), worker(cond("Paused", "True", "Paused", "", 69))),
			of:      "Machine c-w1", path: "Machine c-w1 > Cluster c", cause: "spec.paused", since: 70, remedy: `kubectl patch cluster c -n ns --type merge -p '{"spec":{"paused":false}}'`,
		},
		"paused Machine": {
			objects: things(cluster(), worker(annotated("cluster.x-k8s.io/paused", ""), cond("Paused", "True", "Paused", "", 7), bad("NodeHealthy", "NodeNotHealthy", "x", 9))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "annotation cluster.x-k8s.io/paused", since: 7, remedy: "slipway kubectl annotate machine.cluster.x-k8s.io c-w1 -n ns cluster.x-k8s.io/paused-",
		},
	}
}

func machineFaults() map[string]injectedFault {
	node := func(message string, minutes int) option {
		return bad("NodeHealthy", "NodeNotHealthy", message, minutes)
	}
	ofMachine := func(text string, minutes int, objects ...*unstructured.Unstructured) []*unstructured.Unstructured {
		return slices.Concat(things(cluster(bad("WorkersAvailable", "NotAvailable", "* MachineDeployment c-workers: 1 available replicas", minutes))), workers(text, minutes), objects)
	}
	return map[string]injectedFault{
		"I1 Docker is down": {
			objects: ofMachine("* Machine c-w1: x", 5, worker(bad("InfrastructureReady", "NotReady", "x", 6)), config(),
				localMachine(bad("MachineProvisioned", "DockerUnreachable", "Docker does not respond at unix:///x: install it or start it", 6))),
			of: "Cluster c", path: "Cluster c > MachineDeployment c-workers > MachineSet c-w > Machine c-w1 > LocalMachine c-w1", cause: "Docker does not respond", since: 6, remedy: "systemctl start docker",
		},
		"machine in a container, in a simulated LocalCluster": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 6)), config(), localMachine(labelled(map[string]string{"cluster.x-k8s.io/deployment-name": "c-workers"}),
				bad("MachineProvisioned", "SimulatedNetwork", "LocalMachine c-w1 needs a container network, but LocalCluster c is simulated: create the machine from a template with spec.template.spec.backend.simulated", 6))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "is simulated", since: 6, remedy: "refer to it in MachineDeployment c-workers\nslipway kubectl edit machinedeployment.cluster.x-k8s.io c-workers -n ns",
		},
		"fault that a template simulates": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 6)), config(),
				localMachine(func(u *unstructured.Unstructured) {
					u.SetAnnotations(map[string]string{"cluster.x-k8s.io/cloned-from-name": "t", "cluster.x-k8s.io/cloned-from-groupkind": "LocalMachineTemplate.infrastructure.slipway.dev"})
				}, bad("MachineProvisioned", "NeverBoots", "The annotation simulated.infrastructure.slipway.dev/never-boots prevents the machine from starting", 6)),
				thing("LocalMachineTemplate t", noStatus(), field(map[string]any{"simulated.infrastructure.slipway.dev/never-boots": "true"}, "spec", "template", "metadata", "annotations"))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "never-boots", since: 6,
			remedy: "it simulates a fault. New Machines get it from spec.template.metadata.annotations of LocalMachineTemplate t: remove it there first\nslipway kubectl annotate localmachine.",
		},
		"fault that a MachineDeployment simulates": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 6)), config(),
				localMachine(labelled(map[string]string{"cluster.x-k8s.io/deployment-name": "c-workers"}),
					bad("MachineProvisioned", "NeverBoots", "The annotation simulated.infrastructure.slipway.dev/never-boots prevents the machine from starting", 6)),
				thing("MachineDeployment c-workers", field(map[string]any{"simulated.infrastructure.slipway.dev/never-boots": ""}, "spec", "template", "metadata", "annotations"))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "never-boots", since: 6,
			remedy: "New Machines get it from spec.template.metadata.annotations of MachineDeployment c-workers: remove it there first",
		},
		"I2 image missing": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 6)), localMachine(bad("MachineProvisioned", "ImageAbsent", "The node image slipway.dev/node:v9.9.9 is not on this host", 6))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "v9.9.9", since: 6, remedy: "slipway image list",
		},
		"I3 subnet taken": {
			objects: things(cluster(bad("InfrastructureReady", "NotReady", "x", 2)), thing("LocalCluster c", owner("Cluster c"), bad("NetworkReady", "SubnetTaken", "Range 172.27.0.0/16 is not free on this host", 2))),
			of:      "Cluster c", path: "Cluster c > LocalCluster c", cause: "172.27.0.0/16", since: 2, remedy: "other address ranges",
		},
		"I4 container removed": {
			objects: things(cluster(), worker(bad("InfrastructureReady", "NotReady", "x", 1), cond("NodeReady", "Unknown", "NodeReadyUnknown", "", 1)), config(),
				localMachine(bad("Ready", "NotReady", "* MachineProvisioned: x", 1), bad("MachineProvisioned", "MachineRemoved", "The machine c-w1 was removed from the host, by hand or by another program", 1))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "was removed from the host", since: 1, remedy: "kubectl delete machine c-w1 -n ns",
		},
		"I4 container removed, with a health check": {
			objects: things(cluster(), healthCheck(), worker(bad("InfrastructureReady", "NotReady", "x", 1)), config(),
				localMachine(bad("MachineProvisioned", "MachineRemoved", "The machine c-w1 was removed from the host, by hand or by another program", 1))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "was removed from the host", since: 1, remedy: "MachineHealthCheck c-workers replaces it in 9m", automatic: true,
		},
		"I5 container stopped": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 1)), localMachine(bad("MachineProvisioned", "MachineStopped", "The machine c-w1 does not run (it ended with exit code 137)", 1))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "exit code 137", since: 1, remedy: "docker start",
		},
		"I6 disk pressure": {
			objects: ofMachine("* Machine c-w1: Node.DiskPressure: kubelet has disk pressure", 3, worker(node("* Node.DiskPressure: kubelet has disk pressure", 3)), config(), localMachine()),
			of:      "MachineDeployment c-workers", path: "MachineDeployment c-workers > MachineSet c-w > Machine c-w1", cause: "disk pressure", since: 3, remedy: "Free space on the disk of Node c-w1",
		},
		"W3 kubelet stopped": {
			objects: ofMachine("* Machine c-w1: Node.Ready: x", 4, worker(node("* Node.Ready: Kubelet stopped posting node status.", 4)), config(), localMachine()),
			of:      "MachineSet c-w", path: "MachineSet c-w > Machine c-w1", cause: "stopped posting", since: 4, remedy: "Start the kubelet on Node c-w1",
		},
		"W3 kubelet stopped, of which the infrastructure knows": {
			objects: ofMachine("* Machine c-w1: Node.Ready: x", 4, worker(node("* Node.Ready: Kubelet stopped posting node status.", 4)), config(),
				localMachine(bad("KubeletRunning", "KubeletStopped", "The kubelet in machine c-w1 is stopped: start it with `docker exec c-w1 systemctl start kubelet`", 3))),
			of: "MachineSet c-w", path: "MachineSet c-w > Machine c-w1 > LocalMachine c-w1", cause: "is stopped", since: 3, remedy: "Start the kubelet with the command",
		},
		"W3 kubelet stopped, with a health check": {
			objects: things(cluster(), healthCheck(), worker(node("* Node.Ready: Kubelet stopped posting node status.", 1), cond("NodeReady", "Unknown", "NodeReadyUnknown", "x", 1))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "stopped posting", since: 1, remedy: "MachineHealthCheck c-workers replaces it in 4m", automatic: true,
		},
		"H1 health check is not allowed": {
			objects: things(cluster(), healthCheck(bad("RemediationAllowed", "TooManyUnhealthy", "3 of 3 Machines are not started or not healthy, which unhealthyLessThanOrEqualTo 1 does not allow", 2)),
				worker(node("* Node.Ready: Kubelet stopped posting node status.", 6), cond("NodeReady", "Unknown", "NodeReadyUnknown", "x", 6))),
			of: "MachineHealthCheck c-workers", path: "MachineHealthCheck c-workers", cause: "3 of 3", since: 2, remedy: "unhealthyLessThanOrEqualTo",
		},
		"B1 command fails": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), config(), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "The bootstrap data failed; its last lines:\nproxy configuration missing\nslipway: runcmd ended with code 7", 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "proxy configuration missing", since: 2, remedy: "Correct the command",
		},
		"B2 wrong hash": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", `cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:1" are pinned`, 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "are pinned", since: 2, remedy: "caCertHashes",
		},
		"B3 cloud-config is not YAML": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), localMachine(bad("BootstrapExecSucceeded", "InvalidCloudConfig", "the cloud-config is not valid YAML: line 3", 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "not valid YAML", since: 2, remedy: "Correct the cloud-config",
		},
		"B4 part of the cloud-config is not applied": {
			objects: things(worker(cond("Ready", "True", "Ready", "", 5)), localMachine(cond("BootstrapExecSucceeded", "True", "BootstrapSucceeded", "The machine does not apply snap of the bootstrap data, because a node in a container has no disks", 5))),
			of:      "Machine c-w1", path: "LocalMachine c-w1", cause: "does not apply snap", since: 5, remedy: "use files and runcmd", automatic: true,
		},
		"B6 sentinel is not written": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), config(), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "The bootstrap data ended without /run/cluster-api/bootstrap-success.complete in machine c-w1: no command failed; let the last one create that file", 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "no command failed", since: 2, remedy: "Let the last command",
		},
		"B6 sentinel is not written, with its plan": {
			reason:  "the wait of the plan has the reason of the condition and less details",
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), config(), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "The bootstrap data ended without /run/cluster-api/bootstrap-success.complete in machine c-w1: no command failed; let the last one create that file", 2))),
			plans:   map[string]Plan{"LocalMachine c-w1": {Waits: []Wait{{Reason: "BootstrapFailed", Message: "The bootstrap data failed in machine c-w1", User: true, On: []Ref{refTo("LocalMachine c-w1")}}}}},
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "no command failed", since: 2, remedy: "Let the last command",
		},
		"B4 part of the cloud-config is not applied, and no Node appears": {
			reason: "the infrastructure is as it should be, and its warning explains why nothing joins",
			objects: things(worker(cond("NodeHealthy", "Unknown", "NodeDoesNotExist", "Waiting for a Node with spec.providerID slipway:///c-w1 to exist", 5)), config(),
				localMachine(cond("BootstrapExecSucceeded", "True", "BootstrapSucceeded", "The machine does not apply snap of the bootstrap data, because a node in a container has no disks", 5))),
			of: "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "does not apply snap", since: 5, remedy: "use files and runcmd", automatic: true,
		},
		"B5 file from a missing Secret": {
			objects: things(worker(bad("BootstrapConfigReady", "NotReady", "x", 2), bad("InfrastructureReady", "WaitingForInfrastructure", "Waiting", 2)), localMachine(bad("MachineProvisioned", "WaitingForBootstrapData", "Waiting for Machine c-w1 to have bootstrap data", 2)),
				config(bad("DataSecretAvailable", "SecretMissing", "File /etc/registry.json comes from Secret registry-credentials, which does not exist; create it", 3))),
			plans: map[string]Plan{"KubeadmConfig c-w1": {Waits: []Wait{{Reason: "SecretMissing", Message: "File /etc/registry.json comes from Secret registry-credentials, which does not exist; create it", User: true, On: []Ref{{Kind: "Secret", Name: "registry-credentials"}}}}}},
			of:    "Machine c-w1", path: "Machine c-w1 > KubeadmConfig c-w1", cause: "registry-credentials", since: 3, remedy: "Create the object",
		},
		"bootstrap token in another form": {
			reason:  "only the lock of the control plane is deleted",
			objects: things(config(bad("DataSecretAvailable", "DataSecretGenerationFailed", "spec.joinConfiguration.discovery.bootstrapToken.token must have the form abcdef.0123456789abcdef", 3))),
			of:      "KubeadmConfig c-w1", path: "KubeadmConfig c-w1", cause: "must have the form", since: 3, remedy: "Correct what the message names",
		},
		"lock without a Machine": {
			objects: things(config(bad("DataSecretAvailable", "DataSecretGenerationFailed", "ConfigMap c-lock does not name the Machine that initializes the control plane; delete it", 3))),
			of:      "KubeadmConfig c-w1", path: "KubeadmConfig c-w1", cause: "c-lock", since: 3, remedy: "kubectl delete configmap c-lock -n ns",
		},
		"B7 bootstrap takes too long": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "its last lines: slipway: ended after 60 seconds", 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "60 seconds", since: 2, remedy: "bootstrapTimeoutSeconds",
		},
		"B7 bootstrap does not end": {
			reason:  "the remedy is for the LocalMachineTemplate",
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), localMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "The bootstrap data did not end within 300 seconds in machine m: increase spec.backend.container.bootstrapTimeoutSeconds if it needs longer", 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "300 seconds", since: 2, remedy: "LocalMachineTemplate",
		},
		"B8 unknown flag of the kubelet": {
			objects: things(worker(bad("InfrastructureReady", "NotReady", "x", 2)), localMachine(bad("BootstrapExecSucceeded", "KubeletFails", `The kubelet ends with "failed to parse kubelet flag: unknown flag: --eviction-hardd"`, 2))),
			of:      "Machine c-w1", path: "Machine c-w1 > LocalMachine c-w1", cause: "--eviction-hardd", since: 2, remedy: "kubeletExtraArgs",
		},
		"W4 version skew": {
			objects: things(thing("MachineSet c-w", owner("MachineDeployment c-workers"), bad("Available", "NotAvailable", "0 of 1", 4), cond("ScalingUp", "True", "ScalingUp", "x", 4))),
			plans:   map[string]Plan{"MachineSet c-w": {Waits: []Wait{{Reason: "PreflightCheckFailed", Message: "Version v1.37.0 of the MachineSet is newer than version v1.36.3 of HostedControlPlane c (preflight check KubernetesVersionSkew)"}}}},
			of:      "MachineSet c-w", path: "MachineSet c-w", cause: "v1.37.0", since: 4,
			remedy: "Upgrade the control plane first, or set spec.template.spec.version of MachineDeployment c-workers to v1.36.3\nslipway kubectl patch machinedeployment.cluster.x-k8s.io c-workers -n ns --type merge -p '{\"spec\":{\"template\":{\"spec\":{\"version\":\"v1.36.3\"}}}}'",
		},
		"foreign Machine gave up": {
			reason:  "the failure fields of the v1beta1 contract, with another implementation of Cluster API",
			objects: things(thing("Machine m", infrastructure("FooMachine m"), bad("InfrastructureReady", "NotReady", "x", 5)), thing("FooMachine m", owner("Machine m"), field("CreateError", "status", "failureReason"), field("no capacity left in zone a", "status", "failureMessage"), bad("Ready", "InstanceFailed", "", 5))),
			of:      "Machine m", path: "Machine m > FooMachine m", cause: "no capacity left in zone a", since: 5, remedy: "gave up",
		},
		"foreign Machine is being created": {
			objects: things(thing("Machine m", infrastructure("FooMachine m"), bad("InfrastructureReady", "WaitingForInfrastructure", "x", 1)), thing("FooMachine m", owner("Machine m"), bad("Ready", "InstanceProvisioning", "creating the instance", 1))),
			of:      "Machine m", path: "Machine m > FooMachine m", cause: "creating the instance", since: 1, remedy: "no action is needed", automatic: true,
		},
		"rollout waits for a Machine": {
			reason: "explain of a MachineDeployment with a stuck rollout once found nothing to do",
			objects: things(
				thing("MachineDeployment c-workers", owner("Cluster c"), cond("RollingOut", "True", "RollingOut", "Rolling out 1 not up-to-date replicas", 14)),
				thing("MachineSet c-w", owner("MachineDeployment c-workers"), cond("ScalingUp", "True", "ScalingUp", "Scaling up from 0 to 1 replicas", 14)),
				worker(bad("InfrastructureReady", "NotReady", "LocalMachine status.initialization.provisioned is false", 13)), config(),
				localMachine(bad("MachineProvisioned", "NeverBoots", "The annotation simulated.slipway.dev/never-boots prevents the machine from starting", 13))),
			of: "MachineDeployment c-workers", path: "MachineDeployment c-workers > MachineSet c-w > Machine c-w1 > LocalMachine c-w1", cause: "prevents the machine from starting", since: 13, remedy: "kubectl annotate localmachine.infrastructure.slipway.dev c-w1 -n ns simulated.slipway.dev/never-boots-",
		},
		"P1 pool with IDs that no Node has": {
			objects: things(thing("MachinePool p", infrastructure("FooMachinePool p"), bad("MachinesReady", "NotReady", "Waiting for Nodes with the provider IDs of FooMachinePool p to exist: foo://ghost-1, foo://ghost-2", 11)),
				thing("FooMachinePool p", owner("MachinePool p"), cond("Ready", "True", "Ready", "", 6))),
			of: "MachinePool p", path: "MachinePool p", cause: "foo://ghost-1", since: 11, remedy: "Correct spec.providerIDList",
		},
		"P2 pool with an ID twice": {
			objects: things(thing("MachinePool p", infrastructure("FooMachinePool p"), bad("Available", "NotAvailable", "x", 6))),
			plans:   map[string]Plan{"MachinePool p": {Waits: []Wait{{Reason: "DuplicateProviderIDs", User: true, On: []Ref{{Kind: "FooMachinePool", Name: "p"}}, Since: now.Add(-7 * minute), Message: "FooMachinePool p lists provider IDs more than once in spec.providerIDList: foo://one; each instance needs an ID of its own"}}}},
			of:      "MachinePool p", path: "MachinePool p", cause: "foo://one", since: 7, remedy: "Correct spec.providerID",
		},
		"W5 control plane is not stable": {
			objects: things(thing("MachineSet c-w", bad("Available", "NotAvailable", "0 of 1", 4)), thing("KubeadmControlPlane c", bad("ControlPlaneComponentsHealthy", "NotHealthy", "* Machine c-1:\n  * APIServerPodHealthy: Pod kube-apiserver-c-1: kube-apiserver CrashLoopBackOff", 8)),
				thing("Machine c-1", owner("KubeadmControlPlane c"), bad("APIServerPodHealthy", "PodFailed", "Pod kube-apiserver-c-1: kube-apiserver CrashLoopBackOff", 8))),
			plans: map[string]Plan{"MachineSet c-w": {Waits: []Wait{{Reason: "PreflightCheckFailed", Message: "KubeadmControlPlane c is being upgraded from v1.36.3 to v1.36.4 (preflight check ControlPlaneIsStable)"}}}},
			of:    "MachineSet c-w", path: "MachineSet c-w > KubeadmControlPlane c > Machine c-1", cause: "CrashLoopBackOff", since: 8, remedy: "flags of the kube-apiserver",
		},
		"P3 pool with wrong types": {
			objects: things(thing("MachinePool p", infrastructure("FooMachinePool p"), bad("InfrastructureReady", "InvalidConditionReported", "FooMachinePool p reports what its contract does not allow: field spec.providerIDList: want array, have string", 6))),
			of:      "MachinePool p", path: "MachinePool p", cause: "want array, have string", since: 6, remedy: "does not follow the contract",
		},
	}
}

func planeFaults() map[string]injectedFault {
	kcp := func(options ...option) *unstructured.Unstructured {
		return thing("KubeadmControlPlane c", append([]option{owner("Cluster c")}, options...)...)
	}
	member := func(options ...option) *unstructured.Unstructured {
		return thing("Machine c-1", append([]option{owner("KubeadmControlPlane c"), infrastructure("LocalMachine c-1")}, options...)...)
	}
	return map[string]injectedFault{
		"C1 etcd member down": {
			objects: things(kcp(bad("EtcdClusterHealthy", "NotHealthy", "* Machine c-1:\n  * EtcdPodHealthy: Pod etcd-c-1: etcd CrashLoopBackOff", 3)), member(bad("EtcdPodHealthy", "PodFailed", "Pod etcd-c-1: etcd CrashLoopBackOff", 3)),
				thing("Machine c-2", owner("KubeadmControlPlane c"))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c > Machine c-1", cause: "etcd CrashLoopBackOff", since: 3, remedy: "kubectl delete machine c-1 -n ns",
		},
		"C1 etcd member down, the only one": {
			reason:  "to delete the only Machine of a control plane loses the data of the Cluster",
			objects: things(kcp(field(true, "status", "initialization", "controlPlaneInitialized"), bad("EtcdClusterHealthy", "NotHealthy", "* Machine c-1:\n  * EtcdPodHealthy: Pod etcd-c-1: etcd CrashLoopBackOff", 3)), member(bad("EtcdPodHealthy", "PodFailed", "Pod etcd-c-1: etcd CrashLoopBackOff", 3))),
			of:      "KubeadmControlPlane c", path: "KubeadmControlPlane c > Machine c-1", cause: "etcd CrashLoopBackOff", since: 3, remedy: "Machine c-1 is the only Machine of its control plane", isWithoutCommand: true,
		},
		"infrastructure of a Cluster deleted": {
			reason:  "a Cluster is not replaced if it is deleted",
			objects: things(cluster(bad("InfrastructureReady", "ObjectDeleted", "LocalCluster c has been deleted", 4))),
			of:      "Cluster c", path: "Cluster c", cause: "has been deleted", since: 4, remedy: "replaced with the Machine if you delete that", isWithoutCommand: true,
		},
		"infrastructure of a Machine deleted": {
			objects: things(worker(bad("InfrastructureReady", "ObjectDeleted", "LocalMachine c-w1 has been deleted", 4))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "has been deleted", since: 4, remedy: "\nslipway kubectl delete machine c-w1 -n ns",
		},
		"B1 command fails on the first control plane Machine": {
			reason: "its commands are in the control plane, and it has no data yet",
			objects: things(kcp(bad("Available", "NotAvailable", "Control plane not yet initialized", 9)), member(bad("InfrastructureReady", "NotReady", "x", 3)),
				thing("LocalMachine c-1", owner("Machine c-1"), bad("BootstrapExecSucceeded", "BootstrapFailed", "slipway: runcmd ended with code 7", 3), func(u *unstructured.Unstructured) {
					u.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/control-plane": "", "cluster.x-k8s.io/control-plane-name": "c"})
				})),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c > Machine c-1 > LocalMachine c-1", cause: "code 7", since: 3,
			remedy: "in spec.kubeadmConfigSpec of KubeadmControlPlane c; new Machines get the correction. Then delete Machine c-1\nslipway kubectl delete machine c-1 -n ns",
		},
		"authority lost": {
			objects: things(kcp(bad("CertificatesAvailable", "SecretMissing", "Secret c-ca does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no Machine can join, and the kubeconfig cannot be renewed. Restore it from a backup, or from ca.crt and ca.key in /etc/kubernetes/pki on a control plane node", 3))),
			of:      "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "c-ca does not exist", since: 3,
			remedy: "set its label cluster.x-k8s.io/cluster-name\nslipway kubectl create secret generic c-ca --type cluster.x-k8s.io/secret --from-file tls.crt=ca.crt --from-file tls.key=ca.key -n ns",
		},
		"authority of the service accounts lost": {
			objects: things(kcp(bad("CertificatesAvailable", "SecretMissing", "Secret c-sa does not exist, and its content cannot be generated again, because the cluster depends on the original: until it is restored, no control plane Machine can join. Restore it from a backup, or from sa.pub and sa.key in /etc/kubernetes/pki on a control plane node", 3))),
			of:      "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "c-sa does not exist", since: 3, remedy: "secret generic c-sa --type cluster.x-k8s.io/secret --from-file tls.crt=sa.pub --from-file tls.key=sa.key -n ns",
		},
		"C2 alarm, simulated": {
			objects: things(kcp(bad("EtcdClusterHealthy", "NotHealthy", "Etcd reports the alarms NOSPACE: the database has reached its quota", 3)), member(),
				thing("LocalMachine c-1", owner("Machine c-1"), cond("Ready", "True", "Ready", "", 9), annotated("simulated.infrastructure.slipway.dev/control-plane-faults", "etcd-alarm=NOSPACE"))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "NOSPACE", since: 3,
			remedy: "then disarm the alarm. Or remove annotation simulated.infrastructure.slipway.dev/control-plane-faults from LocalMachine c-1: it simulates the fault\nslipway get kubeconfig c",
		},
		"C2 alarm": {
			objects: things(kcp(bad("EtcdClusterHealthy", "NotHealthy", "Etcd reports the alarms NOSPACE: the database has reached its quota", 3))),
			of:      "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "NOSPACE", since: 3, remedy: "of Cluster c that are not needed, compact and defragment etcd, then disarm the alarm\nslipway get kubeconfig c -n ns > c.kubeconfig",
		},
		"C3 quorum lost": {
			objects: things(thing("Cluster c", plane("KubeadmControlPlane c"), bad("ControlPlaneAvailable", "NotAvailable", "Etcd has lost its quorum: 1 of 3 members left", 3)),
				kcp(bad("Available", "NotAvailable", "Etcd has lost its quorum: 1 of 3 members left", 3)), member(bad("NodeHealthy", "NodeNotHealthy", "x", 4))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "1 of 3 members left", since: 3, remedy: "slipway recover controlplane c -n ns",
		},
		"C4 kube-apiserver crashes": {
			reason: "explain of the control plane once found nothing to wait for",
			objects: things(kcp(bad("Available", "NotAvailable", "Control plane not yet initialized", 9), bad("MachinesReady", "NotReady", "* Machine c-1: x", 9)), member(bad("InfrastructureReady", "NotReady", "x", 8)),
				thing("LocalMachine c-1", owner("Machine c-1"), bad("BootstrapExecSucceeded", "BootstrapFailed", `The bootstrap data ended without /run/cluster-api/bootstrap-success.complete in machine c-1; runcmd[0] (kubeadm) ended with code 1; kube-apiserver exits with "enable-admission-plugins plugin \"PodSecurityPolicy\" is unknown". Correct the bootstrap data`, 8))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c > Machine c-1 > LocalMachine c-1", cause: "PodSecurityPolicy", since: 8, remedy: "flags of the kube-apiserver",
		},
		"C7 API answers 503": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://127.0.0.1:19353/ answers with HTTP status 503", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "503", since: 5, remedy: "load balancer",
		},
		"X1 API hangs": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "the API server at https://x/ does not respond", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "does not respond", since: 5, remedy: "Secret c-kubeconfig",
		},
		"C5 endpoint does not answer": {
			objects: things(cluster(bad("ControlPlaneAvailable", "NotAvailable", "x", 5)), thing("HostedControlPlane c", owner("Cluster c"), bad("Available", "NotAvailable", "The API server does not answer: the annotation simulated.controlplane.slipway.dev/api-down makes it unreachable", 5))),
			of:      "Cluster c", path: "Cluster c > HostedControlPlane c", cause: "makes it unreachable", since: 5, remedy: "kubectl annotate hostedcontrolplane.controlplane.slipway.dev c -n ns simulated.controlplane.slipway.dev/api-down-",
		},
		"C6 slow API": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://x/ did not respond within 10s: it is slow or overloaded", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "slow or overloaded", since: 5, remedy: "enough CPU",
		},
		"API server does not run": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "nothing listens at the address of the API server, https://x: the control plane is starting, or does not run", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "nothing listens", since: 5, remedy: "API server of Cluster c runs",
		},
		"X2 captive portal": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "the server at https://x is not a Kubernetes API server (unexpected response to /version)", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "not a Kubernetes API server", since: 5, remedy: "check for a proxy",
		},
		"X3 redirect": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "the API server at https://x redirects to another address: set server in the kubeconfig Secret to that", 5))),
			of:      "Cluster c", path: "Cluster c", cause: "redirects", since: 5, remedy: "Correct server in Secret c-kubeconfig",
		},
		"H2 remediation without a quorum": {
			objects: things(kcp(cond("Remediating", "True", "RemediationDeferred", "No other Machine has all components of the control plane healthy", 3)), member(cond("Available", "True", "Available", "", 3))),
			of:      "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "No other Machine", since: 3, remedy: "Repair another control plane Machine first",
		},
		"C8 hosted control plane crashes": {
			objects: things(cluster(bad("ControlPlaneAvailable", "NotAvailable", "x", 5)), thing("HostedControlPlane c", owner("Cluster c"), bad("ProcessRunning", "Died", "The control plane died: unknown api groups nosuch", 6))),
			of:      "Cluster c", path: "Cluster c > HostedControlPlane c", cause: "nosuch", since: 6, remedy: "slipway logs control-plane c -n ns",
		},
		"I7 port taken": {
			objects: things(thing("HostedControlPlane c", bad("ProcessRunning", "Died", "listen tcp 172.24.0.1:21790: bind: address already in use", 6))),
			of:      "HostedControlPlane c", path: "HostedControlPlane c", cause: "address already in use", since: 6, remedy: "End the program",
		},
		"F1 infrastructure without a controller": {
			objects: things(thing("Cluster c", infrastructure("FooCluster f1"), bad("InfrastructureReady", "NotReady", "FooCluster status.initialization.provisioned is false", 59)), thing("FooCluster f1", owner("Cluster c"), noStatus())),
			plans:   map[string]Plan{"Cluster c": {Waits: []Wait{{Reason: "WaitingForProvider", Message: "Waiting for FooCluster f1 to report status.initialization.provisioned", On: []Ref{{Kind: "FooCluster", Name: "f1"}}}}}},
			of:      "Cluster c", path: "Cluster c > FooCluster f1", cause: "none has written to this object", since: 60, remedy: "Install or start the provider of kind FooCluster (group infrastructure.foo.dev)",
		},
		"F2 wrong types in a status": {
			objects: things(thing("Cluster c", infrastructure("FooCluster f2"), bad("InfrastructureReady", "InvalidConditionReported", "FooCluster f2 reports what its contract does not allow: field status.initialization.provisioned: want bool, have string", 4)), thing("FooCluster f2", owner("Cluster c"), cond("Ready", "True", "Ready", "", 4))),
			of:      "Cluster c", path: "Cluster c", cause: "want bool, have string", since: 4, remedy: "Report it to the provider",
		},
		"Machine waits for the infrastructure of its Cluster": {
			reason: "another Machine with a problem has nothing to do with it",
			objects: things(cluster(bad("InfrastructureReady", "NotReady", "x", 6), bad("WorkersAvailable", "NotAvailable", "Machine c-w2", 60)), config(bad("DataSecretAvailable", "WaitingForClusterInfrastructure", "Waiting for the infrastructure of Cluster c to be provisioned", 6)),
				worker(bad("BootstrapConfigReady", "NotReady", "x", 6)),
				thing("Machine c-w2", owner("Cluster c"), bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 60)),
				thing("LocalCluster c", owner("Cluster c"), bad("NetworkReady", "SubnetTaken", "Range 172.27.0.0/16 is not free", 6))),
			of: "Machine c-w1", path: "Machine c-w1 > KubeadmConfig c-w1 > Cluster c > LocalCluster c", cause: "172.27.0.0/16", since: 6, remedy: "other address ranges",
		},
	}
}

func topologyFaults() map[string]injectedFault {
	topology := func(reason, message string, minutes int) []*unstructured.Unstructured {
		return things(cluster(field("simulated", "spec", "topology", "classRef", "name"), bad("TopologyReconciled", reason, message, minutes)))
	}
	return map[string]injectedFault{
		"T1 patch": {
			objects: topology("TopologyReconcileFailed", `Patch registry of ClusterClass simulated cannot be applied to LocalMachineTemplate simulated-worker: field "registry" does not exist`, 3),
			of:      "Cluster c", path: "Cluster c", cause: "Patch registry", since: 3, remedy: "Correct the ClusterClass",
		},
		"T2 variable": {
			objects: topology("VariablesInvalid", `spec.topology.variables[startupDelay].value: Invalid value: "5s"`, 3),
			of:      "Cluster c", path: "Cluster c", cause: "startupDelay", since: 3, remedy: "kubectl edit cluster c -n ns",
		},
		"T3 template deleted": {
			objects: topology("TemplateMissing", "KubeadmConfigTemplate simulated-worker, the bootstrap template of the MachineDeployment workers of ClusterClass simulated, does not exist: create it", 3),
			of:      "Cluster c", path: "Cluster c", cause: "simulated-worker", since: 3, remedy: "kubectl edit clusterclass simulated -n ns",
		},
		"T4 extension down": {
			objects: append(topology("TopologyReconcileFailed", "Hook BeforeClusterCreate failed: handler bcc.ext-t4: nothing listens at 127.0.0.1:21770; retrying", 3), thing("ExtensionConfig ext-t4", cond("Discovered", "True", "Discovered", "", 50))),
			of:      "Cluster c", path: "Cluster c", cause: "ext-t4", since: 3, remedy: "Start Runtime Extension ext-t4, or correct spec.clientConfig",
		},
		"T4 extension fails": {
			objects: append(topology("ReconcileFailed", "Hook BeforeClusterUpgrade failed: handler change-freeze.freeze: responded with status Failure: the database of changes is not available; retrying", 3), thing("ExtensionConfig freeze", cond("Discovered", "True", "Discovered", "", 50))),
			of:      "Cluster c", path: "Cluster c", cause: "status Failure", since: 3,
			remedy: "Read the log of Runtime Extension freeze: its handler failed. To continue without it, delete ExtensionConfig freeze\nslipway kubectl describe extensionconfig freeze",
		},
		"T5 hook blocks": {
			objects: topology("LifecycleHookBlocking", "Hook BeforeClusterUpgrade has blocked the upgrade: handler guard.ext-t5: change freeze until Monday; it is called again in 15s", 4),
			plans:   map[string]Plan{"Cluster c": {Waits: []Wait{{Reason: "HookBlocking", Message: "Hook BeforeClusterUpgrade has blocked the upgrade: handler guard.ext-t5: change freeze until Monday; it is called again in 15s", Timed: true}}}},
			of:      "Cluster c", path: "Cluster c", cause: "change freeze until Monday", since: 4, remedy: "called again", automatic: true,
		},
		"T6 hook answers HTML": {
			objects: topology("TopologyReconcileFailed", "handler bcc.ext-t6: the response is not a BeforeClusterCreateResponse in JSON; retrying", 3),
			of:      "Cluster c", path: "Cluster c", cause: "in JSON", since: 3, remedy: "Correct Runtime Extension ext-t6",
		},
		"T9 external patch": {
			objects: topology("ExtensionAnswerInvalid", "Extension gp.ext-t9 of patch site: LocalClusterTemplate simulated, item 0 of its answer: replace operation does not apply: doc is missing path; correct the extension", 3),
			of:      "Cluster c", path: "Cluster c", cause: "doc is missing path", since: 3, remedy: "Correct Runtime Extension ext-t9",
		},
		"T7 hook is slow": {
			objects: topology("TopologyReconcileFailed", "handler bcc.ext-t7: 127.0.0.1:21773 did not answer in time; retrying", 3),
			of:      "Cluster c", path: "Cluster c", cause: "in time", since: 3, remedy: "timeoutSeconds of ExtensionConfig ext-t7",
		},
		"A1 bad YAML": {
			objects: things(thing("ClusterResourceSet logging", bad("ResourcesApplied", "NotApplied", "ConfigMap logging cannot be read: key agent.yaml: is neither YAML nor JSON", 3))),
			plans:   map[string]Plan{"ClusterResourceSet logging": {Waits: []Wait{{Reason: "ApplyFailed", Message: "ConfigMap logging cannot be read: key agent.yaml: is neither YAML nor JSON", User: true, Since: now.Add(-4 * minute)}}}},
			of:      "ClusterResourceSet logging", path: "ClusterResourceSet logging", cause: "agent.yaml", since: 4, remedy: "Correct the resources",
		},
		"A2 missing ConfigMap": {
			objects: things(thing("ClusterResourceSet logging", bad("ResourcesApplied", "NotApplied", "* ConfigMap nowhere does not exist", 3))),
			of:      "ClusterResourceSet logging", path: "ClusterResourceSet logging", cause: "nowhere", since: 3, remedy: "Create the object",
		},
		"A2 wrong type": {
			objects: things(thing("ClusterResourceSet logging", field([]any{map[string]any{"kind": "Secret", "name": "wrongtype"}}, "spec", "resources"), bad("ResourcesApplied", "WrongSecretType", "Secret wrongtype is not of type addons.cluster.x-k8s.io/resource-set; create it again with that type", 3))),
			of:      "ClusterResourceSet logging", path: "ClusterResourceSet logging", cause: "wrongtype", since: 3, remedy: "kubectl delete secret wrongtype -n ns",
		},
		"H3 remediation template missing": {
			objects: things(healthCheck(bad("RemediationAllowed", "RemediationTemplateNotFound", "kind FooRemediationTemplate of group infrastructure.foo.dev is not installed; install the provider it belongs to", 3))),
			of:      "MachineHealthCheck c-workers", path: "MachineHealthCheck c-workers", cause: "FooRemediationTemplate", since: 3, remedy: "Install the provider",
		},
	}
}

func deletionFaults() map[string]injectedFault {
	deleting := func(reason, message string, minutes int) option {
		return cond("Deleting", "True", reason, message, minutes)
	}
	return map[string]injectedFault{
		"D1 foreign finalizer": {
			objects: things(cluster(deleted(12, "cluster.cluster.x-k8s.io"), deleting("WaitingForInfrastructureDeletion", "* LocalCluster: c", 11), bad("RemoteConnectionProbe", "ProbeFailed", "does not answer", 11)), thing("LocalCluster c", owner("Cluster c"), deleted(10, "acme.example.com/ipam"))),
			of:      "Cluster c", path: "Cluster c > LocalCluster c", cause: "acme.example.com/ipam", since: 10, remedy: "The controller of acme.example.com has to",
		},
		"D2 hook that nothing removes": {
			objects: things(worker(deleted(12, "machine.cluster.x-k8s.io"), deleting("WaitingForPreTerminateHook", "Waiting for the owners of the annotations pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup to remove them", 8))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "/backup", since: 8, remedy: "owner of the annotation",
		},
		"W1 disruption budget": {
			objects: things(worker(deleted(12, "machine.cluster.x-k8s.io"), deleting("DrainingNode", "Draining Node n\nPods that cannot be evicted: The disruption budget web needs 1 healthy pods and has 1 currently: shop/web-0", 8))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "shop/web-0", since: 8,
			remedy: "Raise the replicas of the workload in Cluster c, or relax its PodDisruptionBudget there; spec.deletion.nodeDrainTimeoutSeconds of the Machine limits the wait\nslipway get kubeconfig c -n ns > c.kubeconfig",
		},
		"W2 finalizer on a Node": {
			objects: things(worker(deleted(12, "machine.cluster.x-k8s.io"), deleting("DeletingNode", "Waiting for Node c-w1 to be deleted; blocked by finalizers, which their owners have to remove: Node c-w1, deleted at 2026-11-28T17:50:00Z, by example.com/inventory", 8))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "example.com/inventory", since: 8, remedy: "nodeDeletionTimeoutSeconds",
		},
		"W6 volume attached": {
			objects: things(worker(deleted(12, "machine.cluster.x-k8s.io"), deleting("WaitingForVolumeDetach", "Waiting for volumes to be detached from Node c-w1: pv-data-0", 8))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "pv-data-0", since: 8, remedy: "nodeVolumeDetachTimeoutSeconds",
		},
		"deletion in progress": {
			objects: things(worker(deleted(1, "machine.cluster.x-k8s.io"), deleting("DrainingNode", "Draining Node n; Pods still to be evicted: a/b", 1), bad("NodeHealthy", "NodeNotHealthy", "Node.DiskPressure: kubelet has disk pressure", 9))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "still to be evicted", since: 1, remedy: "nodeDrainTimeoutSeconds", automatic: true,
		},
		"provider was uninstalled": {
			objects: things(thing("FooMachine m", owner("Machine m"), deleted(30, "foomachine.infrastructure.foo.dev"))),
			of:      "FooMachine m", path: "FooMachine m", cause: "foomachine.infrastructure.foo.dev", since: 30, remedy: "Check that the provider of FooMachine (group infrastructure.foo.dev) runs",
		},
	}
}

// faultsWithoutPlans are faults that only conditions report.
func faultsWithoutPlans() map[string]injectedFault {
	unconnected := func(cause string) []*unstructured.Unstructured {
		return things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection not established yet: "+cause, 9)))
	}
	unreadable := func(problem string) []*unstructured.Unstructured {
		return things(thing("Cluster c", infrastructure("FooCluster c"), bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection not established yet", 9),
			bad("ControlPlaneInitialized", "NotInitialized", "Control plane not yet initialized", 9), cond("InfrastructureReady", "Unknown", "InternalError", problem, 4)))
	}
	waiting := func(reason, message string) []*unstructured.Unstructured {
		const topology = "Waiting for the topology of the Cluster to be reconciled"
		return things(thing("Cluster c", field("simulated", "spec", "topology", "classRef", "name"), bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection not established yet", 9),
			bad("InfrastructureReady", "ObjectDoesNotExist", topology, 9), bad("ControlPlaneAvailable", "ObjectDoesNotExist", topology, 9),
			bad("ControlPlaneInitialized", "NotInitialized", "Waiting for the first control plane Machine to have its status.nodeRef set", 9), bad("TopologyReconciled", reason, message, 8)))
	}
	extension := func(message string) []*unstructured.Unstructured {
		return things(thing("ExtensionConfig x", bad("Answering", "CircuitOpen", "Calls of bcc ("+message+") stopped after several failures in a row; retrying in up to 1m. Until then handlers with failure policy Fail block", 8)))
	}
	scaling := cond("ScalingUp", "True", "ScalingUp", `Scaling up from 0 to 1 replicas is blocked because:
* Version v1.37.0 of the MachineSet is newer than version v1.36.3 of HostedControlPlane fleet (preflight check KubernetesVersionSkew)
* Version v1.37.0 of the MachineSet must have the minor version of the control plane that it joins with kubeadm: version v1.36.3 (preflight check KubeadmVersionSkew)`, 3)
	return map[string]injectedFault{
		"expired client certificate of a Cluster that was never connected": {
			objects: unconnected("the client certificate in Secret c-kubeconfig expired on 2026-11-29: renew the Secret"),
			of:      "Cluster c", path: "Cluster c", cause: "expired on", since: 9, remedy: "Replace the expired certificate in Secret c-kubeconfig",
		},
		"kubeconfig that cannot be read": {
			objects: unconnected("the kubeconfig cannot be read: correct or replace it"),
			of:      "Cluster c", path: "Cluster c", cause: "cannot be read", since: 9, remedy: "Correct or replace the kubeconfig in Secret c-kubeconfig",
		},
		"API server that never responded": {
			objects: unconnected("the API server at https://x/ does not respond as described in the kubeconfig Secret"),
			of:      "Cluster c", path: "Cluster c", cause: "does not respond", since: 9, remedy: "Check that the API server of Cluster c runs",
		},
		"portal instead of an API server": {
			objects: unconnected("the server at https://x/ is not a Kubernetes API server (unexpected response to /version)"),
			of:      "Cluster c", path: "Cluster c", cause: "is not a Kubernetes API server", since: 9, remedy: "check for a proxy or portal",
		},
		"kind that is not installed": {
			objects: unreadable("kind FooCluster of group infrastructure.foo.dev is not installed; install the provider it belongs to"),
			of:      "Cluster c", path: "Cluster c", cause: "is not installed", since: 4, remedy: "Install the provider",
		},
		"kind without a contract label": {
			objects: unreadable("CRD fooclusters.infrastructure.foo.dev has no label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1: its provider must set one"),
			of:      "Cluster c", path: "Cluster c", cause: "has no label", since: 4, remedy: "Set the label of the CustomResourceDefinition",
		},
		"kind without rights": {
			objects: unreadable("this manager has no right to list and watch kind FooCluster of group infrastructure.foo.dev; grant it with a ClusterRole that has the label cluster.x-k8s.io/aggregate-to-manager=true"),
			of:      "Cluster c", path: "Cluster c", cause: "no right to", since: 4, remedy: "Grant the manager the rights",
		},
		"wrong types, long after the creation": {
			objects: append(unreadable("FooCluster c reports what its contract does not allow: field status.initialization.provisioned: want bool, have string"),
				thing("FooCluster c", owner("Cluster c"), field("yes", "status", "initialization", "provisioned"))),
			of: "Cluster c", path: "Cluster c", cause: "want bool, have string", since: 4, remedy: "Report it to the provider",
		},
		"hook blocks the creation": {
			objects: waiting("ClusterCreating", "Following hooks are blocking creation of the topology: BeforeClusterCreate: handler bcc.x: waiting for change request CHG-4711"),
			of:      "Cluster c", path: "Cluster c", cause: "CHG-4711", since: 8, remedy: "its owner decides", automatic: true,
		},
		"class that does not exist": {
			objects: waiting("ClusterClassNotReconciled", "Waiting for ClusterClass ns/simulated to be created"),
			of:      "Cluster c", path: "Cluster c", cause: "ClusterClass ns/simulated", since: 8, remedy: "Create ClusterClass simulated, or correct spec.topology.classRef of Cluster c",
		},
		"template of a class deleted": {
			objects: waiting("ReconcileFailed", "KubeadmConfigTemplate simulated-worker, the bootstrap template of the MachineDeployment workers of ClusterClass simulated, does not exist: create it"),
			of:      "Cluster c", path: "Cluster c", cause: "simulated-worker", since: 8, remedy: "Create the template that the message names, or correct the reference in ClusterClass simulated",
		},
		"patch of an extension does not apply": {
			objects: waiting("ReconcileFailed", "Extension gp.x of patch site: LocalClusterTemplate simulated (infrastructure cluster), item 0 of its response: replace operation does not apply: doc is missing path; correct the extension"),
			of:      "Cluster c", path: "Cluster c", cause: "does not apply", since: 8, remedy: "Correct Runtime Extension x: it returned a patch",
		},
		"extension that responds with HTML is not called": {
			objects: extension("the response is not a BeforeClusterCreateResponse in JSON"),
			of:      "ExtensionConfig x", path: "ExtensionConfig x", cause: "in JSON", since: 8, remedy: "Correct Runtime Extension x: its response",
		},
		"slow extension is not called": {
			objects: extension("127.0.0.1:34069 did not respond in time"),
			of:      "ExtensionConfig x", path: "ExtensionConfig x", cause: "in time", since: 8, remedy: "make it faster, or correct spec.clientConfig and timeoutSeconds of ExtensionConfig x",
		},
		"remediation template missing": {
			reason: "the replacement of the Machine ends the problem of its Node",
			objects: things(cluster(), healthCheck(cond("RemediationAllowed", "True", "RemediationAllowed", "", 50)), worker(bad("NodeHealthy", "NodeNotHealthy", "Kubelet stopped posting node status", 9), cond("NodeReady", "Unknown", "NodeReadyUnknown", "x", 9),
				bad("ExternallyRemediated", "RemediationTemplateNotFound", "kind FooRemediationTemplate of group infrastructure.foo.dev is not installed; install the provider it belongs to", 4))),
			of: "Machine c-w1", path: "Machine c-w1", cause: "FooRemediationTemplate", since: 4, remedy: "Install the provider",
		},
		"remediation template missing, of the health check": {
			objects: things(cluster(), healthCheck(field([]any{"c-w1"}, "status", "targets")), worker(bad("ExternallyRemediated", "RemediationTemplateNotFound", "FooRemediationTemplate x does not exist", 4))),
			of:      "MachineHealthCheck c-workers", path: "Machine c-w1", cause: "FooRemediationTemplate", since: 4, remedy: "Create the template",
		},
		"quorum lost": {
			reason: "no member can tell: to delete its Machine is wrong",
			objects: things(thing("KubeadmControlPlane c", bad("EtcdClusterHealthy", "NotHealthy", "Etcd has lost its quorum: 1 of 3 members left, 2 needed. Machine c-1: The etcd member does not answer; Machine c-2: The etcd member does not answer", 6)),
				thing("Machine c-1", owner("KubeadmControlPlane c"), bad("EtcdMemberHealthy", "NotHealthy", "The etcd member on machine c-1 does not answer", 7)),
				thing("Machine c-2", owner("KubeadmControlPlane c"), bad("EtcdMemberHealthy", "NotHealthy", "The etcd member on machine c-2 does not answer", 7))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c", cause: "lost its quorum", since: 6, remedy: "slipway recover controlplane c -n ns",
		},
		"resources that cannot be parsed": {
			objects: things(thing("ClusterResourceSet logging", bad("ResourcesApplied", "NotApplied", "* ConfigMap logging cannot be read: key agent.yaml: document 1: error converting YAML to JSON", 3))),
			of:      "ClusterResourceSet logging", path: "ClusterResourceSet logging", cause: "agent.yaml", since: 3, remedy: "Correct the resources",
		},
		"template of a MachineDeployment missing": {
			objects: things(thing("MachineDeployment c-workers", bad("Available", "NotAvailable", "0 available replicas, at least 1 required (spec.replicas is 1)\n* LocalMachineTemplate gone does not exist", 3))),
			of:      "MachineDeployment c-workers", path: "MachineDeployment c-workers", cause: "LocalMachineTemplate gone", since: 3, remedy: "Create the template",
		},
		"Cluster of a MachineDeployment missing": {
			objects: things(thing("MachineDeployment c-workers", bad("Available", "NotAvailable", "0 available replicas, at least 1 required (spec.replicas is 1)\n* Cluster c does not exist: create it, or delete MachineDeployment c-workers", 3))),
			of:      "MachineDeployment c-workers", path: "MachineDeployment c-workers", cause: "Cluster c", since: 3, remedy: "Create Cluster c, or correct spec.clusterName",
		},
		"workers newer than the control plane": {
			objects: things(thing("MachineSet c-w", scaling)),
			of:      "MachineSet c-w", path: "MachineSet c-w", cause: "newer than version", since: 3, remedy: "Upgrade the control plane first",
		},
		"connection lost": {
			reason: "the Cluster is where a user can act, whatever the message of the Machine contains",
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://x/ does not respond", 9)),
				worker(cond("NodeReady", "Unknown", "ConnectionDown", "The workload cluster does not answer", 4), cond("NodeHealthy", "Unknown", "ConnectionDown", "The workload cluster does not answer", 4),
					cond("Ready", "Unknown", "ReadyUnknown", "* NodeHealthy: The workload cluster does not answer", 4), bad("Available", "NotReady", "* NodeHealthy: The workload cluster does not answer", 4))),
			of: "Machine c-w1", path: "Machine c-w1 > Cluster c", cause: "https://x/ does not respond", since: 9, remedy: "Check that the API server of Cluster c runs",
		},
		"connection lost with the credentials": {
			reason: "the kubeconfig is the kubeconfig of the Cluster",
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server rejects the credentials of the kubeconfig Secret", 9)),
				thing("Machine c-1", owner("KubeadmControlPlane c"), cond("APIServerPodHealthy", "Unknown", "ConnectionDown", "The API server rejects the credentials of the kubeconfig Secret", 4),
					bad("Ready", "NotReady", "* APIServerPodHealthy: The API server rejects the credentials of the kubeconfig Secret", 4))),
			of: "Machine c-1", path: "Machine c-1 > Cluster c", cause: "rejects the credentials", since: 9, remedy: "Renew the kubeconfig in Secret c-kubeconfig",
		},
		"connection of a control plane lost": {
			objects: things(cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://x/ does not respond", 9)),
				thing("KubeadmControlPlane c", owner("Cluster c"), cond("ControlPlaneComponentsHealthy", "Unknown", "ConnectionDown", "The workload cluster is not connected", 4), cond("Available", "Unknown", "ConnectionDown", "The workload cluster is not connected", 4))),
			of: "KubeadmControlPlane c", path: "KubeadmControlPlane c > Cluster c", cause: "https://x/ does not respond", since: 9, remedy: "Check that the API server of Cluster c runs",
		},
		"connection lost, of the owner of the Machine": {
			objects: append(workers("* Machine c-w1: * NodeHealthy: The workload cluster does not answer", 4),
				cluster(bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://x/ does not respond", 9)),
				worker(cond("NodeHealthy", "Unknown", "ConnectionDown", "The workload cluster does not answer", 4), bad("Ready", "NotReady", "* NodeHealthy: The workload cluster does not answer", 4))),
			of: "MachineSet c-w", path: "MachineSet c-w > Machine c-w1 > Cluster c", cause: "https://x/ does not respond", since: 9, remedy: "Check that the API server of Cluster c runs",
		},
		"connection lost because a machine was stopped": {
			reason: "the machine is the cause of the lost connection",
			objects: things(thing("Cluster c", plane("KubeadmControlPlane c"), bad("RemoteConnectionProbe", "ProbeFailed", "Remote connection probe failed: the API server at https://x/ does not respond", 5)),
				thing("KubeadmControlPlane c", owner("Cluster c")), thing("Machine c-2", owner("KubeadmControlPlane c")),
				thing("Machine c-1", owner("KubeadmControlPlane c"), infrastructure("LocalMachine c-1"), cond("NodeHealthy", "Unknown", "ConnectionDown", "The workload cluster does not answer", 4), bad("InfrastructureReady", "NotReady", "x", 6)),
				thing("LocalMachine c-1", owner("Machine c-1"), bad("MachineProvisioned", "MachineStopped", "The machine c-1 does not run (it ended with exit code 137)", 6))),
			of: "Machine c-1", path: "Machine c-1 > LocalMachine c-1", cause: "exit code 137", since: 6, remedy: "docker start",
		},
		"connection lost, before the Cluster reports it": {
			objects: things(cluster(), worker(cond("NodeHealthy", "Unknown", "ConnectionDown", "The workload cluster does not answer", 1), bad("Ready", "NotReady", "* NodeHealthy: The workload cluster does not answer", 1))),
			of:      "Machine c-w1", path: "Machine c-w1", cause: "does not answer", since: 1, remedy: "when the API server of Cluster c responds", automatic: true,
		},
		"provider ID twice": {
			objects: things(thing("MachinePool p", infrastructure("FooMachinePool p"), bad("MachinesReady", "NotReady", "* FooMachinePool p lists provider IDs more than once in spec.providerIDList: foo://one\n* Waiting for Nodes with the provider IDs of FooMachinePool p to exist: foo://one", 6))),
			of:      "MachinePool p", path: "MachinePool p", cause: "foo://one", since: 6, remedy: "each Node has a provider ID of its own",
		},
	}
}
