package rootcause

const (
	editText = "slipway kubectl edit {resource} {name} -n {namespace}"
	// workloadKubeconfig creates a kubeconfig for a user who has to change objects of the workload cluster.
	workloadKubeconfig = "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig"
	// editOwner edits the object that determines the specification of an object, which is the object itself if no other does.
	editOwner = "slipway kubectl edit {ownerkind} {ownername} -n {namespace}"
	// patchVersion sets the version of the workers to the one of their control plane.
	patchVersion = `slipway kubectl patch {ownerkind} {ownername} -n {namespace} --type merge -p '{"spec":{"template":{"spec":{"version":"{skewversion}"}}}}'`
	bugText      = "Report this error to the Slipway project: it is a bug"
)

// commonRemedies returns the remedies of reasons that many kinds share. [reasonTable] indexes them.
func commonRemedies() []group {
	return []group{
		unspecific(auto(progressText,
			"Bootstrapping", "NotApplied", "NotAvailable", "NotHealthy", "NotInitialized", "NotProvisioned",
			"NotReady", "NotSet", "NotUpToDate", "ReadyUnknown", "AvailableUnknown", "UpToDateUnknown", "HealthUnknown")),
		unspecific(overdue("Correct the error that the message names; the log of the controller of {kind} has more", describeText,
			auto("The controller of {kind} retries; if the error stays, correct what the message names", "Failed", "InspectionFailed", "InternalError", "NotReadable"))),
		auto(progressText,
			"ClusterCreating", "ClusterUpgrading", "Deleting", "Provisioning", "Restoring", "RollingOut", "RollingOutUnknown", "RollingUpdateInProgress", "ScalingDown",
			"ScalingDownUnknown", "ScalingUp", "ScalingUpUnknown", "Starting", "Updating", "Upgrading", "Waiting"),
		auto("The controller of {kind} retries; no action is needed",
			"AnswersTakeTooMuchMemory", "BindingExists", "Busy", "CacheNotFilled", "CreatedMeanwhile", "Crowded", "Overloaded", "ReconcileError", "Refused", "StaleCache",
			"StaleObject", "Timeout", "WaitingForCache"),
		user("Remove annotation cluster.x-k8s.io/paused, or set spec.paused of the Cluster to false", "slipway kubectl annotate {resource} {name} -n {namespace} cluster.x-k8s.io/paused-", "Paused"),
		user("Correct the object that the message names", editText,
			"ClusterMatchFailed", "ClusterSelectorInvalid", "IncorrectExternalRef", "Invalid", "InvalidApply", "InvalidConfiguration", "InvalidInput", "InvalidNamingTemplate",
			"InvalidSelector", "InvalidSpec", "InvalidStrategy", "InvalidVersion", "NameTemplateInvalid", "RequestInvalid", "SnapshotRequestRefused", "ReplicasNotAllowed", "TooManyReplicas"),
		user("Create the object that the message names, or correct the reference to it", editText,
			"DoesNotExist", "NotFound", "ObjectDoesNotExist", "ReferenceUnreadable", "RetrievingResourceFailed", "SecretMissing"),
		user("Restore the object that the message names from a backup; an object of a Machine is replaced with the Machine if you delete that", deleteMachine,
			"Deleted", "ObjectDeleted"),
		user("Rename or delete the object that the message names: it has another owner", "slipway kubectl get {resource} -n {namespace}", "AlreadyExists", "NameTaken", "NotOwned"),
		user("Remove label cluster.x-k8s.io/watch-filter from the object that the message names, or set it to the value of this manager", describeText,
			"OfAnotherManager", "WaitingForWatchLabel"),
		user("Delete or correct the object that makes the manager crash, then restart the manager", describeText, "SetAside"),
		user("Grant the user the verb connect on Cluster {cluster}", "slipway kubectl get rolebindings -n {namespace}", "ConnectForbidden"),
		user("Create the ClusterRole that the message names in the workload cluster", "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig", "ClusterRoleNotFound"),
		user("Install the provider of the kind that the message names, or correct the kind", "slipway init --help", "KindNotInstalled", "NoSuchKind", "NotSupported"),
		user("Set the label of the CustomResourceDefinition that the message names to a served version", "slipway kubectl get crds -l cluster.x-k8s.io/provider", "CRDNamedWrongly", "NoContract", "VersionNotServed"),
		user("Grant the manager the rights that the message names with a ClusterRole that has label cluster.x-k8s.io/aggregate-to-manager=true", "slipway kubectl get clusterroles -l cluster.x-k8s.io/aggregate-to-manager=true", "Forbidden"),
		user("Report it to the provider of the kind that the message names: its object does not follow the contract", describeText, "InvalidConditionReported", "NotATemplate", "ValuesRefused"),
		user("Install or start the controller of kind {kind} (group {group})", "slipway kubectl get pods --all-namespaces -l cluster.x-k8s.io/provider", reasonNoController),
		user("Correct the error that the message names; the deletion is retried", describeText, "DeletionFailed"),
		user("Have the owner of the finalizer remove it", editText, "ForeignFinalizer"),
		user("Change the object, or ask the operator of the management cluster to allow it", describeText, "DeniedByPolicy"),
		user(bugText, "slipway version",
			"HookMismatch", "InvalidClusterConfiguration", "InvalidIgnition", "InvalidInitConfiguration", "InvalidJoinConfiguration", "InvalidKubeadmConfig",
			"InvalidKubeconfig", "InvalidLock", "InvalidMachine", "InvalidObject", "InvalidPatch", "InvalidStatus", "NotGenerated", "Panic", "PatchFailed", "Undecided",
			"UnknownAction", "UnknownHook", "UnknownKind", "UnknownQuestion", "EtcdConfigIncomplete"),
		user("Create Cluster {cluster}, or correct spec.clusterName", "slipway kubectl get clusters -n {namespace}", "ClusterNotFound", "WaitingForCluster"),
		user("Set spec.replicas", editText, "WaitingForReplicasSet"),
		user("Register a Runtime Extension for the hook, or remove what requires it", "slipway kubectl get extensionconfigs", "NoInPlaceExtension"),
		endless(auto("The controller applies the resources when the Clusters that the message names are initialized and connected", "ClustersNotReady")),
		user("Correct the type of Secret {secret}: delete it and create it with type addons.cluster.x-k8s.io/resource-set", "slipway kubectl delete secret {secret} -n {namespace}", "WrongSecretType"),
		user("Correct the resources that the message names, so that they can be applied", "slipway kubectl get clusterresourcesets -n {namespace}", "ApplyFailed"),
		user("Add addresses to the pool, or delete claims that are not needed", "slipway kubectl get ipaddressclaims -n {namespace}", "AllocationFailed", "PoolExhausted"),
		auto("The address is allocated when the pool is ready", "PoolNotReady"),
	}
}
