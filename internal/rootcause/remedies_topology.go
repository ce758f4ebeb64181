package rootcause

// topologyRemedies returns the rows of [reasonTable] for ClusterClasses, managed topologies and Runtime Extensions. The
// texts and commands may be changed freely; {name} and the other placeholders are those of [remedyOf]. Each reason must
// exist in the code and be in one row only, which a test checks.
func topologyRemedies() []group {
	const editClass = "slipway kubectl edit clusterclass {clusterclass} -n {namespace}"
	const extension = "slipway kubectl describe extensionconfig {extension}"
	return []group{
		endless(auto("The topology continues when the object that the message names is ready",
			"ControlPlaneUpgradePending", "MachineDeploymentsCreatePending", "MachineDeploymentsUpgradePending", "MachinePoolsCreatePending",
			"MachinePoolsUpgradePending", "StillDeleting", "TemplateInUse", "TemplateReplaced", "ClusterClassNotReconciled")),
		endless(auto("The extension is called again; its owner decides when it allows the change", "HookBlocking", "LifecycleHookBlocking", "WaitingForBeforeDeleteHook")),
		user("Remove annotation topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence from the objects that the message names", "slipway kubectl get machinedeployments,machinepools -n {namespace}",
			"MachineDeploymentsUpgradeDeferred", "MachinePoolsUpgradeDeferred"),
		user("Correct the ClusterClass or spec.topology of Cluster {cluster} as the message says", "slipway kubectl edit cluster {cluster} -n {namespace}",
			"KindChanged", "ReconcileFailed", "TopologyReconcileFailed", "UpgradePlanInvalid", "WorkerClassMissing"),
		user("Correct spec.topology.variables of Cluster {cluster}", "slipway kubectl edit cluster {cluster} -n {namespace}", "VariableMissing", "VariablesInvalid"),
		user("Correct ClusterClass {clusterclass} or the template that the message names", editClass, "ControlPlaneTemplateInvalid", "PatchInvalid", "RefVersionsNotUpToDate", "OutdatedRefVersions", "VariableDiscoveryFailed"),
		user("Create the template that the message names, or correct the reference in the ClusterClass", editClass, "TemplateMissing"),
		user("Start Runtime Extension {extension}, or correct spec.clientConfig of ExtensionConfig {extension}", extension,
			"AnsweredFailure", "CertificateExpired", "CertificateInvalid", "CertificateUnknownAuthority", "CertificateWrongHost", "CircuitOpen", "ClientCertificateRefused", "ConnectionLost", "HostUnknown", "NoConnection", "TLSFailed", "TransportFailed", "ConnectionRefused", "DiscoveryFailed", "NotDiscovered", "NotRegistered"),
		user("Correct Runtime Extension {extension}: its response does not follow the Runtime SDK", extension,
			"AnswerNotJSON", "AnswerTooLarge", "DeprecatedHooks", "ExtensionAnswerInvalid", "InvalidAnswer", "InvalidDiscovery", "Redirect", "WrongKind"),
		user("Correct ExtensionConfig {extension}", "slipway kubectl edit extensionconfig {extension}",
			"InvalidCABundle", "InvalidNamespaceSelector", "InvalidURL", "ManyInPlaceExtensions", "NamespaceMismatch", "NoEndpoint"),
		user("Correct the files of the client certificate that the message names", describeText, "ClientCertificate"),
		user("Turn on feature gate RuntimeSDK, or remove the external patch from the ClusterClass", editClass, "RuntimeSDKDisabled"),
		endless(auto("Extensions are called only with --call-extensions", "ExtensionNotCalled")),
	}
}

