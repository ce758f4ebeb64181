package rootcause

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sshMachine is the SSHMachine of the worker, on SSHHost hosts/rack-1.
func sshMachine(options ...option) *unstructured.Unstructured {
	return thing("SSHMachine c-w1", append([]option{owner("Machine c-w1"), field("hosts", "status", "hostRef", "namespace"), field("rack-1", "status", "hostRef", "name")}, options...)...)
}

func sshWorker(options ...option) *unstructured.Unstructured {
	return worker(append([]option{infrastructure("SSHMachine c-w1")}, options...)...)
}

// sshHost is an SSHHost in the namespace of the operator.
func sshHost(name string, options ...option) *unstructured.Unstructured {
	return thing("SSHHost "+name, append([]option{unlabelled, func(u *unstructured.Unstructured) { u.SetNamespace("hosts") }}, options...)...)
}

const (
	noHost      = "One more SSHHost is needed (no hostSelector): of the 3 that are offered to namespace ns and match, 2 in use, 1 quarantined (SSHHost hosts/rack-3); wait until one is free"
	otherKey    = "Host 192.0.2.1 presented the ssh-ed25519 key SHA256:new, but pinned are SHA256:old"
	otherRecord = "The host has the record of SSHMachine other/x of another claim or management cluster: it is left unchanged"
	claimB      = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func sshFaults() map[string]injectedFault {
	waiting := sshMachine(bad("HostClaimed", "NoHostAvailable", noHost, 4), bad("Ready", "NotReady", noHost, 4), func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "status", "hostRef")
	})
	waitingWorker := sshWorker(bad("InfrastructureReady", "NotReady", noHost, 4))
	inUse := sshHost("rack-1", bad("Available", "InUse", "SSHMachine ns/c-w0 uses the host", 60))
	lost := sshMachine(bad("HostReachable", "HostUnreachable", "Host 192.0.2.1 does not respond at 192.0.2.1:22", 9), bad("Ready", "NotReady", "* HostReachable: Host 192.0.2.1 does not respond at 192.0.2.1:22", 9))
	return map[string]injectedFault{
		"no host, one quarantined": {
			reason:  "freeing the host that cannot be used ends the wait",
			objects: things(waitingWorker, waiting, config(), inUse, sshHost("rack-3", bad("Available", "RecordOfAnotherMachine", otherRecord, 90), field(claimB, "status", "record", "claimID"))),
			of:      "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1 > SSHHost rack-3", cause: "of another claim", since: 90,
			remedy: "slipway kubectl annotate sshhost.infrastructure.slipway.dev rack-3 -n hosts infrastructure.slipway.dev/clean-host=" + claimB,
		},
		"no host at all": {
			reason: "a host has to be added", objects: things(waitingWorker, waiting, config(), inUse),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1", cause: "One more SSHHost is needed", since: 4, remedy: "slipway hosts list --all-namespaces",
		},
		"host with another key": {
			reason: "both keys and the command",
			objects: things(sshWorker(bad("InfrastructureReady", "NotReady", otherKey, 3)), sshMachine(bad("HostReachable", "HostKeyMismatch", otherKey, 3), bad("Ready", "NotReady", otherKey, 3)), config(),
				sshHost("rack-1", bad("Available", "HostKeyMismatch", otherKey, 7), bad("Reachable", "HostKeyMismatch", otherKey, 7))),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1 > SSHHost rack-1", cause: "SHA256:new, but pinned are SHA256:old", since: 7, remedy: "slipway hosts update rack-1 -n hosts --rescan",
		},
		"host unreachable": {
			reason: "since when, and how to check it",
			objects: things(sshWorker(bad("InfrastructureReady", "NotReady", "Host 192.0.2.1 does not respond at 192.0.2.1:22", 9)), lost, config(),
				sshHost("rack-1", bad("Available", "HostUnreachable", "Host 192.0.2.1 does not respond at 192.0.2.1:22", 10), bad("Reachable", "HostUnreachable", "Host 192.0.2.1 does not respond at 192.0.2.1:22", 10))),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1 > SSHHost rack-1", cause: "does not respond", since: 10, remedy: "slipway hosts check rack-1 -n hosts",
		},
		"host of the operator": {
			reason: "a user who may not read SSHHosts gets the remedy, too", objects: things(sshWorker(bad("InfrastructureReady", "NotReady", "Host 192.0.2.1 does not respond at 192.0.2.1:22", 9)), lost, config()),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1", cause: "does not respond", since: 9, remedy: "slipway hosts check rack-1 -n hosts",
		},
		"host was reinstalled": {
			reason: "the node is lost",
			objects: things(sshWorker(bad("InfrastructureReady", "MachineRemoved", "SSHHost rack-1 is quarantined, so the node is lost", 2)), sshMachine(bad("HostClaimed", "MachineRemoved", "SSHHost rack-1 is quarantined, so the node is lost: its condition Available has the reason; delete the Machine to have it replaced", 2)), config(),
				sshHost("rack-1", bad("Available", "RecordLost", "The host no longer has the record of SSHMachine ns/c-w1, for example because it was reinstalled: delete the Machine to have it replaced", 3))),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1 > SSHHost rack-1", cause: "no longer has the record", since: 3, remedy: "Delete the Machine of the SSHMachine",
		},
		"preflight": {
			reason: "the checks say what is wrong", objects: things(sshHost("rack-2", func(u *unstructured.Unstructured) { u.SetNamespace("ns") }, bad("Available", "PreflightFailed", "The host cannot become a node:\n* Swap: swap is enabled", 20), bad("PreflightPassed", "PreflightFailed", "* Swap: swap is enabled; turn it off", 20))),
			of: "SSHHost rack-2", path: "SSHHost rack-2", cause: "swap is enabled", since: 20, remedy: "slipway hosts check rack-2 -n ns",
		},
		"no bundle": {
			reason: "the bundle has to be built", objects: things(sshWorker(bad("InfrastructureReady", "NotReady", "There is no bundle for Kubernetes v1.36.3 on amd64", 5)), sshMachine(bad("HostPrepared", "BundleMissing", "There is no bundle for Kubernetes v1.36.3 on amd64", 5)), config()),
			of: "Machine c-w1", path: "Machine c-w1 > SSHMachine c-w1", cause: "no bundle", since: 5, remedy: "slipway bundle build",
		},
		"slow bootstrap": {
			reason: "the remedy is for the SSHMachineTemplate", objects: things(sshMachine(bad("BootstrapExecSucceeded", "BootstrapFailed", "The bootstrap data did not end within 600 seconds on SSHHost rack-1: increase spec.bootstrapTimeoutSeconds if it needs longer", 5))),
			of: "SSHMachine c-w1", path: "SSHMachine c-w1", cause: "600 seconds", since: 5, remedy: "SSHMachineTemplate",
		},
		"deletion held for a time": {
			reason: "the health check replaces the machine without a user",
			objects: things(sshMachine(deleted(4, "sshmachine.infrastructure.slipway.dev"), cond("Deleting", "True", "Deleting",
				"SSHHost rack-1 cannot be cleaned, because it does not respond since 2026-11-28T17:56:00Z. A health check replaces the Machine: the host is released without cleaning at 2026-11-28T18:01:00Z, and cannot be claimed until it responds and is clean", 4))),
			of: "SSHMachine c-w1", path: "SSHMachine c-w1", cause: "cannot be cleaned", since: 4, remedy: "The host is released at the time in the message", automatic: true, isWithoutCommand: true,
		},
		"deletion held": {
			reason: "the host has to respond, or is given up",
			objects: things(sshMachine(deleted(30, "sshmachine.infrastructure.slipway.dev"), cond("Deleting", "True", "Deleting",
				"SSHHost rack-1 cannot be cleaned, because it does not respond since 2026-11-28T17:40:00Z. If it is gone, annotate this SSHMachine with infrastructure.slipway.dev/force-release: \"true\"", 20))),
			of: "SSHMachine c-w1", path: "SSHMachine c-w1", cause: "cannot be cleaned", since: 30, remedy: "infrastructure.slipway.dev/force-release=true",
		},
	}
}

// A host in use, and one that is free, have no problem.
func TestHostsWithoutProblem(t *testing.T) {
	for _, h := range []*unstructured.Unstructured{
		sshHost("a", bad("Available", "InUse", "SSHMachine ns/c-w1 uses the host", 60), cond("Reachable", "True", "Connected", "", 60), cond("PreflightPassed", "True", "Passed", "", 60)),
		sshHost("a", cond("Available", "True", "Available", "", 60), cond("Reachable", "True", "Connected", "", 60), cond("Deleting", "False", "NotDeleting", "", 60)),
	} {
		ref := refTo("SSHHost a")
		ref.Namespace = "hosts"
		if c, found := Explain(memory(h), ref, now); found {
			t.Errorf("%s: %s", path(c), Summary(c))
		}
	}
}
