// Package remote does everything that touches a host over SSH, and knows nothing of Kubernetes objects. A [Pool] opens
// one connection for each host and closes it when it is idle. A [Host] reads facts, runs the preflight checks, writes
// the record of a claim, installs a bundle, prepares and bootstraps the node, and cleans the host afterwards. The
// controllers of SSHHosts, SSHMachines and SSHClusters use it, and so do the commands under `slipway hosts` and
// `slipway logs node`.
//
// The programs on the host are POSIX shell scripts in the folder scripts. Each is a constant text, which reaches the host
// on the standard input of the same short command, so that logs of sudo contain neither scripts nor data. The parameters
// follow as NAME=value lines that the script reads without evaluating them, and then its input. Nothing that a user wrote
// becomes part of a command line, and no secret becomes an argument or environment variable.
//
// A host belongs to an attacker as soon as a tenant had root on it, so everything it returns is limited in size and time
// and parsed strictly.
//
// What this package creates on a host:
//
//	/etc/slipway/machine.json            the claim: whose machine this is
//	/etc/slipway/kubelet.conf.d          settings of the kubelet that follow from the host
//	/var/lib/slipway/bundles/<sha256>    bundles, verified by hash; the two newest stay when the host is released
//	/var/lib/slipway/cleaned.json        the checklist of the last cleaning, until the next claim
//	/var/lib/slipway/current, lib        links to the bundle in use and to its libraries
//	/var/lib/slipway/node                the node's state: its inventory before, the files installed, whether it is bootstrapped
//	/run/slipway/bootstrap               bootstrap data while it runs, its log and its exit status
package remote
