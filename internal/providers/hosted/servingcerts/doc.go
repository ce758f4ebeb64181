// Package servingcerts approves the requests of kubelets for serving certificates in clusters with a HostedControlPlane that
// asks for that (spec.kubeletServingCertificates).
//
// Does: in the workload cluster, approves a CertificateSigningRequest of a kubelet if it is for the Node of a Machine of the
// Cluster, and for names and addresses of that Machine alone; the cluster's kube-controller-manager then signs it. One that is
// not approved waits, with an event at the HostedControlPlane that says why: it may be right in a moment, when the Machine
// has its Node and its addresses.
//
// Owns: the condition Approved of requests for the signer kubernetes.io/kubelet-serving.
//
// Never: denies a request, since the kubelet would be without a certificate for longer; signs; touches requests for other
// signers; decides whether kubelets request certificates (package addons) or the API server insists on them (package plane).
//
// Read first: [Decide].
package servingcerts
