// Package statefulset is the backend of the HostedControlPlane controller that runs control planes as Pods of the
// management cluster, for a manager that runs in a Pod itself (`slipway manager --control-plane-pods`). Each control
// plane has a StatefulSet with one Pod, which runs "slipway control-plane run" from the image of the manager. All
// objects are in the namespace of the manager, so that users who write HostedControlPlanes can neither read keys nor
// change Pods, and the permissions of the manager are limited to a Role. Objects with the same names but without the
// label and annotation of the control plane are not changed, and reported as conflicts. The package does not restart
// Pods, which the kubelet and the StatefulSet controller do, and it does not read Events. The file state.go computes
// the state of a control plane without side effects, and objects.go the desired objects.
//
// The objects of control plane team-a/demo:
//
//	StatefulSet   cp-team-a-demo-<digest> ─► Pod …-0     annotations: control plane, configuration hash, data record
//	PersistentVolumeClaim  (no template, so that no controller recreates it empty)
//	Service       LoadBalancer, NodePort or ClusterIP: the endpoint, chosen before certificates are issued
//	Secret        config.json, data.json and the files of the PKI directory
//	NetworkPolicy allows ingress to the port of the API server
//
// A control plane that had data is never started without it. The data record is in the StatefulSet and in the
// Secret, and the claim is only created if there is no record. If the claim is missing, the Pod waits for it.
// If the claim is bound to a different, empty volume, the Pod refuses to start ([processconfig.Delivery]). Only
// Remove deletes a claim.
package statefulset
