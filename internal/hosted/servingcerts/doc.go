// Package servingcerts approves serving certificates of kubelets in clusters whose HostedControlPlane requests them
// (spec.kubeletServingCertificates). In the workload cluster, it approves a CertificateSigningRequest for the signer
// kubernetes.io/kubelet-serving if it is for the Node of a Machine of the Cluster, and only contains names and
// addresses of that Machine. The kube-controller-manager of the cluster then signs it. Other requests remain pending,
// with an Event on the HostedControlPlane, because they may become valid when the Machine has its Node and addresses. A
// denial would leave the kubelet without a certificate for longer. The function decide makes all decisions. Package
// manager adds the controller.
package servingcerts
