// Package workload describes the control plane of one workload cluster: the configuration of its process
// (FOLDER/config.json), with validation and hash, the files in its directory, the state that the process
// publishes (FOLDER/run.json), and the delivery of these files to the volume of a Pod (Delivery). It does not
// run anything, so that packages that only describe control planes do not link the Kubernetes components.
// Package internal/controlplane runs a control plane, and internal/controlplane/supervisor supervises it. Start at Config and
// Folder.
package processconfig
