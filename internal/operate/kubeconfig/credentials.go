package kubeconfig

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/controllers/credentials"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// userLabel, userAnnotation and expiresAnnotation of a binding are the same as for credentials issued by the
	// manager. Existing bindings have them, so they must not change.
	userLabel         = credentials.UserLabel
	userAnnotation    = credentials.UserAnnotation
	expiresAnnotation = credentials.ExpiresAnnotation
	// prefix is the prefix of object names, and groupPrefix the prefix of groups.
	prefix      = credentials.BindingPrefix
	groupPrefix = credentials.GroupPrefix
)

// Limits of the validity of a certificate. The cluster may sign for less.
const (
	minValidity = 10 * time.Minute // the minimum in Kubernetes
	maxValidity = credentials.MaxValidity
)

// Reasons of faults.
const (
	reasonInvalid   = "CredentialsInvalid"
	ReasonNotSigned = "CredentialsNotSigned"
)

// CredentialsRequest describes the requested credentials. `slipway get kubeconfig` fills it in from its flags.
type CredentialsRequest struct {
	// User is the user name in the API server and in audit logs.
	User string
	// Groups are groups of the user in addition to the group of the certificate.
	Groups []string
	// Role is a ClusterRole of the workload cluster.
	Role string
	// Validity is the validity period of the certificate.
	Validity time.Duration
}

// Credentials are a client certificate and its key, PEM-encoded. [Issue], [IssueManagement] and [RequestFrom] return it
// to `slipway get kubeconfig`.
type Credentials struct {
	Certificate, Key []byte
	// Binding is the ClusterRoleBinding that grants permissions; empty if there is none. Expires is the end of the
	// validity period.
	Binding string
	Expires time.Time
	// Server is the connection to the API server; nil means the connection of the issuing client.
	Server *rest.Config
}

// Issue issues credentials with an administrator's client for the workload cluster. `slipway get kubeconfig --user`
// calls it if the manager does not issue them ([RequestFrom]). The binding is created last, so that an interrupted
// command grants nothing.
func Issue(ctx context.Context, c kubernetes.Interface, r CredentialsRequest) (Credentials, error) {
	if err := r.check(); err != nil {
		return Credentials{}, err
	}
	_, err := c.RbacV1().ClusterRoles().Get(ctx, r.Role, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && hasNoRoles(ctx, c):
		return Credentials{}, fault.New(fault.Invalid, reasonInvalid,
			"the workload cluster has no ClusterRoles, as a simulated one has none, so that it issues no credentials: use the administrator's")
	case apierrors.IsNotFound(err):
		return Credentials{}, fault.New(fault.Invalid, reasonInvalid,
			"the workload cluster has no ClusterRole %q: use an existing one with --role, such as view, edit, admin or cluster-admin", r.Role)
	case err != nil:
		return Credentials{}, fmt.Errorf("reading ClusterRole %s: %w", r.Role, err)
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return Credentials{}, err
	}
	out := Credentials{Binding: prefix + hex.EncodeToString(id)}
	group := groupPrefix + hex.EncodeToString(id)
	var issued *x509.Certificate
	if out.Key, out.Certificate, issued, err = certificate(ctx, c, r, subject{name: out.Binding, groups: append([]string{group}, r.Groups...)}); err != nil {
		return Credentials{}, err
	}
	out.Expires = issued.NotAfter
	if err := deleteExpiredBindings(ctx, c, issued.NotBefore); err != nil { // the clock of the cluster, which may differ from the local one
		return Credentials{}, err
	}
	_, err = c.RbacV1().ClusterRoleBindings().Create(ctx, bindingOf(r, out, group), metav1.CreateOptions{})
	if err != nil {
		return Credentials{}, fmt.Errorf("creating ClusterRoleBinding %s: %w", out.Binding, err)
	}
	return out, nil
}

