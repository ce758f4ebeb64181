package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Name is the name of the controller, and a part of its field manager "slipway-clustercredentials".
const Name = "clustercredentials"

// recheck is the interval for reading a request that waits for its cluster. Kubernetes deletes such requests after
// a day.
const recheck = 15 * time.Second

const (
	// UserLabel on a ClusterRoleBinding is the user of the certificate, converted to a valid label value.
	// UserAnnotation is the full name of the user, ExpiresAnnotation the expiry of the certificate. Users revoke
	// credentials by the label, and the controller deletes expired bindings by it. Existing bindings have all three,
	// and package operate/kubeconfig reads them, so they must not change.
	UserLabel         = "slipway.dev/personal-user"
	UserAnnotation    = "slipway.dev/personal-user"
	ExpiresAnnotation = "slipway.dev/personal-expires"
)

// Workloads provides connections to workload clusters.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Changed(controller string, to workload.ClusterMap) source.Source
}

// Settings are the settings of the controller. Package manager fills them.
type Settings struct {
	// Namespaces are the namespaces that the manager reconciles. If it is empty, all are. Requests for Clusters in
	// other namespaces are left to other managers.
	Namespaces []string
}

// controller issues certificates. It does not use package reconciler, because requests have no contract
// conditions, no finalizer and no pause.
type controller struct {
	client    client.Client
	live      client.Reader
	workloads Workloads
	reviews   authorizationclient.SubjectAccessReviewInterface
	scope     watches.Scope
	settings  Settings
	writer    *kube.Writer
	now       func() time.Time
}

// Add adds the credentials controller to the manager. Package manager calls it when the manager starts, with the core
// provider.
func Add(s reconciler.Setup, workloads Workloads, settings Settings) error {
	process := s.Manager
	if s.Process != nil { // the identities of providers may not create access reviews
		process = s.Process
	}
	api, err := authorizationclient.NewForConfig(process.GetConfig())
	if err != nil {
		return fmt.Errorf("preparing access reviews: %w", err)
	}
	c := &controller{
		client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), workloads: workloads, reviews: api.SubjectAccessReviews(),
		scope: s.Scope(), settings: settings, writer: s.Writer(Name), now: s.Clock(),
	}
	return ctrl.NewControllerManagedBy(s.Manager).Named(Name).WithOptions(s.Options()).
		For(&certificatesv1.CertificateSigningRequest{}).
		WatchesRawSource(workloads.Changed(Name, c.ofCluster)).
		Complete(c)
}

// ofCluster enqueues the requests that wait for a Cluster.
func (c *controller) ofCluster(ctx context.Context, key client.ObjectKey) []reconcile.Request {
	var list certificatesv1.CertificateSigningRequestList
	if err := c.client.List(ctx, &list); err != nil {
		return nil // the periodic recheck reads them again
	}
	var out []reconcile.Request
	for i := range list.Items {
		if r := &list.Items[i]; r.Spec.SignerName == SignerOf(key) && state(r) == certificatesv1.CertificateApproved {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: r.Name}})
		}
	}
	return out
}

// Reconcile decides about one CertificateSigningRequest and writes the decision. controller-runtime calls it for
// changes of requests, and for changes of the connections to their Clusters.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r := &certificatesv1.CertificateSigningRequest{}
	if err := c.client.Get(ctx, req.NamespacedName, r); err != nil || !r.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	key, ours := clusterOf(r.Spec.SignerName)
	if !ours || !c.reconciles(key.Namespace) || c.writer.Writes().Stale(r) {
		return ctrl.Result{}, nil
	}
	s, included, err := c.observe(ctx, r, key)
	if err != nil || !included {
		return ctrl.Result{}, err
	}
	v := decide(s)
	switch {
	case v.Deny != nil:
		return ctrl.Result{}, c.writer.Deny(ctx, r, v.Deny.Reason, v.Deny.Message)
	case v.Approve != nil:
		return ctrl.Result{}, c.writer.Approve(ctx, r, v.Approve.Reason, v.Approve.Message)
	case v.Fail != nil:
		return ctrl.Result{}, c.writer.FailRequest(ctx, r, v.Fail.Reason, v.Fail.Message)
	case v.Issue != nil:
		err := c.issue(ctx, s, *v.Issue)
		if fault.KindOf(err) == fault.Unreachable {
			return ctrl.Result{RequeueAfter: recheck}, nil // a new connection enqueues it earlier
		}
		return ctrl.Result{}, err
	case v.Wait != "":
		ctrl.LoggerFrom(ctx).V(2).Info("waiting to process a request for credentials", "request", r.Name, "reason", v.Wait)
		return ctrl.Result{RequeueAfter: recheck}, nil
	}
	return ctrl.Result{}, nil
}

func (c *controller) reconciles(namespace string) bool {
	for _, n := range c.settings.Namespaces {
		if n == namespace {
			return true
		}
	}
	return len(c.settings.Namespaces) == 0
}

