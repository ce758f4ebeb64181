// Package hosts is the controller of SSHHosts. It connects to each host, reports its facts and the findings of the
// preflight checks, and owns the record on the host: it writes the record of a claim before anything else changes, and
// cleans the host and deletes the record when the claim is released. It writes the status of SSHHosts except for
// status.claim, which the controller of SSHMachines sets; it only removes the claim of a host that was cleaned.
// Package ssh adds the controller to the manager ([Add]).
//
// A host with the record of another machine, or with a kubelet that no record explains, is never changed unless the operator
// requests it for exactly this record (annotation clean-host). Everything that a host reports is untrusted: a tenant may
// have had the rights of root on it.
//
// The Node that a lost host registers again after its Machine was deleted is deleted when the host is clean (nodes.go).
//
// The states of a host:
//
//	Available ─► Preparing ─► InUse ─► Cleaning ─► Available
//	                │                     │
//	                └──► Quarantined ◄────┘     Unreachable: at any time
package hosts
