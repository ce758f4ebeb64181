package mirrortest

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Now is the time of the objects of [Cluster].
func Now() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func at(ago time.Duration) string { return Now().Add(-ago).Format(time.RFC3339) }

const healthyCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {namespace: NS, name: NAME, generation: 1, creationTimestamp: "CREATED", finalizers: [cluster.cluster.x-k8s.io], labels: {team: a, cluster.x-k8s.io/cluster-name: NAME}}
spec:
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: NAME}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: NAME}
  topology: {classRef: {name: local}, version: v1.36.0}
status:
  phase: Provisioned
  observedGeneration: 1
  initialization: {infrastructureProvisioned: true, controlPlaneInitialized: true}
  controlPlane: {desiredReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, versions: [{version: v1.36.0, replicas: 1}]}
  workers: {desiredReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, versions: [{version: v1.36.0, replicas: 1}]}
  conditions:
  - {type: Available, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}
  - {type: InfrastructureReady, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}
  - {type: ControlPlaneInitialized, status: "True", reason: Initialized, message: "", lastTransitionTime: "READY"}
  - {type: ControlPlaneAvailable, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}
  - {type: WorkersAvailable, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}
  - {type: RemoteConnectionProbe, status: "True", reason: ProbeSucceeded, message: "", lastTransitionTime: "READY"}
  - {type: TopologyReconciled, status: "True", reason: ReconcileSucceeded, message: "", lastTransitionTime: "READY"}
  - {type: Paused, status: "False", reason: NotPaused, message: "", lastTransitionTime: "READY"}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {namespace: NS, name: NAME, creationTimestamp: "CREATED", finalizers: [slipway.dev/localcluster], labels: {cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: NAME, uid: c}]}
spec: {}
status: {initialization: {provisioned: true}, conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}]}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {namespace: NS, name: NAME, creationTimestamp: "CREATED", finalizers: [kubeadm.controlplane.cluster.x-k8s.io], labels: {cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: NAME, uid: c}]}
spec: {replicas: 1, version: v1.36.0}
status: {replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, version: v1.36.0, initialization: {controlPlaneInitialized: true}, conditions: [{type: Available, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}]}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {namespace: NS, name: NAME-md, creationTimestamp: "CREATED", finalizers: [cluster.x-k8s.io/machinedeployment], labels: {cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: NAME, uid: c}]}
spec: {clusterName: NAME, replicas: 1, selector: {}, template: {spec: {clusterName: NAME, version: v1.36.0, bootstrap: {}, infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: NAME}}}}
status: {replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, conditions: [{type: Available, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}]}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {namespace: NS, name: NAME-md-a, creationTimestamp: "CREATED", finalizers: [cluster.x-k8s.io/machineset], labels: {cluster.x-k8s.io/cluster-name: NAME, cluster.x-k8s.io/deployment-name: NAME-md}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineDeployment, name: NAME-md, uid: d, controller: true}]}
spec: {clusterName: NAME, replicas: 1, selector: {}, template: {spec: {clusterName: NAME, version: v1.36.0, bootstrap: {}, infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: NAME}}}}
status: {replicas: 1, readyReplicas: 1, availableReplicas: 1, upToDateReplicas: 1, conditions: [{type: MachinesReady, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}]}
`

const healthyMachine = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {namespace: NS, name: MACHINE, creationTimestamp: "CREATED", finalizers: [machine.cluster.x-k8s.io], labels: {LABEL, cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: OWNERVERSION, kind: OWNER, name: OWNERNAME, uid: o, controller: true}]}
spec:
  clusterName: NAME
  version: v1.36.0
  providerID: local://MACHINE
  bootstrap: {dataSecretName: MACHINE, configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: MACHINE}}
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachine, name: MACHINE}
status:
  phase: Running
  nodeRef: {name: MACHINE-node}
  nodeInfo: {kubeletVersion: v1.36.0, osImage: Debian 12, kernelVersion: "6.1", containerRuntimeVersion: containerd://2.1, machineID: "", systemUUID: "", bootID: "", kubeProxyVersion: "", operatingSystem: linux, architecture: amd64}
  addresses: [{type: InternalIP, address: 172.30.0.5}]
  conditions:
  - {type: Available, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}
  - {type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}
  - {type: UpToDate, status: "True", reason: UpToDate, message: "", lastTransitionTime: "READY"}
  - {type: NodeReady, status: "True", reason: NodeReady, message: "", lastTransitionTime: "READY"}
  - {type: NodeHealthy, status: "True", reason: NodeHealthy, message: "", lastTransitionTime: "READY"}
  - {type: InfrastructureReady, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}
  - {type: BootstrapConfigReady, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachine
metadata: {namespace: NS, name: MACHINE, creationTimestamp: "CREATED", finalizers: [slipway.dev/localmachine], labels: {cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: MACHINE, uid: m, controller: true}]}
spec: {providerID: local://MACHINE}
status: {initialization: {provisioned: true}, conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}]}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata: {namespace: NS, name: MACHINE, creationTimestamp: "CREATED", labels: {cluster.x-k8s.io/cluster-name: NAME}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: MACHINE, uid: m, controller: true}]}
spec: {}
status: {initialization: {dataSecretCreated: true}, dataSecretName: MACHINE, conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "READY"}, {type: DataSecretAvailable, status: "True", reason: Available, message: "", lastTransitionTime: "READY"}]}
`

