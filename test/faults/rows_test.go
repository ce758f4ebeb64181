package faults

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/slipwayhq/slipway/test/hooktest"
)

// Annotations that simulate faults.
const (
	neverBoots      = "simulated.infrastructure.slipway.dev/never-boots"
	neverProvisions = "simulated.infrastructure.slipway.dev/never-provisions"
	notReadyAfter   = "simulated.infrastructure.slipway.dev/not-ready-after"
	planeFaults     = "simulated.infrastructure.slipway.dev/control-plane-faults"
	apiDown         = "simulated.controlplane.slipway.dev/api-down"
	apiSlow         = "simulated.controlplane.slipway.dev/api-slow"
	apiErrors       = "simulated.controlplane.slipway.dev/api-errors"
)

func managementRows() []row {
	foreign := func(kind string) func(*namespace) string {
		return func(n *namespace) string {
			n.apply(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: ext}, spec: {}}", apiVersions()[kind], kind))
			n.foreignCluster(kind)
			return "Cluster/ext"
		}
	}
	return []row{
		{id: "M4", fault: "client certificate of the kubeconfig Secret expired", inject: func(n *namespace) string {
			n.external(n.api(n.expiredUser(), status(401, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":401}`)))
			return "Cluster/ext"
		}, object: "Cluster ext", cause: "expired on", remedy: "Secret ext-kubeconfig"},
		{id: "M6", fault: "quota of one Machine, scaled to three", inject: func(n *namespace) string {
			n.apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {count/machines.cluster.x-k8s.io: "1"}}}`)
			n.fleet()
			n.machine()
			n.patch("MachineDeployment", "fleet-workers", "{spec: {replicas: 3}}")
			return "MachineDeployment/fleet-workers"
		}, object: "MachineSet fleet-workers-", cause: "exceeded quota: q", remedy: "Raise the ResourceQuota"},
		{id: "M8", fault: "CRD deleted while it is in use", inject: func(n *namespace) string {
			what := foreign("GoneCluster")(n)
			n.remove("CustomResourceDefinition", "goneclusters.infrastructure.foo.dev")
			return what
		}, object: "Cluster ext", cause: "kind GoneCluster of group infrastructure.foo.dev is not installed", remedy: "Install the provider"},
		{id: "M9", fault: "CRD without a contract label", inject: foreign("BarCluster"), object: "Cluster ext", cause: "has no label", remedy: "Set the label of the CustomResourceDefinition"},
		{id: "M10", fault: "foreign kind without the aggregated ClusterRole", inject: foreign("BazCluster"), object: "Cluster ext", cause: "no right to", remedy: "Grant the manager the rights"},
		{id: "M11", fault: "authority brought by the user expired", inject: func(n *namespace) string {
			n.expiredAuthority("fleet-ca")
			n.fleet()
			return "Cluster/fleet"
		}, object: "HostedControlPlane fleet", cause: "expired on 2024-02-01", remedy: "Secret fleet-ca"},
	}
}

// lastRow is the fault that breaks a provider for all namespaces.
func lastRow() row {
	return row{id: "M7", fault: "ClusterRoleBinding of the infrastructure provider deleted", inject: func(n *namespace) string {
		n.remove("ClusterRoleBinding", "slipway-infrastructure-local")
		n.fleet()
		return "Cluster/fleet"
	}, object: "LocalCluster fleet", cause: "slipway:manager:infrastructure-local", remedy: "ClusterRoleBinding"}
}

// deletedMachine creates a fleet, prepares the Node of its Machine, and deletes the Machine.
func deletedMachine(prepare func(n *namespace, machine, node string)) func(*namespace) string {
	return func(n *namespace) string {
		n.fleet("MachineDeployment", "{spec: {template: {spec: {deletion: {nodeDeletionTimeoutSeconds: 0}}}}}")
		machine, node := n.machine()
		prepare(n, machine, node)
		n.remove("Machine", machine)
		return "Machine/" + machine
	}
}

// pool creates a fleet with a MachinePool of a foreign provider.
func pool(providerIDs string) func(*namespace) string {
	return func(n *namespace) string {
		n.fleet("MachineDeployment", "{spec: {replicas: 0}}")
		n.apply(fmt.Sprintf(`{apiVersion: infrastructure.foo.dev/v1, kind: FooMachinePool, metadata: {name: mp}, spec: {providerIDList: %s}, status: {replicas: 2, initialization: {provisioned: true}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachinePool, metadata: {name: mp}, spec: {clusterName: fleet, replicas: 2, template: {spec: {clusterName: fleet, version: v1.36.3,
  bootstrap: {dataSecretName: none}, infrastructureRef: {apiGroup: infrastructure.foo.dev, kind: FooMachinePool, name: mp}}}}}`, providerIDs))
		return "MachinePool/mp"
	}
}

// notReady changes examples/fleet.yaml so that Nodes become NotReady a second after they joined.
func notReady() []string {
	return []string{"LocalMachineTemplate", fmt.Sprintf("{spec: {template: {metadata: {annotations: {%s: 1s}}}}}", notReadyAfter)}
}

// healthCheck creates a MachineHealthCheck of the workers of a fleet.
func (n *namespace) healthCheck(seconds int, remediation string) {
	n.Helper()
	n.apply(fmt.Sprintf(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineHealthCheck, metadata: {name: fleet-workers}, spec: {clusterName: fleet,
  selector: {matchLabels: {cluster.x-k8s.io/deployment-name: fleet-workers}},
  checks: {unhealthyNodeConditions: [{type: Ready, status: "False", timeoutSeconds: %d}, {type: Ready, status: Unknown, timeoutSeconds: %d}]}, remediation: %s}}`, seconds, seconds, remediation))
}

func machineRows() []row {
	return []row{
		{id: "B5", fault: "file of a KubeadmConfig from a missing Secret", inject: func(n *namespace) string {
			n.fleet("KubeadmConfigTemplate", "{spec: {template: {spec: {files: [{path: /etc/registry.json, contentFrom: {secret: {name: registry-credentials, key: config}}}]}}}}")
			return "Cluster/fleet"
		}, object: "KubeadmConfig fleet-workers-", cause: "Secret registry-credentials", remedy: "reate the object that the message names"},
		{id: "W1", fault: "PodDisruptionBudget blocks the drain", inject: deletedMachine(func(n *namespace, _, node string) {
			n.blockEviction(n.workload("fleet"), node)
		}), object: "Machine fleet-workers-", cause: "default/web", remedy: "PodDisruptionBudget"},
		{id: "W2", fault: "foreign finalizer on a Node", inject: deletedMachine(func(n *namespace, _, node string) {
			n.patchNode(n.workload("fleet"), node, false, `{"metadata":{"finalizers":["example.com/inventory"]}}`)
		}), object: "Machine fleet-workers-", cause: "example.com/inventory", remedy: "The owner of the finalizer on Node fleet-workers-"},
		{id: "W4", fault: "workers newer than the control plane", inject: func(n *namespace) string {
			n.fleet("MachineDeployment", "{spec: {template: {spec: {version: v1.37.0}}}}")
			return "MachineDeployment/fleet-workers"
		}, object: "MachineSet fleet-workers-", cause: "newer than version v1.36.3", remedy: "Upgrade the control plane first"},
		{id: "W5", fault: "preflight check: the control plane is not stable", inject: func(n *namespace) string {
			machines := n.spire()
			n.annotate("LocalMachine", machines[0], planeFaults, "pod-down=kube-apiserver")
			n.patch("KubeadmControlPlane", "spire", "{spec: {version: v1.35.5}}")
			n.patch("MachineDeployment", "spire-workers", "{spec: {replicas: 1}}")
			return "MachineDeployment/spire-workers"
		}, object: "Machine spire-", cause: "kube-apiserver", remedy: "kube-apiserver"},
		{id: "W6", fault: "volume is not detached", inject: deletedMachine(func(n *namespace, _, node string) {
			n.attachVolume(n.workload("fleet"), node)
		}), object: "Machine fleet-workers-", cause: "pv-data-0", remedy: "CSI driver"},
		{id: "P1", fault: "pool reports provider IDs that no Node has", inject: pool(`["foo://ghost-1", "foo://ghost-2"]`), object: "MachinePool mp", cause: "foo://ghost-1", remedy: "orrect spec.providerIDList"},
		{id: "P2", fault: "pool reports a provider ID twice", inject: pool(`["foo://one", "foo://one"]`), object: "MachinePool mp", cause: "foo://one", remedy: "spec.providerID"},
		{id: "P3", fault: "pool with wrong types", inject: pool(`foo`), object: "MachinePool mp", cause: "want array, have string", remedy: "Report it to the provider"},
		{id: "H1", fault: "more unhealthy Machines than a health check allows", inject: func(n *namespace) string {
			n.fleet(append(notReady(), "MachineDeployment", "{spec: {replicas: 3}}")...)
			n.healthCheck(5, "{triggerIf: {unhealthyLessThanOrEqualTo: 1}}")
			return "MachineHealthCheck/fleet-workers"
		}, object: "MachineHealthCheck fleet-workers", cause: "3 of 3 Machines", remedy: "raise unhealthyLessThanOrEqualTo"},
		{id: "H3", fault: "remediation template missing", inject: func(n *namespace) string {
			n.fleet(notReady()...)
			n.healthCheck(1, "{templateRef: {apiVersion: infrastructure.foo.dev/v1, kind: FooRemediationTemplate, name: none}}")
			return "MachineDeployment/fleet-workers"
		}, object: "Machine", cause: "FooRemediationTemplate", remedy: "Install the provider"},
	}
}

// planeFault injects faults into the control plane machines of a cluster of three.
func planeFault(faults ...string) func(*namespace) string {
	return func(n *namespace) string {
		machines := n.spire()
		for i, f := range faults {
			n.annotate("LocalMachine", machines[i], planeFaults, f)
		}
		return "KubeadmControlPlane/spire"
	}
}

// hostedFault injects a fault into the hosted control plane of an available cluster.
func hostedFault(annotation, value string) func(*namespace) string {
	return func(n *namespace) string {
		n.fleet()
		n.await("Cluster", "fleet", "Available")
		n.annotate("HostedControlPlane", "fleet", annotation, value)
		return "Cluster/fleet"
	}
}

func planeRows() []row {
	api := func(handler http.HandlerFunc) func(*namespace) string {
		return func(n *namespace) string { n.external(n.api("{token: t}", handler)); return "Cluster/ext" }
	}
	return []row{
		{id: "C1", fault: "one of three etcd members down", inject: planeFault("etcd-down"), object: "Machine spire-", cause: "etcd", remedy: "Delete the Machine of the etcd member"},
		{id: "C2", fault: "etcd alarm NOSPACE", inject: planeFault("etcd-alarm=NOSPACE"), object: "KubeadmControlPlane spire|Machine spire-", cause: "NOSPACE", remedy: "defragment etcd, then disarm the alarm"},
		{id: "C3", fault: "quorum of etcd lost", inject: planeFault("etcd-down", "etcd-down"), object: "KubeadmControlPlane spire", cause: "lost its quorum", remedy: "slipway recover controlplane spire"},
		{id: "C5", fault: "API server does not respond", inject: hostedFault(apiDown, "always"), object: "HostedControlPlane fleet", cause: apiDown, remedy: "Remove annotation " + apiDown},
		{id: "C6", fault: "API server takes 25 s for each response", inject: hostedFault(apiSlow, "25s"), object: "Cluster fleet", cause: "slow or overloaded", remedy: "has enough CPU"},
		{id: "C7", fault: "API server responds with status 503", inject: hostedFault(apiErrors, "503"), object: "HostedControlPlane fleet", cause: "status 503", remedy: "Remove annotation " + apiErrors},
		{id: "X1", fault: "API never responds", inject: api(hooktest.Silent), object: "Cluster ext", cause: "respond", remedy: "heck that the API server of Cluster ext runs"},
		{id: "X2", fault: "API responds with HTML to every path", inject: api(status(200, "text/html", "<html>Sign in</html>")), object: "Cluster ext", cause: "is not a Kubernetes API server", remedy: "check for a proxy or portal"},
		{id: "X3", fault: "API redirects", inject: api(http.RedirectHandler("https://192.0.2.1/", http.StatusFound).ServeHTTP), object: "Cluster ext", cause: "redirects to another address", remedy: "Correct server in Secret ext-kubeconfig"},
		{id: "H2", fault: "remediation blocked: no other Machine is healthy", inject: func(n *namespace) string {
			what := planeFault("pod-down=kube-scheduler", "pod-down=kube-scheduler", "pod-down=kube-scheduler")(n)
			n.apply(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineHealthCheck, metadata: {name: spire}, spec: {clusterName: spire, selector: {matchLabels: {cluster.x-k8s.io/control-plane: ""}},
  checks: {nodeStartupTimeoutSeconds: 600, unhealthyNodeConditions: [{type: Ready, status: "False", timeoutSeconds: 60}]}}}`)
			n.annotate("Machine", n.list("Machine", 3)[0].GetName(), "cluster.x-k8s.io/remediate-machine", "")
			return what
		}, object: "KubeadmControlPlane spire|Machine spire-", cause: "No other Machine has all components", remedy: "Repair another control plane Machine first"},
	}
}

// hooked creates a Cluster whose creation a hook of an extension has to allow.
func hooked(serve http.HandlerFunc, after func(*hooktest.Extension)) func(*namespace) string {
	return func(n *namespace) string {
		n.topology(false)
		x := n.extension("BeforeClusterCreate", "bcc", serve)
		if after != nil {
			after(x)
		}
		n.managed()
		return "Cluster/top"
	}
}

// patchNothing responds to GeneratePatches with a patch of each template that does not apply.
func patchNothing(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Items []struct {
			UID string `json:"uid"`
		} `json:"items"`
	}
	items := []map[string]string{}
	if json.NewDecoder(r.Body).Decode(&request) == nil {
		for _, item := range request.Items {
			items = append(items, map[string]string{"uid": item.UID, "patchType": "JSONPatch", "patch": encoded([]byte(`[{"op":"replace","path":"/spec/template/spec/nothing/here","value":1}]`))})
		}
	}
	hooktest.Respond(map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "kind": "GeneratePatchesResponse", "status": "Success", "items": items})(w, r)
}

func topologyRows() []row {
	patched := func(patches string) string {
		return "{spec: {patches: [" + patches + "]}}"
	}
	return []row{
		{id: "T1", fault: "patch of a ClusterClass does not apply", inject: func(n *namespace) string {
			n.topology(true)
			n.patch("ClusterClass", "simulated", patched(`{name: registry, definitions: [{selector: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, matchResources: {machineDeploymentClass: {names: [default-worker]}}},
  jsonPatches: [{op: replace, path: /spec/template/spec/registry/mirror, value: x}]}]}`))
			return "Cluster/top"
		}, object: "Cluster top", cause: "Patch registry", remedy: "Correct the ClusterClass"},
		{id: "T2", fault: "variable invalid after a change of the class", inject: func(n *namespace) string {
			n.topology(true)
			n.patch("ClusterClass", "simulated", `{spec: {variables: [{name: startupDelay, required: false, schema: {openAPIV3Schema: {type: string, default: 0m, pattern: "^[0-9]+m$"}}},
  {name: jitter, required: false, schema: {openAPIV3Schema: {type: string, default: 0s}}}]}}`)
			return "Cluster/top"
		}, object: "Cluster top", cause: "startupDelay", remedy: "spec.topology of Cluster top"},
		{id: "T3", fault: "template of a class deleted", inject: func(n *namespace) string {
			n.topology(true)
			n.remove("KubeadmConfigTemplate", "simulated-worker")
			return "Cluster/top"
		}, object: "Cluster top", cause: "KubeadmConfigTemplate simulated-worker", remedy: "Create the template"},
		{id: "T4", fault: "extension of a hook is down", inject: hooked(hooktest.Raw("{}"), func(x *hooktest.Extension) { x.CloseClientConnections(); x.Close() }),
			object: "ExtensionConfig ext-t4", cause: "nothing listens at", remedy: "Start Runtime Extension ext-t4, or correct spec.clientConfig"},
		{id: "T5", fault: "hook blocks", inject: hooked(hooktest.Raw(`{"status":"Success","message":"waiting for change request CHG-4711","retryAfterSeconds":15}`), nil),
			object: "Cluster top", cause: "CHG-4711", remedy: "its owner decides"},
		{id: "T6", fault: "hook returns HTML", inject: hooked(status(200, "text/html", "<html>Sign in</html>"), nil), object: "ExtensionConfig ext-t6", cause: "the response is not a BeforeClusterCreateResponse", remedy: "Correct Runtime Extension ext-t6"},
		{id: "T7", fault: "hook takes longer than its timeout", inject: hooked(hooktest.Silent, nil), object: "ExtensionConfig ext-t7", cause: "did not respond", remedy: "timeoutSeconds of ExtensionConfig ext-t7"},
		{id: "T8", fault: "control plane of a used class changed to another kind", isRefused: true, inject: func(n *namespace) string {
			n.topology(true)
			err := n.tryPatch("ClusterClass", "simulated", "{spec: {controlPlane: {templateRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlaneTemplate}}}}")
			if err == nil {
				n.Fatal("the change is not refused")
			}
			return err.Error()
		}, cause: "spec.controlPlane.templateRef: Forbidden: cannot be changed from HostedControlPlaneTemplate", remedy: "existing objects of Clusters cannot change their kind"},
		{id: "T9", fault: "patch of an extension does not apply", inject: func(n *namespace) string {
			n.topology(true)
			n.extension("GeneratePatches", "gp", patchNothing)
			n.patch("ClusterClass", "simulated", patched("{name: site, external: {generatePatchesExtension: gp.ext-t9}}"))
			return "Cluster/top"
		}, object: "Cluster top", cause: "does not apply", remedy: "Correct Runtime Extension ext-t9"},
	}
}

// resources creates a fleet with a ClusterResourceSet.
func resources(objects, listed string) func(*namespace) string {
	return func(n *namespace) string {
		n.fleet("Cluster", `{metadata: {labels: {logs: "yes"}}}`)
		n.apply(objects)
		n.apply(`{apiVersion: addons.cluster.x-k8s.io/v1beta2, kind: ClusterResourceSet, metadata: {name: logging}, spec: {clusterSelector: {matchLabels: {logs: "yes"}}, resources: ` + listed + `}}`)
		return "ClusterResourceSet/logging"
	}
}

func otherRows() []row {
	return []row{
		{id: "A1", fault: "ClusterResourceSet with invalid YAML", inject: resources(`{apiVersion: v1, kind: ConfigMap, metadata: {name: logging}, data: {agent.yaml: "a: [\nb"}}`, "[{kind: ConfigMap, name: logging}]"),
			object: "ClusterResourceSet logging", cause: "agent.yaml", remedy: "Correct the resources"},
		{id: "A2", fault: "ClusterResourceSet with a missing ConfigMap, and a Secret of the wrong type", inject: resources("{apiVersion: v1, kind: Secret, metadata: {name: wrongtype}, stringData: {a: b}}", "[{kind: ConfigMap, name: nowhere}, {kind: Secret, name: wrongtype}]"),
			object: "ClusterResourceSet logging", cause: "nowhere", remedy: "reate the object"},
		{id: "F1", fault: "infrastructure without a controller", inject: func(n *namespace) string {
			n.apply("{apiVersion: infrastructure.foo.dev/v1, kind: FooCluster, metadata: {name: ext}, spec: {}}")
			n.foreignCluster("FooCluster")
			return "Cluster/ext"
		}, object: "FooCluster ext", cause: "none has written to this object", remedy: "Install or start the provider of kind FooCluster"},
		{id: "F2", fault: "infrastructure with wrong types in its status", inject: func(n *namespace) string {
			n.apply(`{apiVersion: infrastructure.foo.dev/v1, kind: FooCluster, metadata: {name: ext}, spec: {}, status: {initialization: {provisioned: "yes"}}}`)
			n.foreignCluster("FooCluster")
			return "Cluster/ext"
		}, object: "Cluster ext", cause: "want bool, have string", remedy: "Report it to the provider"},
		{id: "D1", fault: "foreign finalizer on the infrastructure of a deleted Cluster", inject: func(n *namespace) string {
			n.fleet("LocalCluster", "{metadata: {finalizers: [acme.example.com/ipam]}}")
			n.await("Cluster", "fleet", "Available")
			n.remove("Cluster", "fleet")
			return "Cluster/fleet"
		}, object: "Cluster fleet|LocalCluster fleet", cause: "LocalCluster fleet, deleted at", remedy: "The owners of the finalizers"},
		{id: "D2", fault: "pre-terminate hook that nothing removes", inject: deletedMachine(func(n *namespace, machine, _ string) {
			n.annotate("Machine", machine, "pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup", "backup-controller")
		}), object: "Machine fleet-workers-", cause: "pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup", remedy: "owner of the"},
	}
}

// ownRows are faults that the report does not have.
func ownRows() []row {
	return []row{
		{id: "N1", fault: "machine that never boots", inject: func(n *namespace) string {
			n.fleet("LocalMachineTemplate", fmt.Sprintf(`{spec: {template: {metadata: {annotations: {%s: "true"}}}}}`, neverBoots))
			return "Cluster/fleet"
		}, object: "LocalMachine fleet-workers-", cause: neverBoots, remedy: "Remove annotation " + neverBoots},
		{id: "N2", fault: "infrastructure that is never provisioned", inject: func(n *namespace) string {
			n.fleet("LocalCluster", fmt.Sprintf(`{metadata: {annotations: {%s: "true"}}}`, neverProvisions))
			return "Cluster/fleet"
		}, object: "LocalCluster fleet", cause: neverProvisions, remedy: "Remove annotation " + neverProvisions},
		{id: "N3", fault: "Node that is not ready, without a health check", inject: func(n *namespace) string {
			n.fleet(notReady()...)
			return "MachineDeployment/fleet-workers"
		}, object: "Machine fleet-workers-", cause: "Node.Ready", remedy: "Remove annotation " + notReadyAfter},
		{id: "N4", fault: "paused Cluster", inject: func(n *namespace) string {
			n.fleet()
			n.await("Cluster", "fleet", "Available")
			n.patch("Cluster", "fleet", "{spec: {paused: true}}")
			return "MachineDeployment/fleet-workers"
		}, object: "Cluster fleet", cause: "spec.paused", remedy: "kubectl patch cluster fleet"},
		{id: "N5", fault: "paused Machine", inject: func(n *namespace) string {
			n.fleet()
			machine, _ := n.machine()
			n.annotate("Machine", machine, "cluster.x-k8s.io/paused", "")
			return "Machine/" + machine
		}, object: "Machine fleet-workers-", cause: "cluster.x-k8s.io/paused", remedy: "remove annotation cluster.x-k8s.io/paused"},
		{id: "N6", fault: "MachineDeployment whose template does not exist", inject: func(n *namespace) string {
			n.fleet("MachineDeployment", "{spec: {template: {spec: {infrastructureRef: {name: gone}}}}}")
			return "MachineDeployment/fleet-workers"
		}, object: "LocalMachineTemplate gone", cause: "does not exist", remedy: "Create LocalMachineTemplate gone"},
		{id: "N7", fault: "MachineDeployment of a Cluster that does not exist", inject: func(n *namespace) string {
			n.fleet("MachineDeployment", "{spec: {clusterName: nowhere, template: {spec: {clusterName: nowhere}}}}")
			return "MachineDeployment/fleet-workers"
		}, object: "MachineDeployment fleet-workers", cause: "Cluster nowhere", remedy: "Create Cluster nowhere"},
		{id: "N8", fault: "LocalMachine of a running Machine deleted", inject: func(n *namespace) string {
			n.fleet()
			machine, _ := n.machine()
			n.remove("LocalMachine", machine)
			return "Machine/" + machine
		}, object: "Machine fleet-workers-", cause: "LocalMachine", remedy: "delete machine fleet-workers-"},
		{id: "N9", fault: "pre-drain hook that nothing removes", inject: deletedMachine(func(n *namespace, machine, _ string) {
			n.annotate("Machine", machine, "pre-drain.delete.hook.machine.cluster.x-k8s.io/storage", "storage-operator")
		}), object: "Machine fleet-workers-", cause: "pre-drain.delete.hook.machine.cluster.x-k8s.io/storage", remedy: "owner of the"},
		{id: "N10", fault: "ClusterClass that does not exist", inject: func(n *namespace) string {
			n.managed()
			return "Cluster/top"
		}, object: "Cluster top", cause: "/simulated to be created", remedy: "reate ClusterClass simulated"},
		{id: "N11", fault: "kube-scheduler of a control plane Machine crashes", inject: planeFault("pod-down=kube-scheduler"), object: "Machine spire-", cause: "kube-scheduler", remedy: "Read the log of the container"},
		{id: "N12", fault: "Node deleted by hand", inject: func(n *namespace) string {
			n.fleet("LocalMachineTemplate", fmt.Sprintf("{spec: {template: {metadata: {annotations: {%s: 10m}}}}}", notReadyAfter))
			machine, node := n.machine()
			n.deleteNode(n.workload("fleet"), node)
			return "Machine/" + machine
		}, object: "Machine fleet-workers-", cause: "Node fleet-workers-", remedy: "elete the Machine to have it replaced"},
		{id: "N13", fault: "Node that is not ready, with a health check", inject: func(n *namespace) string {
			n.fleet(notReady()...)
			n.healthCheck(600, "{triggerIf: {unhealthyLessThanOrEqualTo: 1}}")
			return "MachineDeployment/fleet-workers"
		}, object: "Machine fleet-workers-", cause: "Node.Ready", remedy: "MachineHealthCheck fleet-workers replaces it in"},
		{id: "N14", fault: "kubeconfig Secret without a kubeconfig", inject: func(n *namespace) string {
			n.external("this is not a kubeconfig")
			return "Cluster/ext"
		}, object: "Cluster ext", cause: "the kubeconfig cannot be read", remedy: "Secret ext-kubeconfig"},
		{id: "N15", fault: "invalid annotation of a simulated machine", inject: func(n *namespace) string {
			n.fleet("LocalMachineTemplate", fmt.Sprintf("{spec: {template: {metadata: {annotations: {%s: soon}}}}}", notReadyAfter))
			return "Cluster/fleet"
		}, object: "LocalMachine fleet-workers-", cause: notReadyAfter, remedy: "nnotation"},
		{id: "N16", fault: "extension that cannot be reached", inject: func(n *namespace) string {
			n.register("https://127.0.0.1:1", hooktest.NewAuthority(n).PEM)
			return "ExtensionConfig/" + n.extensionName()
		}, object: "ExtensionConfig ext-n16", cause: "127.0.0.1:1", remedy: "Start Runtime Extension ext-n16"},
	}
}