// observe reads the input of the decision about a request. A Cluster that another manager reconciles is not
// included.
func (c *controller) observe(ctx context.Context, r *certificatesv1.CertificateSigningRequest, key client.ObjectKey) (s snapshot, included bool, err error) {
	s = snapshot{Now: c.now(), Request: r}
	cluster := &clusterv1.Cluster{}
	switch err := c.client.Get(ctx, key, cluster); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return s, false, fmt.Errorf("reading Cluster %s: %w", key, err)
	default:
		s.Cluster = cluster
		if included, err := c.scope.Includes(ctx, cluster); err != nil || !included {
			return s, false, err
		}
	}
	switch state(r) {
	case "":
		s.Allowed, err = c.mayConnect(ctx, r, key)
	case certificatesv1.CertificateApproved:
		var found secrets.Secrets
		found, err = secrets.Read(ctx, key, []secrets.Purpose{secrets.CA, secrets.Admin}, c.client, c.live)
		s.Authority, s.Kubeconfig = found[secrets.CA], secrets.ParseKubeconfig(found[secrets.Admin])
	}
	return s, true, err
}

// mayConnect reports whether the creator of a request has the verb [verb] on its Cluster.
func (c *controller) mayConnect(ctx context.Context, r *certificatesv1.CertificateSigningRequest, key client.ObjectKey) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: r.Spec.Username, UID: r.Spec.UID, Groups: r.Spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: key.Namespace, Name: key.Name, Verb: verb, Group: clusterv1.GroupVersion.Group, Resource: "clusters",
		},
	}}
	for name, values := range r.Spec.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	got, err := c.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("checking whether user %q may connect to Cluster %s: %w", r.Spec.Username, key, err)
	}
	return got.Status.Allowed, nil
}

// issue binds the role, publishes the connection data of the cluster, and signs the certificate. The certificate
// comes last because the other results are useless without it. Each step may be repeated.
func (c *controller) issue(ctx context.Context, s snapshot, i issue) error {
	cert, pem, err := i.Authority.IssueFor(i.Public, i.Leaf, s.Now)
	if err != nil {
		return c.writer.FailRequest(ctx, s.Request, reasonRule, "the key of the request cannot be signed for: "+err.Error())
	}
	if i.Role != "" {
		missing, err := c.bind(ctx, client.ObjectKeyFromObject(s.Cluster), i, cert.NotAfter, s.Now)
		if err != nil {
			return err
		}
		if missing != "" {
			return c.writer.FailRequest(ctx, s.Request, reasonNoRole, missing)
		}
	}
	cluster, err := json.Marshal(clientcmdv1.Cluster{
		Server: s.Kubeconfig.Server, TLSServerName: s.Kubeconfig.ServerName, CertificateAuthorityData: s.Kubeconfig.CA,
	})
	if err != nil {
		return err
	}
	if s.Request.Annotations[ClusterAnnotation] != string(cluster) { // the write enqueues the request
		return c.writer.Patch(ctx, s.Request, func(o client.Object) {
			annotations := o.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[ClusterAnnotation] = string(cluster)
			o.SetAnnotations(annotations)
		})
	}
	return c.writer.Sign(ctx, s.Request, pem)
}

// bind grants the role to the group of the certificate, after it has deleted the bindings of expired certificates.
// It returns why the role cannot be granted.
func (c *controller) bind(ctx context.Context, key client.ObjectKey, i issue, ends, now time.Time) (missing string, err error) {
	workload, err := c.workloads.Client(ctx, key)
	if err != nil {
		return "", err
	}
	role := &rbacv1.ClusterRole{}
	if err := workload.Get(ctx, client.ObjectKey{Name: i.Role}, role); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("the workload cluster has no ClusterRole %q: name one that it has, such as view, edit, admin or cluster-admin; a simulated cluster has none", i.Role), nil
		}
		return "", fmt.Errorf("reading ClusterRole %s of the workload cluster: %w", i.Role, err)
	}
	writer := c.writer.WithClient(workload)
	if err := deleteExpiredBindings(ctx, workload, writer, now); err != nil {
		return "", err
	}
	err = writer.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: i.Binding, Labels: map[string]string{UserLabel: contract.LabelValue(i.Leaf.User)},
			Annotations: map[string]string{UserAnnotation: i.Leaf.User, ExpiresAnnotation: ends.UTC().Format(time.RFC3339)},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.Role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: i.Group}},
	})
	if apierrors.IsAlreadyExists(err) {
		return "", nil
	}
	return "", err
}

// deleteExpiredBindings deletes the bindings of expired certificates. A binding without a valid expiry was created by a
// user and is not deleted.
func deleteExpiredBindings(ctx context.Context, workload client.Client, writer *kube.Writer, now time.Time) error {
	var list rbacv1.ClusterRoleBindingList
	if err := workload.List(ctx, &list, client.HasLabels{UserLabel}); err != nil {
		return fmt.Errorf("listing ClusterRoleBindings of the workload cluster: %w", err)
	}
	for n := range list.Items {
		b := &list.Items[n]
		ends, err := time.Parse(time.RFC3339, b.Annotations[ExpiresAnnotation])
		if err != nil || now.Before(ends) || !strings.HasPrefix(b.Name, BindingPrefix) {
			continue
		}
		if err := writer.Delete(ctx, b); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
