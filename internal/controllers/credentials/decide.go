package credentials

import (
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// Reasons of the conditions of a request, which its creator reads.
const (
	reasonAllowed     = "ConnectAllowed"
	reasonRule        = "RequestInvalid"
	reasonForbidden   = "ConnectForbidden"
	reasonNoCluster   = "ClusterNotFound"
	reasonNoAuthority = "AuthorityUnavailable"
	reasonNoRole      = "ClusterRoleNotFound"
)

// snapshot is the input of the decision about a request. The method observe of the controller fills it.
type snapshot struct {
	Now     time.Time
	Request *certificatesv1.CertificateSigningRequest
	// Allowed is set if the creator of the request has the verb [verb] on the Cluster.
	Allowed bool
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Authority is the Secret <cluster>-ca, or nil if it does not exist. Kubeconfig is the content of
	// <cluster>-kubeconfig, or empty.
	Authority  *corev1.Secret
	Kubeconfig secrets.Kubeconfig
}

// decision is the decision about a request. It is empty if the request is already decided, and only Wait is set if
// the request waits for its cluster.
type decision struct {
	// Deny, Approve and Fail are conditions to add.
	Deny, Approve, Fail *conditionReason
	// Issue is the certificate to issue.
	Issue *issue
	// Wait explains what the request waits for.
	Wait string
}

// conditionReason is a condition's reason and message.
type conditionReason struct{ Reason, Message string }

// issue describes a certificate to issue. The controller binds the role and signs the certificate according to it.
type issue struct {
	Leaf      pki.Leaf
	Public    any
	Authority pki.Pair
	// Role is the ClusterRole in the workload cluster that Binding grants to Group. If it is empty, no role is
	// granted.
	Role, Binding, Group string
}

// decide returns the decision about a request. Reconcile calls it after observe; it is pure: it neither reads nor
// writes. The order of the first rows must stay, because it determines what a user without permissions learns:
//
//	has a certificate, was denied, or failed     nothing
//	violates a rule                              deny it, with the rule
//	its creator may not connect to the Cluster   deny it, without disclosing whether the Cluster exists
//	the Cluster does not exist                   deny it
//	not approved                                 approve it
//
// An approved request, whoever approved it:
//
//	violates a rule                              fail, with the rule
//	the Cluster is deleted or being deleted      fail
//	no kubeconfig or CA Secret yet               wait: the control plane is not initialized
//	the CA Secret has no private key             fail: the key is stored outside the management cluster
//	the CA is invalid or expired                 fail
//	otherwise                                    issue the certificate
func decide(s snapshot) decision {
	switch state(s.Request) {
	case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed, issued:
		return decision{}
	case certificatesv1.CertificateApproved:
		return s.issue()
	}
	key, _ := clusterOf(s.Request.Spec.SignerName)
	if _, broken := read(s.Request); broken != "" {
		return decision{Deny: &conditionReason{reasonRule, broken}}
	}
	if !s.Allowed {
		return decision{Deny: &conditionReason{reasonForbidden, fmt.Sprintf("user %q may not %s to Cluster %s/%s: a Role with the verb %q on clusters of %s allows it",
			s.Request.Spec.Username, verb, key.Namespace, key.Name, verb, clusterv1.GroupVersion.Group)}}
	}
	if s.Cluster == nil {
		return decision{Deny: &conditionReason{reasonNoCluster, fmt.Sprintf("Cluster %s/%s does not exist", key.Namespace, key.Name)}}
	}
	return decision{Approve: &conditionReason{reasonAllowed, fmt.Sprintf("user %q may %s to Cluster %s/%s", s.Request.Spec.Username, verb, key.Namespace, key.Name)}}
}

// issued is the state of a request that has its certificate.
const issued certificatesv1.RequestConditionType = "Issued"

// state returns the condition that decides about a request, or an empty string if there is none yet.
func state(r *certificatesv1.CertificateSigningRequest) certificatesv1.RequestConditionType {
	if len(r.Status.Certificate) > 0 {
		return issued
	}
	var approved certificatesv1.RequestConditionType
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return c.Type
		case certificatesv1.CertificateApproved:
			approved = c.Type
		}
	}
	return approved
}

// issue decides about an approved request. Another approver may have approved it, so the rules are checked again.
func (s snapshot) issue() decision {
	w, broken := read(s.Request)
	switch {
	case broken != "":
		return decision{Fail: &conditionReason{reasonRule, broken}}
	case s.Cluster == nil:
		return decision{Fail: &conditionReason{reasonNoCluster, "its Cluster does not exist"}}
	case !s.Cluster.DeletionTimestamp.IsZero():
		return decision{Fail: &conditionReason{reasonNoCluster, fmt.Sprintf("Cluster %s is being deleted", s.Cluster.Name)}}
	case !s.Kubeconfig.Readable || s.Authority == nil:
		return decision{Wait: fmt.Sprintf("Waiting for the control plane of Cluster %s to be initialized", s.Cluster.Name)}
	}
	ca, key, err := secrets.Content(secrets.CA, s.Authority)
	if err != nil || len(key) == 0 {
		return decision{Fail: &conditionReason{reasonNoAuthority, fmt.Sprintf("Secret %s has no key that can sign: the authority of the cluster is kept elsewhere, which has to issue credentials",
			s.Authority.Name)}}
	}
	pair, err := pki.ParsePair(ca, key)
	if err != nil || !s.Now.Before(pair.Cert.NotAfter) {
		return decision{Fail: &conditionReason{reasonNoAuthority, fmt.Sprintf("the certificate of Secret %s is not valid any more: replace the authority", s.Authority.Name)}}
	}
	i := &issue{Leaf: pki.Leaf{User: w.user, Groups: w.groups, Client: true, Lifetime: w.valid}, Public: w.public, Authority: pair, Role: w.role}
	if w.role != "" {
		id := string(s.Request.UID)
		i.Binding, i.Group = BindingPrefix+id, GroupPrefix+id
		i.Leaf.Groups = append([]string{i.Group}, w.groups...)
	}
	return decision{Issue: i}
}
