package rootcause

import (
	"regexp"
	"time"
)

// phrases has the remedies for texts of other programs that messages quote, the most specific first.
var phrases = []phrase{
	instruct(`(?i)lost its quorum`, "Start the machines of the lost etcd members; if they are gone for good, rebuild the control plane from the remaining member", "slipway recover controlplane {cluster} -n {namespace}"),
	instruct(`(?i)\bNOSPACE\b`, "Delete objects that are not needed, compact and defragment etcd, then disarm the alarm", "slipway kubectl get events --all-namespaces"),
	instruct(`(?i)\balarms? CORRUPT\b`, "Replace the Machine of the etcd member with the corrupt database", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)no space left on device|disk of .* is full`, "Free space on the disk that the message names", "df -h"),
	instruct(`(?i)exceeded quota`, "Raise the ResourceQuota that the message names, or reduce spec.replicas", "kubectl get resourcequota -n {namespace}"),
	instruct(`(?i)disk pressure|KubeletHasDiskPressure`, "Free space on the disk of Node {node}, or delete its Machine to have it replaced", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)memory pressure|KubeletHasInsufficientMemory`, "Reduce the memory that Pods use on Node {node}, or use machines with more memory", "kubectl get machine {machine} -n {namespace} -o wide"),
	instruct(`(?i)PID pressure|KubeletHasInsufficientPID`, "End processes on Node {node}, or delete its Machine to have it replaced", "kubectl delete machine {machine} -n {namespace}"),
	slow(2*time.Minute, instruct(`(?i)network plugin|cni (plugin|config)|NetworkPluginNotReady|NetworkReady=false`, "Install a network add-on in Cluster {cluster}, or check that its Pods run on Node {node}", "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig")),
	instruct(`(?i)stopped posting node status|NodeStatusUnknown`, "Start the kubelet on Node {node}, or delete its Machine to have it replaced", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)failed to parse kubelet flag|unknown flag: --`, "Correct kubeletExtraArgs in the KubeadmConfigTemplate of Cluster {cluster}; new Machines get the correction", "kubectl get kubeadmconfigtemplates -n {namespace}"),
	instruct(`(?i)cannot be evicted|disruption budget`, "Raise the replicas of the workload or relax its PodDisruptionBudget; spec.deletion.nodeDrainTimeoutSeconds of the Machine limits the wait", "kubectl get machine {machine} -n {namespace} -o jsonpath='{.spec.deletion}'"),
	slow(5*time.Minute, instruct(`(?i)VolumeAttachment|volumes to be detached`, "Check the CSI driver that has to detach the volumes of Node {node}; spec.deletion.nodeVolumeDetachTimeoutSeconds of the Machine limits the wait, annotation machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach ends it", "kubectl annotate machine {machine} -n {namespace} machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach=")),
	instruct(`its finalizers? [^ ]+ (is|are) not removed|Waiting for Node .*blocked by finalizers`, "The owner of the finalizer on Node {node} has to remove it; spec.deletion.nodeDeletionTimeoutSeconds of the Machine limits the wait", "kubectl get machine {machine} -n {namespace} -o jsonpath='{.spec.deletion}'"),
	instruct(`(?i)blocked by finalizers`, "The owners of the finalizers that the message names have to remove them. If an owner was uninstalled, clean up in its place, then remove its finalizer", describeText),
	instruct(`annotations? pre-(drain|terminate)\.delete\.hook`, "The owner of the annotation that the message names has to finish and remove it", "kubectl get machine {machine} -n {namespace} -o jsonpath='{.metadata.annotations}'"),
	instruct(`(?i)public keys? .* (are )?pinned|caCertHashes`, "Correct discovery.bootstrapToken.caCertHashes in the KubeadmConfigTemplate of Cluster {cluster}, then delete Machine {machine}", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)runcmd ended with code|preKubeadmCommands|postKubeadmCommands`, "Correct the command that the message names in the KubeadmConfigTemplate of Cluster {cluster}; new Machines get the correction. Then delete Machine {machine}", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`ended after \d+ seconds|bootstrapTimeoutSeconds`, "Raise spec.backend.container.bootstrapTimeoutSeconds in the LocalMachineTemplate, or shorten the bootstrap commands", "kubectl get localmachinetemplates -n {namespace}"),
	instruct(`(?i)cloud-config .*(valid|yaml|line \d)`, "Correct the cloud-config in the Secret with the bootstrap data, then delete Machine {machine}", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`bootstrap-success\.complete`, "Let the last command of the bootstrap data create /run/cluster-api/bootstrap-success.complete, then delete Machine {machine}", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)kube-apiserver.*(CrashLoopBackOff|exit|crash)|apiServer\.extraArgs`, "Correct the flags of the kube-apiserver in spec.kubeadmConfigSpec.clusterConfiguration.apiServer of the control plane", "slipway logs node {machine} -n {namespace}"),
	instruct(`(?i)etcd CrashLoopBackOff|etcd member on (node|machine) .* does not (answer|respond)`, "Delete the Machine of the etcd member to have it replaced, if the other members are healthy", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`CrashLoopBackOff`, "Read the log of the container that crashes, and correct its configuration", "slipway logs node {machine} -n {namespace}"),
	instruct(`ImagePullBackOff|ErrImagePull|InvalidImageName`, "Correct the image that the message names, or make it available to the nodes", "slipway image load --help"),
	instruct(`OOMKilled`, "Give the container that the message names more memory", describeText),
	instruct(`(?i)certificate .*(has )?expired|x509: certificate has expired`, "Replace the certificate that the message names; expired authorities of Secret {secret} have to be replaced with their key", "kubectl get secret {secret} -n {namespace}"),
	instruct(`refuses the credentials|rejects the credentials`, "Renew the kubeconfig in Secret {cluster}-kubeconfig", "kubectl get secret {cluster}-kubeconfig -n {namespace}"),
	instruct(`annotation simulated\.|-down makes it unreachable`, "Remove the annotation that the message names: it simulates a fault", describeText),
	instruct(`(?i)docker does not (answer|respond)|cannot connect to the Docker daemon`, "Start Docker, and let the user of Slipway use it; work continues when it responds", "systemctl start docker"),
	instruct(`(?i)address already in use|is taken by another`, "End the program that uses the port that the message names, or create the cluster with an endpoint at another port", "ss -ltnp"),
	instruct(`(?i)the machine .*was removed from the host`, "Delete Machine {machine} to have it replaced", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)the machine .*does not run`, "Start the machine (docker start), or delete Machine {machine} to have it replaced", "kubectl delete machine {machine} -n {namespace}"),
	instruct(`(?i)nothing listens at|handler [^ ]+: .*(did not (answer|respond)|connection refused|timeout)`, "Start Runtime Extension {extension}, or correct spec.clientConfig and timeoutSeconds of ExtensionConfig {extension}", "kubectl describe extensionconfig {extension}"),
	instruct(`handler [^ ]+: the (answer|response) is not`, "Correct Runtime Extension {extension}: its response does not follow the Runtime SDK", "kubectl describe extensionconfig {extension}"),
	instruct(`(?i)cannot (get|list|watch|create|update|patch|delete) resource|is forbidden: User|has no right to`, "Restore the ClusterRole and ClusterRoleBinding of the user that the message names", "kubectl get clusterroles -l cluster.x-k8s.io/aggregate-to-manager=true"),
	instruct(`(?i)is not installed; install`, "Install the provider of the kind that the message names", "slipway init --help"),
	instruct(`reports what its contract does not allow`, "Report it to the provider of the kind that the message names: its status does not follow the contract", describeText),
	instruct(`no Node has`, "Correct spec.providerIDList of the infrastructure: no Node has the IDs that the message names", describeText),
	instruct(`(?i)preflight check KubernetesVersionSkew|is newer than version`, "Upgrade the control plane first, or set spec.version to a version that is not newer", "kubectl get machinedeployments,machinesets -n {namespace}"),
	instruct(`quorum would|No other Machine has all components`, "Repair another control plane Machine first: without it a replacement would lose the quorum of etcd", "kubectl get machines -n {namespace} -l cluster.x-k8s.io/control-plane"),
	slow(30*time.Second, instruct(`(?i)HTTP status (429|5\d\d)`, "Check the API server or the load balancer at the address in the message: it responds with an error", "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig")),
	slow(30*time.Second, instruct(`(?i)(did|does) not (answer|respond)|cannot be reached|connection refused|i/o timeout`, "Check that the API server of Cluster {cluster} runs and is reachable at the address in the message, and that server and certificate-authority-data in Secret {cluster}-kubeconfig are right", "kubectl get secret {cluster}-kubeconfig -n {namespace}")),
}

func instruct(form, text, command string) phrase {
	return phrase{regexp.MustCompile(form), remedy{text: text, command: command, isSpecific: true}}
}

func slow(patience time.Duration, p phrase) phrase {
	p.patience = patience
	return p
}
