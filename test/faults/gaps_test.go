package faults

// gap is a fault whose explanation is not complete yet.
type gap struct {
	// printed is the part of the explanation that is missing or wrong, and wanted is what it should be.
	printed, wanted string
	// withoutPlans is true if only the explanation without plans is incomplete.
	withoutPlans bool
}

// knownGaps are the rows that are not explained yet. A gap that closes fails the test until it is removed here.
func knownGaps() map[string]gap {
	const (
		retried = "Cluster ext … Remote connection not established yet: CAUSE … no action is needed: The connection is retried when the control plane is initialized"
		probe   = "Cluster ext … RemoteConnectionProbe: Remote connection not established yet; no action is needed"
		waiting = "Cluster top … ControlPlaneAvailable: Waiting for the topology of the Cluster to be reconciled -> Create the object that the message names"
		restart = "ExtensionConfig … -> Start Runtime Extension, or correct spec.clientConfig"
		class   = "-> Correct the ClusterClass or spec.topology of Cluster top as the message says"
		working = "no action is needed: the controller is working on it"
	)
	return map[string]gap{
		"M4":  {printed: retried, wanted: "Replace the expired certificate in Secret ext-kubeconfig"},
		"N14": {printed: retried, wanted: "Correct or replace the kubeconfig in Secret ext-kubeconfig"},
		"X1":  {printed: retried, wanted: "Check that the API server of Cluster ext runs and is reachable, and Secret ext-kubeconfig"},
		"X2":  {printed: retried, wanted: "Correct server in Secret ext-kubeconfig, and check for a proxy or portal in between"},
		"X3":  {printed: retried, wanted: "Correct server in Secret ext-kubeconfig"},
		"A1":  {printed: "ResourcesApplied: ConfigMap logging cannot be read: key agent.yaml; " + working, wanted: "Correct the resources that the message names, so that they can be applied"},
		"H3":  {printed: "MachineHealthCheck fleet-workers is as it should be; Machine fleet-workers-…: MachineHealthCheck should have replaced it 90s ago: check that its controller runs", wanted: "MachineHealthCheck fleet-workers: kind FooRemediationTemplate is not installed -> Install the provider"},
		"M9":  {printed: "CRD … has no label … -> Create the object that the message names, or correct the reference to it", wanted: "Set the label of the CustomResourceDefinition; without plans the cause itself is missing"},
		"M10": {printed: "no right to list and watch kind BazCluster -> Restore the ClusterRole and ClusterRoleBinding of the user that the message names", wanted: "Grant the manager the rights with a ClusterRole that has label cluster.x-k8s.io/aggregate-to-manager=true"},
		"P1":  {printed: "MachinesReady: Waiting for Nodes with the provider IDs …; " + working, wanted: "Correct spec.providerIDList of FooMachinePool mp: no Node has the IDs, after the time that a Node needs to appear"},
		"C3":  {printed: "Machine spire-… The etcd member does not answer -> Delete the Machine of the etcd member", wanted: "KubeadmControlPlane spire: Etcd has lost its quorum -> slipway recover controlplane spire; to delete a Machine is wrong"},
		"T3":  {printed: "KubeadmConfigTemplate simulated-worker … does not exist: create it " + class, wanted: "Create the template that the message names, or correct the reference in the ClusterClass"},
		"T5":  {printed: waiting, wanted: "TopologyReconciled: Hook BeforeClusterCreate … CHG-4711 -> The extension is called again; its owner decides"},
		"N10": {printed: waiting, wanted: "TopologyReconciled: ClusterClass simulated does not exist -> Create it, or correct spec.topology.classRef"},
		"T6":  {printed: restart, wanted: "Correct Runtime Extension ext-t6: its response does not follow the Runtime SDK"},
		"T7":  {printed: restart, wanted: "Make the extension faster, or raise timeoutSeconds of its handler (ExtensionConfig ext-t7)"},
		"T9":  {printed: "Extension gp.ext-t9 of patch site: … does not apply " + class, wanted: "Correct Runtime Extension ext-t9: its patch does not apply"},

		"M8": {withoutPlans: true, printed: probe, wanted: "InfrastructureReady: kind GoneCluster … is not installed -> Install the provider"},
		"F2": {withoutPlans: true, printed: "FooCluster ext: Its provider has not reported status.initialization.provisioned yet; no action is needed", wanted: "Cluster ext: want bool, have string -> Report it to the provider"},
		"P2": {withoutPlans: true, printed: "MachinesReady: FooMachinePool mp lists provider IDs more than once; " + working, wanted: "Correct spec.providerIDList of FooMachinePool mp"},
		"P3": {withoutPlans: true, printed: "MachinesReady: 0 of 2 Nodes are ready; " + working, wanted: "FooMachinePool mp reports what its contract does not allow -> Report it to the provider"},
		"W4": {withoutPlans: true, printed: "Version v1.37.0 … is newer than … -> Set the version to one that is not far behind that of the control plane", wanted: "Upgrade the control plane first, or set a version that is not newer"},
		"N6": {withoutPlans: true, printed: "Available: … LocalMachineTemplate gone does not exist; " + working, wanted: "Create the template that the message names, or correct the reference to it"},
		"N7": {withoutPlans: true, printed: "Available: … Cluster nowhere does not exist: create it, or delete MachineDeployment fleet-workers; " + working, wanted: "Create Cluster nowhere, or correct spec.clusterName"},
	}
}
