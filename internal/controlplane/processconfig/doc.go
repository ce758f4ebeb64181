// Package processconfig describes the control plane of one workload cluster: the configuration of its process
// ([Config]), the files in its directory ([Folder]), the state that the process publishes ([Run]), and the delivery of
// these files to the volume of a Pod ([Delivery]). Package internal/controlplane runs a control plane, and package
// internal/controlplane/supervisor supervises it. Content that the process of a control plane wrote is validated when
// it is read, because a compromised control plane could have written it. The HostedControlPlane controller (package
// hosted) and its backends fill the configuration.
//
// The files in the directory of a control plane, by the program that writes them:
//
//	config.json                     manager   configuration of the next process
//	pki/                            both      CAs and keys from the manager; certificates that the process issues
//	restore/                        manager   snapshot and request (request.json) for the next process
//	run.json, ended.json            process   its state, and the reason of its exit
//	restored.json                   process   the last restore
//	etcd/, etcd-before-ID/          process   the data, and the data that the last restore replaced
//	lock, log/                      process
package processconfig
