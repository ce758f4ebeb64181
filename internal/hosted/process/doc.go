// Package process is the backend of the HostedControlPlane controller that runs each control plane as one process on
// this host. The manager uses it unless it is started with --control-plane-pods. It uses the supervisor of package
// internal/controlplane/supervisor, which starts, adopts and restarts the processes: it writes the CAs and keys to the
// PKI directory of a control plane, requests the process, and reports its state. It records the last requested
// configuration of each control plane in memory only. Therefore the controller requests every control plane again after
// a restart of this program, and the supervisor adopts the running processes.
package process
