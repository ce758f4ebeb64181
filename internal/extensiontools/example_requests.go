package extensiontools

// request is the YAML of one hook's request.
type request struct{ hook, yaml string }

// requests returns the example requests ([GetExample]) in the order of a cluster's lifecycle. Each hook that the
// manager calls has one. They must be valid requests of the newest version of the hook, which tests check.
func requests() []request {
	upgrade := exampleCluster + "fromKubernetesVersion: v1.34.2\ntoKubernetesVersion: v1.36.3\n" + exampleUpgradeSteps
	step := exampleCluster + "fromKubernetesVersion: v1.34.2\ntoKubernetesVersion: v1.35.1\n" + exampleUpgradeSteps
	stepDone := exampleCluster + "kubernetesVersion: v1.35.1\ncontrolPlaneUpgrades:\n- version: v1.36.3\nworkersUpgrades:\n- version: v1.36.3\n"
	return []request{
		{"Discovery", ""},
		{"DiscoverVariables", "settings: {}\n"},
		{"BeforeClusterCreate", exampleCluster},
		{"GeneratePatches", exampleVariables + "items:\n- uid: workers\n" + indent(exampleTemplateItem)},
		{"ValidateTopology", exampleVariables + "items:\n- " + indent(exampleTemplateItem)[2:]},
		{"AfterControlPlaneInitialized", exampleCluster},
		{"GenerateUpgradePlan", exampleCluster + "fromControlPlaneKubernetesVersion: v1.34.2\nfromWorkersKubernetesVersion: v1.34.2\ntoKubernetesVersion: v1.36.3\n"},
		{"BeforeClusterUpgrade", upgrade},
		{"BeforeControlPlaneUpgrade", step},
		{"AfterControlPlaneUpgrade", stepDone},
		{"BeforeWorkersUpgrade", exampleCluster + "fromKubernetesVersion: v1.34.2\ntoKubernetesVersion: v1.36.3\nworkersUpgrades:\n- version: v1.36.3\n"},
		{"AfterWorkersUpgrade", exampleCluster + "kubernetesVersion: v1.36.3\n"},
		{"AfterClusterUpgrade", exampleCluster + "kubernetesVersion: v1.36.3\n"},
		{"CanUpdateMachineSet", "current:\n" + indent(machineSet("v1.35.1", "110")) + "desired:\n" + indent(machineSet("v1.36.3", "250"))},
		{"CanUpdateMachine", "current:\n" + indent(machine("v1.35.1", "110")) + "desired:\n" + indent(machine("v1.36.3", "250"))},
		{"UpdateMachine", "desired:\n" + indent(machine("v1.36.3", "250"))},
		{"BeforeClusterDelete", exampleCluster},
	}
}

const exampleUpgradeSteps = `controlPlaneUpgrades:
- version: v1.35.1
- version: v1.36.3
workersUpgrades:
- version: v1.36.3
`

const exampleCluster = `cluster:
  apiVersion: cluster.x-k8s.io/v1beta2
  kind: Cluster
  metadata:
    name: demo
    namespace: default
    uid: 5f1c7ab2-6a0f-4f5d-9d64-0e7c3c1d2a10
    labels:
      example.com/owner: team-a
  spec:
    clusterNetwork:
      pods: {cidrBlocks: [10.244.0.0/16]}
      services: {cidrBlocks: [10.96.0.0/12]}
    topology:
      classRef: {name: quickstart}
      version: v1.36.3
      controlPlane: {replicas: 3}
      workers:
        machineDeployments:
        - {name: workers, class: default-worker, replicas: 2}
      variables:
      - name: image
        value: registry.example.com/node:v2
`

const exampleVariables = `variables:
- name: image
  value: registry.example.com/node:v2
- name: builtin
  value:
    cluster:
      name: demo
      namespace: default
      topology: {version: v1.36.3, class: quickstart, classNamespace: default, classRef: {name: quickstart, namespace: default}}
`

const exampleTemplateItem = `holderReference:
  apiVersion: cluster.x-k8s.io/v1beta2
  kind: MachineDeployment
  namespace: default
  name: demo-workers
  fieldPath: spec.template.spec.infrastructureRef
object:
  apiVersion: infrastructure.slipway.dev/v1alpha1
  kind: LocalMachineTemplate
  metadata: {name: workers, namespace: default}
  spec: {template: {spec: {backend: {container: {image: "registry.example.com/node:v1"}}}}}
variables:
- name: builtin
  value:
    machineDeployment: {name: demo-workers, topologyName: workers, class: default-worker, version: v1.36.3, replicas: 2}
`

func machine(version, pods string) string {
	return `machine:
  apiVersion: cluster.x-k8s.io/v1beta2
  kind: Machine
  metadata: {name: demo-workers-x2c9f, namespace: default}
  spec:
    clusterName: demo
    version: ` + version + `
    bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: demo-workers-x2c9f}}
    infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachine, name: demo-workers-x2c9f}
infrastructureMachine:
  apiVersion: infrastructure.slipway.dev/v1alpha1
  kind: LocalMachine
  metadata: {name: demo-workers-x2c9f, namespace: default}
  spec: {backend: {container: {image: "registry.example.com/node:v1"}}}
bootstrapConfig:
  apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
  kind: KubeadmConfig
  metadata: {name: demo-workers-x2c9f, namespace: default}
  spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: "` + pods + `"}]}}}
`
}

func machineSet(version, pods string) string {
	return `machineSet:
  apiVersion: cluster.x-k8s.io/v1beta2
  kind: MachineSet
  metadata: {name: demo-workers-x2c9f, namespace: default}
  spec:
    clusterName: demo
    replicas: 2
    selector: {matchLabels: {example.com/set: demo-workers-x2c9f}}
    template:
      metadata: {labels: {example.com/set: demo-workers-x2c9f}}
      spec:
        clusterName: demo
        version: ` + version + `
        bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: demo-workers}}
        infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: demo-workers}
infrastructureMachineTemplate:
  apiVersion: infrastructure.slipway.dev/v1alpha1
  kind: LocalMachineTemplate
  metadata: {name: demo-workers, namespace: default}
  spec: {template: {spec: {backend: {container: {image: "registry.example.com/node:v1"}}}}}
bootstrapConfigTemplate:
  apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
  kind: KubeadmConfigTemplate
  metadata: {name: demo-workers, namespace: default}
  spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: "` + pods + `"}]}}}}}
`
}
