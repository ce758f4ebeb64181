package rootcause

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

const (
	listHosts  = "slipway hosts list --all-namespaces"
	checkHost  = "slipway hosts check {host} -n {hostnamespace}"
	editHost   = "slipway kubectl edit sshhost.infrastructure.slipway.dev {host} -n {hostnamespace}"
	cleanHost  = "slipway kubectl annotate sshhost.infrastructure.slipway.dev {host} -n {hostnamespace} infrastructure.slipway.dev/clean-host={record}"
	offerAgain = "slipway kubectl patch sshhost.infrastructure.slipway.dev {host} -n {hostnamespace} --type merge -p '{\"spec\":{\"maintenance\":false}}'"
)

// sshRemedies returns the remedies of SSHHosts, SSHMachines and SSHClusters. {host} and {hostnamespace} are the SSHHost that
// an object is or uses, and {record} is what the operator can request to clean. [reasonTable] indexes them.
func sshRemedies() []group {
	return []group{
		auto(waitText,
			"ClaimingHost", "RecordingClaim", "PreparingHost", "ReleasingHost", "HostNotPrepared", "Cleaning", "NotChecked", "AdoptingHost", "ClaimedByAnother",
			"HostNotChecked", "HostsUnknown", "DeletingNodeOfHost", "WaitingForVirtualIP", "WaitingForControlPlaneHost", "NotHeld"),
		auto("The controller of {kind} retries; no action is needed", "BundleDamaged", "UnexpectedOutput", "TooManyCalls"),
		user("Delete the Node that the message names in the workload cluster", "slipway get nodes --all-namespaces", "NodeRemains"),
		user("Check the disk and the memory of the host, whose messages (dmesg) may name the defect, or delete Machine {machine} to use another host", checkHost, "DiskSuspected"),
		user("Free one of the hosts that the message counts, or add a host with \"slipway hosts add\"", listHosts, "NoHostAvailable"),
		user("Restore the SSHHost of Machine {machine} from a backup, or delete the Machine to have it replaced", deleteMachine, "HostNotFound"),
		user("Delete the SSHHosts that the message names except for the right one: they are the same machine", listHosts, "SeveralHostsHaveRecord"),
		patient(2*time.Minute, user("Start the host, and check its network and its SSH server", checkHost, "HostUnreachable")),
		patient(2*time.Minute, user("Correct on the host what the message names, for example a full or defective disk, or replace the host", checkHost, "HostScriptFailed", "HostFilesFailed")),
		user("Compare the key in the message with the key on the console of the host, and pin it if they are equal; otherwise another machine responds at this address", "slipway hosts update {host} -n {hostnamespace} --rescan", "HostKeyMismatch"),
		user("Add the public key that the message names to authorized_keys on the host, or store the right key with \"slipway hosts update\"", checkHost, "AuthenticationFailed"),
		user("Let the user become root with sudo without a password, or use root", checkHost, "NotRoot"),
		user("Correct the address, the user, the host keys or the credentials of the SSHHost as the message says", editHost, "InvalidTarget"),
		user("Create or correct the Secret that the message names, with the private key in ssh-privatekey", editHost, "CredentialsAbsent", "CredentialsInvalid"),
		user("Update or configure the SSH server of the host as the message says", checkHost, "NoCommonAlgorithm", "NoFileTransfer", "NoHostKey"),
		user("Read why the SSHHost is quarantined, and free it; it is not used before", listHosts, "HostQuarantined"),
		user("If nothing needs what runs on the host any more, request its cleaning; it is left unchanged until then", cleanHost, "RecordOfAnotherMachine", "SSHMachineMissing"),
		user("Start the host, and check its network and its SSH server: it is cleaned when it responds; if it is gone for good, delete the SSHHost", checkHost, "ReleasedByForce"),
		user("Delete the Machine of the SSHMachine that the message names to have it replaced", listHosts, "RecordLost"),
		user("Remove the host from the other cluster, then let Slipway remove the node from it", "slipway kubectl annotate sshhost.infrastructure.slipway.dev {host} -n {hostnamespace} infrastructure.slipway.dev/clean-host=unrecorded", "UnknownKubelet", "KubeletRunning", "UnrecordedNode"),
		user("Remove by hand what the node left on the host, or reinstall the host", checkHost, "NoInventory"),
		user("Correct the bootstrap data in {bootstrap} as the message says, then delete Machine {machine}", deleteMachine, "UnrecordableBootstrapData"),
		user("Delete the file that the message names on the host if nothing needs it", checkHost, "InvalidRecord"),
		user("Remove on the host what the message names, or reinstall the host; the cleaning is repeated every few minutes", checkHost, "NotClean"),
		user("Correct on the host what the message names; the host is checked again every minute", checkHost, "PreflightFailed", "HostUnsuitable"),
		user("Offer the host again when the work on it is done", offerAgain, "Maintenance"),
		user("Set spec.nodeAddress of the SSHHost to the IP address of the node", editHost, "InvalidAddress", "NodeAddressMissing"),
		user("Correct spec.settings of the SSHHost as the message says", editHost, "InvalidHostSettings", "InvalidParameter"),
		user("Remove the files that the message names from the host, or set spec.bundle of the machine template to None", checkHost, "FileExists"),
		user("Set spec.version of Machine {machine}, or spec.bundle of the machine template to None", "slipway kubectl get machine {machine} -n {namespace} -o yaml", "VersionMissing"),
		user("Build the bundle with \"slipway bundle build\", or import it", "slipway bundle list", "BundleMissing", "BundleNotReadable", "InvalidBundle"),
		user("Set spec.controlPlaneEndpoint of {kind} {name} to a load balancer, a DNS name or a virtual IP address", editText, "EndpointMissing"),
		user("Create the cluster with another virtual IP address: an unused one in the subnet of the control plane hosts", editText, "VirtualIPInUse", "VirtualIPTaken"),
		user("Correct the host, its bundle or the virtual IP address, as the message says", listHosts, "VirtualIPNotPossible"),
		user("Remove spec.virtualIP of {kind} {name} or the endpoint that differs from it, as the message says", editText, "VirtualIPNotNeeded", "EndpointDiffers"),
		user("Repair the SSH server of the host that responds in the network but not to SSH, or turn the host off", listHosts, "VirtualIPMemberUnreachable"),
		user("Allow IP protocol 112 (VRRP) between the control plane hosts", listHosts, "HeldBySeveralHosts"),
		user("Use the name of a systemd unit of the host, such as kubelet or containerd", "slipway hosts logs {host} -n {hostnamespace}", "InvalidUnit", "NoLogs"),
		user(bugText, "slipway version", "InvalidBootstrap", "InvalidClaim", "InvalidVirtualIP", "NoScript"),
	}
}