// localRemedies returns the remedies of machines and control planes on this host. [reasonTable] indexes them.
func localRemedies() []group {
	return []group{
		user("Remove the machine on the host that the message names: it belongs to another object", "docker ps --all", "MachineNotOwned"),
		auto(progressText, "Booting", "CreatingMachine", "CreatingNetwork", "DeletingMachine", "StartingLoadBalancer", "DeletingLoadBalancer", "DeletingNetwork", "DockerConflict", "ImagesNotLoaded", "MachineAbsent", "NetworkAbsent"),
		user("End the program that uses the address, or create the cluster with another endpoint", "ss -ltnp", "AddressNotFree", "ListenAddress", "NoPortFree", "PortTaken"),
		user("Correct spec.backend: choose a backend that this process offers", editText, "BackendNotOffered"),
		user("Start Docker, and let the user of Slipway use it; work continues when it responds", "systemctl start docker", "DockerUnreachable"),
		user("Correct the setting that Docker refuses, as the message says", describeText, "DockerRefused"),
		overdue("Correct the error of Docker that the message names; the log of Docker has more", "journalctl --unit docker", auto("The request to Docker is repeated; no action is needed", "DockerError")),
		user("Build the node image, or set an image that exists in spec.backend.container.image", "slipway image list", "ImageAbsent", "NodeImageUnknown", "NotANodeImage"),
		user("Delete machines, or ask the operator to raise the limit of this host", "slipway status", "HostLimit", "MaximumReached"),
		user("Start the machine that the message names, or delete Machine {machine} to have it replaced", deleteMachine, "MachineNotRunning", "MachineStopped"),
		user("Delete Machine {machine} to have it replaced", deleteMachine, "MachineRemoved"),
		user("Delete machines that are not needed, or use a second cluster: all addresses of the network are in use", "slipway kubectl get machines -n {namespace}", "NoAddressLeft"),
		user("Use a format of bootstrap data that the message names, in {bootstrap}", "slipway kubectl get {bootstrapresource} -n {namespace}", "UnsupportedBootstrapFormat"),
		user("Correct kubeletExtraArgs in {bootstrap}; new Machines get the correction", "slipway logs node {machine} -n {namespace} --unit kubelet", "KubeletFails"),
		user("Start the kubelet with the command that the message names, or delete Machine {machine} to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}", "KubeletStopped"),
		user("Read the log of the bootstrap and correct the bootstrap configuration; then delete Machine {machine}", "slipway logs node {machine} -n {namespace}",
			"BootstrapFailed", "BootstrapInterrupted"),
		user("Remove what the message names from the bootstrap configuration, or use a node image that supports it", describeText, "BootstrapDataLeftOut"),
		user("Remove the link or correct the path that the message names", describeText, "MountRefused", "SocketFolderNotPrivate"),
		user("Create the cluster with other address ranges", editText, "NetworkDiffers", "NetworkNotKnown", "RangesOutside", "RangesOverlap", "SubnetTaken"),
		user("Stop the containers that are connected to the network", "docker network ls", "NetworkInUse"),
		user("Start the load balancer that the message names; it is started again without a command if Docker responds", "docker ps --all", "LoadBalancerStopped", "LoadBalancerConfig"),
		user("Create a LocalMachineTemplate with spec.template.spec.backend.simulated, and refer to it in {owner}", editOwner, "SimulatedNetwork"),
		user("Remove the annotation that simulates the fault", editText, "NeverBoots", "NeverProvisions"),
		user("Free space on the disk that the message names", "df -h", "DiskFull"),
		user("Choose another --data-dir, or use the version of Slipway that the message names", "slipway status",
			"CustodyRecord", "DataDirectoryForeign", "DataDirectoryHeld", "DataDirectoryNewer", "DataDirectoryTooOld", "DataDirectoryUnusable", "NoTransferRecords"),
		user("Start the command with \"slipway up\"", "slipway up", "NotStartedByUp"),
	}
}

// snapshotRemedies returns the remedies of snapshots and restores. [reasonTable] indexes them.
func snapshotRemedies() []group {
	return []group{
		auto(progressText, "FetchingSnapshot", "SnapshotUnderWay", "StagingSnapshot", "WaitingForOtherSnapshot", "SnapshotNotStaged", "SnapshotNotFetched"),
		user("Correct EtcdSnapshotPolicy {policy} or the Secret of its store", "slipway kubectl describe etcdsnapshotpolicy {policy} -n {namespace}",
			"RecipientInvalid", "ScheduleInvalid", "SnapshotStoreRefused", "SnapshotStoreTooLarge", "SnapshotStoreUnreachable"),
		user("Give the store more space, or keep fewer snapshots", "slipway kubectl edit etcdsnapshotpolicy {policy} -n {namespace}", "SnapshotStoreFull", "SnapshotTooLarge"),
		user("Correct the cause in the message; the snapshot is retried", "slipway kubectl describe etcdsnapshotpolicy {policy} -n {namespace}", "SnapshotFailed", "SnapshotsMissing"),
		user("Restore another snapshot", "slipway restore --help",
			"RestoreFailed", "RestoreMissing", "SnapshotDamaged", "SnapshotEncryptionKeys", "SnapshotMissing", "SnapshotName", "SnapshotVersion"),
		user("Restore another snapshot, or allow the one of the other Cluster as the message says", "slipway restore --help", "SnapshotOfOtherCluster"),
		user("Store the age identity that decrypts the snapshot in the Secret that the restore names, or restore another snapshot", "slipway restore --help", "SnapshotIdentityMissing"),
		user("Remove the request for a restore: the control plane has no snapshots of etcd that Slipway can restore, as the message says", describeText, "RestoreImpossible"),
		user("Name an existing EtcdSnapshotPolicy in the request", "slipway kubectl get etcdsnapshotpolicies -n {namespace}", "SnapshotPolicyMissing"),
	}
}
