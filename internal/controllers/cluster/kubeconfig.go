package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// kubeconfig returns the Secret with an administrator's kubeconfig, signed by the Cluster's certificate authority. The
// controller creates it once for a Cluster without a control plane object; otherwise the control plane provider does.
// Cluster API's contract defines the name, the type and the key of the Secret.
func kubeconfig(s snapshot) (*corev1.Secret, error) {
	ca, err := pki.ParsePair(s.Access.CA.Data[corev1.TLSCertKey], s.Access.CA.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidCertificateAuthority",
			"Secret %s does not hold a certificate authority with its key in tls.crt and tls.key", s.Access.CA.Name).From(err)
	}
	user := s.Cluster.Name + "-admin"
	pair, err := ca.Issue(pki.Leaf{User: "kubernetes-admin", Groups: []string{"system:masters"}, Client: true}, s.Now)
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidCertificateAuthority",
			"the certificate in Secret %s cannot sign others", s.Access.CA.Name).From(err)
	}
	config, err := pki.Access{
		Context: user + "@" + s.Cluster.Name, User: user, CA: ca.CertPEM, Server: "https://" + s.Cluster.Spec.ControlPlaneEndpoint.String(),
	}.Embedded(pair)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidKubeconfig", "the kubeconfig cannot be encoded").From(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Cluster.Namespace, Name: s.Cluster.Name + "-kubeconfig",
			Labels:          ownership.PassWatchLabel(s.Cluster, map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name}),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": config},
	}, nil
}