// sshHost returns the SSHHost that an object is or uses. The name is empty if there is none. Conditions, references and
// placeholders lead to it.
func (o object) sshHost() Ref {
	if o.ref.Group != infrav1.GroupVersion.Group {
		return Ref{}
	}
	switch o.ref.Kind {
	case sshHostKind:
		return o.ref
	case sshMachineKind:
		fields, _, _ := unstructured.NestedStringMap(o.content.Object, "status", "hostRef")
		return Ref{infrav1.GroupVersion.Group, sshHostKind, fields["namespace"], fields["name"]}
	}
	return Ref{}
}

const sshHostKind, sshMachineKind = "SSHHost", "SSHMachine"

// recordOnHost returns the value of the annotation with which the operator requests the cleaning of an SSHHost. It is empty for
// other kinds, for which no command is printed. The placeholder {record} has this value.
func (o object) recordOnHost() string {
	if o.ref.Kind != sshHostKind || o.ref.Group != infrav1.GroupVersion.Group {
		return ""
	}
	for _, path := range [][]string{{"status", "record", "claimID"}, {"status", "claim", "claimID"}} {
		if id, _, _ := unstructured.NestedString(o.content.Object, path...); id != "" {
			return id
		}
	}
	return infrav1.CleanUnrecorded
}

// canFollow reports whether an object in a message of another one may explain it. Objects of other namespaces are followed
// only from the spec and from plans, because authors of messages may have nothing to do with them. SSHHosts are an exception:
// they are in a namespace of the operator, and SSHMachines name those that are offered to their namespace. The search
// calls it for each mention.
func (o object) canFollow(m mention) bool {
	isHostOfMachine := m.kind == sshHostKind && o.ref.Kind == sshMachineKind && o.ref.Group == infrav1.GroupVersion.Group
	return m.namespace == o.ref.Namespace || isHostOfMachine
}