// Cluster returns the YAML of the objects of a healthy cluster with two Machines, NAME-cp and NAME-md-a-1.
func Cluster(namespace, name string) string {
	replace := func(text string, pairs ...string) string {
		pairs = append(pairs, "CREATED", at(48*time.Hour), "READY", at(47*time.Hour), "NS", namespace, "NAME", name)
		return strings.NewReplacer(pairs...).Replace(text)
	}
	return replace(healthyCluster) + "\n---\n" +
		replace(healthyMachine, "MACHINE", name+"-cp", "LABEL", `cluster.x-k8s.io/control-plane: ""`, "OWNERVERSION", "controlplane.cluster.x-k8s.io/v1beta2", "OWNERNAME", name, "OWNER", "KubeadmControlPlane") + "\n---\n" +
		replace(healthyMachine, "MACHINE", name+"-md-a-1", "LABEL", "cluster.x-k8s.io/set-name: "+name+"-md-a", "OWNERVERSION", "cluster.x-k8s.io/v1beta2", "OWNERNAME", name+"-md-a", "OWNER", "MachineSet")
}

// Objects parses the YAML documents of [Cluster].
func Objects(text string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			panic(fmt.Sprintf("%v in:\n%s", err, doc))
		}
		out = append(out, u)
	}
	return out
}

// Broken returns the YAML of the worker's LocalMachine of the cluster NAME with a failed condition since five minutes, and of
// its Machine, which is not ready.
func Broken(namespace, name, message string) string {
	text := Cluster(namespace, name)
	var out []string
	for _, doc := range strings.Split(text, "\n---\n") {
		switch {
		case strings.Contains(doc, "kind: LocalMachine\nmetadata: {namespace: "+namespace+", name: "+name+"-md-a-1"):
			doc = strings.Replace(doc, `{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "`+at(47*time.Hour)+`"}`,
				fmt.Sprintf(`{type: Ready, status: "False", reason: MachineNotOwned, message: %q, lastTransitionTime: %q}`, message, at(5*time.Minute)), 1)
		case strings.Contains(doc, "kind: Machine\nmetadata: {namespace: "+namespace+", name: "+name+"-md-a-1"):
			for _, t := range []string{"Ready", "Available", "InfrastructureReady"} {
				doc = strings.NewReplacer(fmt.Sprintf(`{type: %s, status: "True"`, t), fmt.Sprintf(`{type: %s, status: "False"`, t)).Replace(doc)
			}
			doc = strings.Replace(doc, `{type: InfrastructureReady, status: "False", reason: Ready, message: ""`, fmt.Sprintf(`{type: InfrastructureReady, status: "False", reason: NotReady, message: %q`, message), 1)
			doc = strings.ReplaceAll(doc, at(47*time.Hour), at(5*time.Minute))
		case strings.Contains(doc, "kind: Cluster\n"):
			doc = strings.Replace(doc, "workers: {desiredReplicas: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1", "workers: {desiredReplicas: 1, replicas: 1, readyReplicas: 0, availableReplicas: 0", 1)
			doc = strings.Replace(doc, `{type: WorkersAvailable, status: "True", reason: Available, message: ""`, fmt.Sprintf(`{type: WorkersAvailable, status: "False", reason: NotAvailable, message: "* MachineDeployment %s-md: 0 available replicas"`, name), 1)
		default:
			continue
		}
		out = append(out, doc)
	}
	return strings.Join(out, "\n---\n")
}
