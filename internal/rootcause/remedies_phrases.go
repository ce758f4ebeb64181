package rootcause

import (
	"slices"
	"strings"
	"time"
)

// phrases has the remedies for texts of other programs that messages quote, the most specific first. findRemedy uses
// the first that matches.
var phrases = []phrase{
	consequence("remote connection not established yet", "The connection is retried when the control plane is initialized"),
	consequence("waiting for the topology of the cluster to be reconciled|waiting for cluster topology to be reconciled", "It continues when the topology of Cluster {cluster} is reconciled"),
	consequence("waiting for the first control plane machine to have its status.noderef set|control plane not yet initialized", "It continues when the control plane of Cluster {cluster} is initialized"),
	unending(automatic("hooks are blocking|hook *has blocked", "The extension is called again; its owner decides when it allows the change")),
	slow(30*time.Second, instruct("failed calling webhook", "Repair the server of {webhook}, or delete its ValidatingWebhookConfiguration or MutatingWebhookConfiguration", "slipway kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")),
	instruct("validatingadmissionpolicy *denied request", "Correct {owner}, which determines the object, as the policy in the message requires, or change the policy", editOwner),
	conclusion(instruct("lost its quorum", "Start the machines of the lost etcd members; if they are gone for good, rebuild the control plane from the remaining member", "slipway recover controlplane {cluster} -n {namespace}")),
	instruct("nospace", "Delete objects of Cluster {cluster} that are not needed, compact and defragment etcd, then disarm the alarm", workloadKubeconfig),
	instruct("alarm corrupt|alarms corrupt", "Replace the Machine of the etcd member with the corrupt database", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("no space left on device|disk of *is full", "Free space on the disk that the message names", "df -h"),
	slow(30*time.Second, instruct("template of *of clusterclass *does not exist", "Create the template that the message names, or correct the reference in ClusterClass {clusterclass}", "slipway kubectl edit clusterclass {clusterclass} -n {namespace}")),
	slow(30*time.Second, instruct("waiting for clusterclass *to be created|clusterclasses.cluster.x-k8s.io *not found", "Create ClusterClass {clusterclass}, or correct spec.topology.classRef of Cluster {cluster}", "slipway kubectl get clusterclasses -n {namespace}")),
	slow(30*time.Second, instruct("template ~ does not exist", createTemplate, editText)),
	slow(30*time.Second, instruct("cluster ~ does not exist: create it, or delete|cluster ~ does not exist; reconciliation", "Create Cluster {cluster}, or correct spec.clusterName", "slipway kubectl get clusters -n {namespace}")),
	restoreAuthority("content cannot be generated again*front-proxy-ca.crt", "front-proxy-ca.crt", "front-proxy-ca.key"),
	restoreAuthority("content cannot be generated again*sa.pub", "sa.pub", "sa.key"),
	restoreAuthority("content cannot be generated again", "ca.crt", "ca.key"),
	slow(30*time.Second, instruct("configmap *does not exist|secret *does not exist", "Create the object that the message names, or correct the reference to it", editText)),
	instruct("configmap *does not name the machine that initializes", "Delete ConfigMap {configmap}, so that another Machine initializes the control plane", "slipway kubectl delete configmap {configmap} -n {namespace}"),
	instruct("cannot be read: key", "Correct the resources that the message names, so that they can be applied", editText),
	instruct("exceeded quota", "Raise the ResourceQuota that the message names, or reduce spec.replicas", "slipway kubectl get resourcequota -n {namespace}"),
	instruct("has disk pressure|kubelethasdiskpressure", "Free space on the disk of Node {node}, or delete its Machine to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("has memory pressure|has insufficient memory|kubelethasinsufficientmemory", "Reduce the memory that Pods use on Node {node}, or use machines with more memory", "slipway kubectl get machine {machine} -n {namespace} -o wide"),
	instruct("has pid pressure|has insufficient pid|kubelethasinsufficientpid", "End processes on Node {node}, or delete its Machine to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}"),
	slow(2*time.Minute, instruct("network plugin|cni plugin|cni config|networkpluginnotready|networkready=false", "Install a network add-on in Cluster {cluster}, or check that its Pods run on Node {node}", "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig")),
	instruct("stopped posting node status|nodestatusunknown", "Start the kubelet on Node {node}, or delete its Machine to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("failed to parse kubelet flag|unknown flag: --", "Correct kubeletExtraArgs in {bootstrap}; new Machines get the correction", "slipway kubectl get {bootstrapresource} -n {namespace}"),
	instruct("cannot be evicted|disruption budget", "Raise the replicas of the workload in Cluster {cluster}, or relax its PodDisruptionBudget there; spec.deletion.nodeDrainTimeoutSeconds of the Machine limits the wait", workloadKubeconfig),
	slow(5*time.Minute, instruct("volumeattachment|volumes to be detached", "Check the CSI driver that has to detach the volumes of Node {node}; spec.deletion.nodeVolumeDetachTimeoutSeconds of the Machine limits the wait, annotation machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach ends it", "slipway kubectl annotate machine {machine} -n {namespace} machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach=")),
	instruct("waiting for node *blocked by finalizers|its finalizer *not removed", "The owner of the finalizer on Node {node} has to remove it; spec.deletion.nodeDeletionTimeoutSeconds of the Machine limits the wait", "slipway kubectl get machine {machine} -n {namespace} -o jsonpath='{.spec.deletion}'"),
	instruct("blocked by finalizers", "The owners of the finalizers that the message names have to remove them. If an owner was uninstalled, clean up in its place, then remove its finalizer", describeText),
	instruct("pre-drain.delete.hook|pre-terminate.delete.hook", "The owner of the annotation that the message names has to finish and remove it", "slipway kubectl get machine {machine} -n {namespace} -o jsonpath='{.metadata.annotations}'"),
	instruct("public keys *pinned|cacerthashes", "Correct discovery.bootstrapToken.caCertHashes in {bootstrap}, then delete Machine {machine}", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("kube-apiserver exits with", "Correct the flags of the kube-apiserver in spec.kubeadmConfigSpec.clusterConfiguration.apiServer of the control plane", "slipway logs node {machine} -n {namespace}"),
	instruct("runcmd ended with code|bootstrap data ended without *ended with code|prekubeadmcommands|postkubeadmcommands", "Correct the command that the message names in {bootstrap}; new Machines get the correction. Then delete Machine {machine}", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("did not end within *on sshhost *bootstraptimeoutseconds", "Raise spec.bootstrapTimeoutSeconds in the SSHMachineTemplate, or shorten the bootstrap commands", "slipway kubectl get sshmachinetemplates -n {namespace}"),
	unending(automatic("the host is released without cleaning at", "The host is released at the time in the message, and the Machine is replaced; start the host to have it cleaned")),
	instruct("infrastructure.slipway.dev/force-release", "Start the host, so that it can be cleaned; if it is gone for good, release it by force", "slipway kubectl annotate sshmachine.infrastructure.slipway.dev {name} -n {namespace} infrastructure.slipway.dev/force-release=true"),
	instruct("ended after *seconds|bootstraptimeoutseconds", "Raise spec.backend.container.bootstrapTimeoutSeconds in the LocalMachineTemplate, or shorten the bootstrap commands", "slipway kubectl get localmachinetemplates -n {namespace}"),
	instruct("cloud-config*not valid|cloud-config*yaml|cloud-config*line ", "Correct the cloud-config in the Secret with the bootstrap data, then delete Machine {machine}", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("bootstrap-success.complete", "Let the last command of the bootstrap data create /run/cluster-api/bootstrap-success.complete, then delete Machine {machine}", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("kube-apiserver*crash|kube-apiserver*exit|apiserver.extraargs", "Correct the flags of the kube-apiserver in spec.kubeadmConfigSpec.clusterConfiguration.apiServer of the control plane", "slipway logs node {machine} -n {namespace}"),
	instruct("etcd crashloopbackoff|etcd member on *does not answer|etcd member on *does not respond", "Delete the Machine of the etcd member to have it replaced, if the other members are healthy", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("crashloopbackoff", "Read the log of the container that crashes, and correct its configuration", "slipway logs node {machine} -n {namespace}"),
	instruct("imagepullbackoff|errimagepull|invalidimagename", "Correct the image that the message names, or make it available to the nodes", "slipway image load --help"),
	instruct("oomkilled", "Give the container that the message names more memory", describeText),
	instruct("certificate in secret *expired|certificate of secret *expired|secret *certificate *expired", "Replace the expired certificate in Secret {secret}; an authority has to be replaced with its key", "slipway kubectl get secret {secret} -n {namespace}"),
	instruct("certificate *expired", "Replace the expired certificate that the message names, and compare the clocks of the machines", describeText),
	instruct("is not the one that the kubeconfig secret describes|certificate signed by unknown authority", "Correct certificate-authority-data in Secret {cluster}-kubeconfig", "slipway kubectl get secret {cluster}-kubeconfig -n {namespace}"),
	instruct("is not a kubernetes api server|redirects to another address", "Correct server in Secret {cluster}-kubeconfig, and check for a proxy or portal in between", "slipway kubectl get secret {cluster}-kubeconfig -n {namespace}"),
	slow(30*time.Second, instruct("nothing listens at the address of the api server|there is no route to the api server|it is slow or overloaded", "Check that the API server of Cluster {cluster} runs and has enough CPU, and that its address in the message is reachable", "slipway describe cluster {cluster} -n {namespace}")),
	instruct("the kubeconfig cannot be read", "Correct or replace the kubeconfig in Secret {cluster}-kubeconfig", "slipway kubectl get secret {cluster}-kubeconfig -n {namespace}"),
	instruct("refuses the credentials|rejects the credentials", "Renew the kubeconfig in Secret {cluster}-kubeconfig", "slipway kubectl get secret {cluster}-kubeconfig -n {namespace}"),
	instruct("annotation simulated.", "Remove annotation {annotation} from {annotated}: it simulates a fault", "slipway kubectl annotate {annotatedkind} {annotatedname} -n {namespace} {annotation}-"),
	instruct("docker does not answer|docker does not respond|cannot connect to the docker daemon", "Start Docker, and let the user of Slipway use it; work continues when it responds", "systemctl start docker"),
	instruct("address already in use|is taken by another", "End the program that uses the port that the message names, or create the cluster with an endpoint at another port", "ss -ltnp"),
	instruct("the machine *was removed from the host", "Delete Machine {machine} to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("the machine *does not run (", "Start the machine (docker start), or delete Machine {machine} to have it replaced", "slipway kubectl delete machine {machine} -n {namespace}"),
	instruct("handler *responded with status failure|extension *responded with status failure", "Read the log of Runtime Extension {extension}: its handler failed. To continue without it, delete ExtensionConfig {extension}", "slipway kubectl describe extensionconfig {extension}"),
	instruct("handler *did not answer|handler *did not respond|calls of *did not respond", "Start Runtime Extension {extension} or make it faster, or correct spec.clientConfig and timeoutSeconds of ExtensionConfig {extension}", "slipway kubectl describe extensionconfig {extension}"),
	instruct("handler *nothing listens at|handler *connection refused|handler *timeout|calls of *nothing listens at", "Start Runtime Extension {extension}, or correct spec.clientConfig and timeoutSeconds of ExtensionConfig {extension}", "slipway kubectl describe extensionconfig {extension}"),
	instruct("extension *of patch *does not apply", "Correct Runtime Extension {extension}: it returned a patch that does not apply", "slipway kubectl describe extensionconfig {extension}"),
	instruct("handler *the answer is not|handler *the response is not|calls of *the response is not", "Correct Runtime Extension {extension}: its response does not follow the Runtime SDK", "slipway kubectl describe extensionconfig {extension}"),
	instruct("no right to *aggregate-to-manager=true", "Grant the manager the rights that the message names with a ClusterRole that has label cluster.x-k8s.io/aggregate-to-manager=true", "slipway kubectl get clusterroles -l cluster.x-k8s.io/aggregate-to-manager=true"),
	instruct("cannot get resource|cannot list resource|cannot watch resource|cannot create resource|cannot update resource|cannot patch resource|cannot delete resource|is forbidden: user|has no right to", "Restore the ClusterRole and ClusterRoleBinding of the user that the message names", "slipway kubectl get clusterroles -l cluster.x-k8s.io/aggregate-to-manager=true"),
	instruct("crd *has no label cluster.x-k8s.io/", "Set the label of the CustomResourceDefinition that the message names to the API versions that fulfil the contract", "slipway kubectl get crds -l cluster.x-k8s.io/provider"),
	instruct("is not installed; install", "Install the provider of the kind that the message names", "slipway init --help"),
	instruct("reports what its contract does not allow", "Report it to the provider of the kind that the message names: its status does not follow the contract", describeText),
	instruct("lists provider ids more than once", "Correct spec.providerIDList of the infrastructure that the message names: each Node has a provider ID of its own", describeText),
	slow(10*time.Minute, instruct("nodes with the provider ids", "Correct spec.providerIDList of the infrastructure that the message names: no Node has these provider IDs", describeText)),
	instruct("newer than version *preflight check kubernetesversionskew", "Upgrade the control plane first, or set spec.template.spec.version of {owner} to {planeversion}", patchVersion),
	instruct("older than version *preflight check kubernetesversionskew|must have the minor version of the control plane", "Set spec.template.spec.version of {owner} to {planeversion}", patchVersion),
	instruct("quorum would|no other machine has all components", "Repair another control plane Machine first: without it a replacement would lose the quorum of etcd", "slipway kubectl get machines -n {namespace} -l cluster.x-k8s.io/control-plane"),
	slow(30*time.Second, instruct("http status 429|http status 5", "Check the API server or the load balancer at the address in the message: it responds with an error", "slipway get kubeconfig {cluster} -n {namespace} > {cluster}.kubeconfig")),
	general(slow(30*time.Second, instruct("did not answer|did not respond|does not answer|does not respond|cannot be reached|connection refused|i/o timeout", "Check that the API server of Cluster {cluster} runs and is reachable at the address in the message, and that server and certificate-authority-data in Secret {cluster}-kubeconfig are right", "slipway kubectl get secret {cluster}-kubeconfig -n {namespace}"))),
}

// warnings has the remedies for messages of conditions that have their expected status.
var warnings = []phrase{
	automatic("does not apply *of the bootstrap data", "If the node needs these parts, use files and runcmd in the bootstrap configuration, or change the node image"),
	automatic("only a network add-on that wraps packets", "Install a network add-on that wraps packets, or create the cluster with ranges inside of its network"),
}

// instruct returns the remedy for messages with one of the alternatives of a form, separated by "|". The parts of an
// alternative that are separated by "*" occur in this order, and "~" is a word. Forms are in lower case.
func instruct(form, text, command string) phrase {
	var alternatives [][]string
	for alternative := range strings.SplitSeq(form, "|") {
		alternatives = append(alternatives, strings.Split(alternative, "*"))
	}
	return phrase{alternatives: alternatives, remedy: remedy{text: text, command: command, isSpecific: true}}
}

// restoreAuthority returns the remedy for a missing Secret whose contents are in two files of each control plane node.
func restoreAuthority(form, certificate, key string) phrase {
	return instruct(form, "Restore Secret {secret} from a backup, or create it from the files on a control plane node that the message names; then set its label cluster.x-k8s.io/cluster-name",
		"slipway kubectl create secret generic {secret} --type cluster.x-k8s.io/secret --from-file tls.crt="+certificate+" --from-file tls.key="+key+" -n {namespace}")
}

// automatic returns the remedy for messages, in the form of instruct, about what ends without a user.
func automatic(form, text string) phrase {
	p := instruct(form, text, "")
	p.automatic = true
	return p
}

// consequence returns the remedy for messages that consist of one of the alternatives. They report nothing else than that another
// thing has not happened yet, so that other problems of the same object explain it.
func consequence(form, text string) phrase {
	p := automatic(form, text)
	p.isConsequence = true
	return p
}

// unending returns the phrase for what may take any time.
func unending(p phrase) phrase {
	p.isEndless = true
	return p
}

// conclusion returns the phrase for a conclusion from several objects. The object that draws it is the root cause, and
// not one of the others.
func conclusion(p phrase) phrase {
	p.isConclusive = true
	return p
}

// matches reports whether a message, in lower case, has one of the alternatives.
func (p phrase) matches(message string) bool {
	if p.isConsequence {
		return slices.ContainsFunc(p.alternatives, func(parts []string) bool { return message == parts[0] })
	}
	return slices.ContainsFunc(p.alternatives, func(parts []string) bool { return hasInOrder(message, parts) })
}

// CauseLine returns the line of a message that has the cause. It is the first item of a list that a user can act on if the
// message begins with the progress that the item prevents, else the whole message. Package fleet calls it for the reason of a row.
func CauseLine(message string) string {
	lines := strings.Split(clip(message), "\n")
	if first := lines[0]; strings.HasPrefix(first, "* ") || strings.HasSuffix(strings.TrimSpace(first), ":") {
		return message
	}
	for _, line := range lines[1:] {
		item, isItem := strings.CutPrefix(line, "* ")
		lower := strings.ToLower(item)
		if isItem && slices.ContainsFunc(phrases, func(p phrase) bool { return !p.automatic && p.matches(lower) }) {
			return item
		}
	}
	return message
}

func hasInOrder(text string, parts []string) bool {
	for _, part := range parts {
		end := endOf(text, part)
		if end < 0 {
			return false
		}
		text = text[end:]
	}
	return true
}

// endOf returns the end of the first match of a part of a form in a text, or -1.
func endOf(text, part string) int {
	before, after, hasWord := strings.Cut(part, "~")
	for end := 0; ; {
		at := strings.Index(text[end:], before)
		if at < 0 {
			return -1
		}
		end += at + len(before)
		word := strings.IndexByte(text[end:], ' ')
		switch {
		case !hasWord:
			return end
		case word > 0 && strings.HasPrefix(text[end+word:], after):
			return end + word + len(after)
		}
	}
}

// general returns the phrase for a text that many programs use. General phrases are at the end of the list.
func general(p phrase) phrase {
	p.isGeneral = true
	return p
}

func slow(patience time.Duration, p phrase) phrase {
	p.patience = patience
	return p
}
