// Package statefulset is the backend whose control planes are Pods of the management cluster.
//
// Does: gives each control plane a StatefulSet of one Pod that runs "slipway control-plane run" from the image of the manager, a
// PersistentVolumeClaim for its data, a Service that leads to it, a Secret with its configuration and authorities, and a NetworkPolicy; and
// reads from them what the supervisor of package process reads from a folder.
//
//	namespace of the manager, for control plane team-a/demo:
//	  StatefulSet   cp-team-a-demo-<digest> ─► Pod …-0     annotations: control plane, hash of the configuration, record of the data
//	  PersistentVolumeClaim  (no template: no controller creates it again, empty)
//	  Service       LoadBalancer, NodePort or ClusterIP: the endpoint, chosen before certificates are issued
//	  Secret        config.json, data.json and the files of the PKI folder
//	  NetworkPolicy lets in the port of the API server
//
// A control plane that had data never starts without: the record of the data is in the StatefulSet and in the Secret, and the claim is
// created only where there is no record. Where the claim is gone the Pod waits for it; where its volume is another one and empty, the Pod
// refuses to start (package workload, Delivery).
//
// Everything is in the namespace of the manager: who writes HostedControlPlanes may neither read keys nor change Pods, and the rights of
// the manager are those of a Role.
//
// Owns: these objects, where they have the label and the annotation of a control plane. Those of others that have their names are left
// alone, and said to be in the way.
//
// Never: starts a Pod again that ended (the kubelet and the StatefulSet controller), deletes a claim but in Remove, or reads Events.
//
// Read first: [New], then state.go, which is pure, and objects.go.
package statefulset