// IssueManagement issues credentials for a management cluster with an administrator's client. RoleBindings there grant
// permissions to the user and groups; deleting them revokes these. `slipway get kubeconfig --management` calls it.
func IssueManagement(ctx context.Context, c kubernetes.Interface, r CredentialsRequest) (Credentials, error) {
	if err := r.check(); err != nil {
		return Credentials{}, err
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return Credentials{}, err
	}
	key, cert, issued, err := certificate(ctx, c, r, subject{name: prefix + hex.EncodeToString(id), groups: r.Groups})
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{Key: key, Certificate: cert, Expires: issued.NotAfter}, nil
}

// hasNoRoles reports whether a cluster has no ClusterRoles at all.
func hasNoRoles(ctx context.Context, c kubernetes.Interface) bool {
	list, err := c.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{Limit: 1})
	return apierrors.IsNotFound(err) || err == nil && len(list.Items) == 0
}

func (r CredentialsRequest) check() error {
	switch {
	case r.User == "" || strings.TrimSpace(r.User) != r.User || len(r.User) > 64:
		return fault.New(fault.Invalid, reasonInvalid, "%q is not the name of a user: 1 to 64 characters without spaces around them", r.User)
	case isSystem(r.User):
		return fault.New(fault.Invalid, reasonInvalid, "%q is a name of a Kubernetes component: use the name of a user", r.User)
	case slices.ContainsFunc(r.Groups, isSystem):
		return fault.New(fault.Invalid, reasonInvalid, "groups that start with system: or kubeadm: are Kubernetes' own, and are not issued: name a group of yours with --group")
	case r.Validity < minValidity || r.Validity > maxValidity:
		return fault.New(fault.Invalid, reasonInvalid, "credentials are valid for %s to %s, not for %s", minValidity, maxValidity, r.Validity)
	}
	return nil
}

// isSystem reports whether a name is reserved by Kubernetes or kubeadm.
func isSystem(name string) bool {
	return strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "kubeadm:")
}

func bindingOf(r CredentialsRequest, c Credentials, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name:        c.Binding,
			Labels:      map[string]string{userLabel: contract.LabelValue(r.User)},
			Annotations: map[string]string{userAnnotation: r.User, expiresAnnotation: c.Expires.UTC().Format(time.RFC3339)},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}

// deleteExpiredBindings deletes the bindings of expired certificates. A binding without a valid expiry time was created
// by hand, and is left unchanged.
func deleteExpiredBindings(ctx context.Context, c kubernetes.Interface, now time.Time) error {
	list, err := c.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{LabelSelector: userLabel})
	if err != nil {
		return fmt.Errorf("listing ClusterRoleBindings: %w", err)
	}
	for _, b := range list.Items {
		ends, err := time.Parse(time.RFC3339, b.Annotations[expiresAnnotation])
		if err != nil || now.Before(ends) || !strings.HasPrefix(b.Name, prefix) {
			continue
		}
		err = c.RbacV1().ClusterRoleBindings().Delete(ctx, b.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &b.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting ClusterRoleBinding %s, which has expired: %w", b.Name, err)
		}
	}
	return nil
}

// Kubeconfig returns a kubeconfig with these credentials for the API server of the administrator's connection. cluster
// is the name of the cluster in the file. `slipway get kubeconfig` writes the result.
func (c Credentials) Kubeconfig(administrator *rest.Config, cluster, user string) ([]byte, error) {
	if c.Server != nil {
		administrator = c.Server
	}
	server := &clientcmdapi.Cluster{
		Server: administrator.Host, CertificateAuthorityData: administrator.CAData, TLSServerName: administrator.ServerName,
		DisableCompression: administrator.DisableCompression,
	}
	out, name := clientcmdapi.NewConfig(), user+"@"+cluster
	out.Clusters[cluster] = server
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: c.Certificate, ClientKeyData: c.Key}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	out.CurrentContext = name
	return clientcmd.Write(*out)
}
