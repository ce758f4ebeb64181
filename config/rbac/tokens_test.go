package rbac_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// identities are all users that the manager and its providers have, in slipway up and elsewhere.
func identities(t *testing.T, c client.Client) []string {
	t.Helper()
	all := []string{rbac.User, account(rbac.ServiceAccount)}
	together := rbac.Rights{HostedInPods: true}
	apply(t, c, rbac.Rights{Separate: true})
	apply(t, c, together)
	for _, set := range providerset.All() {
		apply(t, c, rbac.Rights{Sets: []providerset.Set{set}, HostedInPods: true})
		apply(t, c, rbac.Rights{Sets: []providerset.Set{set}, PodNamespace: home})
		all = append(all, account(rbac.RoleOf(set.Name)), "system:serviceaccount:"+home+":"+rbac.RoleOf(set.Name))
		if len(set.Controllers) > 0 {
			all = append(all, rbac.Rights{Separate: true}.UserOf(set.Name))
		}
	}
	return all
}

// home is where a release runs.
const home = "home"

func account(name string) string { return "system:serviceaccount:" + rbac.Namespace + ":" + name }

func apply(t *testing.T, c client.Client, rights rbac.Rights) {
	t.Helper()
	objects, err := rbac.Objects(rights)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch o.GetKind() { // bindings of one set replace those of another: here all are in force
		case "ClusterRoleBinding", "RoleBinding":
			o.SetName(fmt.Sprintf("%s-%t-%d-%t-%s", o.GetName(), rights.Separate, len(rights.Sets), rights.HostedInPods, rights.PodNamespace))
		}
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// S6: no identity of the manager obtains a token or certificate of another ServiceAccount or user, nor a right that it does not have.
func TestIdentitiesObtainNoOthers(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := administrator(t, server)
	if err := crds.Install(t.Context(), c, crds.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{tenant, rbac.Namespace} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "victim"}}); err != nil {
			t.Fatal(err)
		}
	}
	existing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "existing"}}
	if err := c.Create(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	users := identities(t, c)
	core, manager := as(t, server.Config, rbac.User+":cluster-api"), as(t, server.Config, rbac.User)
	var released []client.Client
	for _, user := range users {
		if strings.HasPrefix(user, "system:serviceaccount:"+home+":") {
			released = append(released, as(t, server.Config, user))
		}
	}
	other := statefulSet(func(s *corev1.PodSpec) { s.ServiceAccountName = "victim" })
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: tenant, Verb: "create", Resource: "secrets"},
		}}
		if err := core.Create(ctx, review); err != nil || !review.Status.Allowed {
			return false, err
		}
		refused := apierrors.IsForbidden(core.Create(ctx, token("kube-system"), client.DryRunAll)) && apierrors.IsForbidden(manager.Create(ctx, other.DeepCopy(), client.DryRunAll))
		for _, c := range released { // policies come into force one by one
			refused = refused && apierrors.IsForbidden(c.Create(ctx, token("kube-system"), client.DryRunAll))
		}
		return refused, nil
	})
	if err != nil {
		t.Fatalf("waiting for rights and policies: %v", err)
	}
	for _, user := range users {
		t.Run(user, func(t *testing.T) {
			played := as(t, server.Config, user)
			for name, attempt := range attempts(t, existing) {
				err := attempt(t.Context(), played)
				if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if user == rbac.User || strings.HasPrefix(user, "system:") {
				return
			}
			// What its work is stays allowed, where its role gives it.
			if err := played.Create(t.Context(), ofCluster("work-"+user[strings.LastIndex(user, ":")+1:])); err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				t.Errorf("a Secret of a cluster: %v", err)
			}
		})
	}
}

// as is a client that acts as a user.
func as(t *testing.T, config *rest.Config, user string) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	groups := []string{"system:authenticated"}
	if name, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(name, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return clientOf(t, config)
}

func token(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stolen", Annotations: map[string]string{corev1.ServiceAccountNameKey: "generic-garbage-collector"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// ofCluster is a Secret as controllers create them.
func ofCluster(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: tenant, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "u"}},
	}, Type: clusterv1.ClusterSecretType}
}

type attempt func(context.Context, client.Client) error

// attempts are the ways to a token, a certificate, or rights of others.
func attempts(t *testing.T, existing *corev1.Secret) map[string]attempt {
	t.Helper()
	creates := func(o client.Object) attempt {
		return func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll)
		}
	}
	meta := metav1.ObjectMeta{Namespace: tenant, Name: "stolen"}
	out := map[string]attempt{
		"a Secret without an owner": creates(&corev1.Secret{ObjectMeta: meta, Type: clusterv1.ClusterSecretType}),
		"an Opaque Secret":          creates(&corev1.Secret{ObjectMeta: meta}),
		"a bootstrap token":         creates(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken}),
		"a ConfigMap of Kubernetes": creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}}),
		"a lock in kube-system":     creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "c-lock"}}),
		"another ConfigMap":         creates(&corev1.ConfigMap{ObjectMeta: meta}),
		"deleting another ConfigMap": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "kube-root-ca.crt"}}, client.DryRunAll)
		},
		"a Pod of another":             creates(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{ServiceAccountName: "victim", Containers: []corev1.Container{{Name: "c", Image: "c"}}}}),
		"a ServiceAccount":             creates(&corev1.ServiceAccount{ObjectMeta: meta}),
		"binding a role":               creates(&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}),
		"binding a role everywhere":    creates(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}),
		"a role that is gathered":      creates(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "stolen", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}}}),
		"a certificate":                creates(request(t)),
		"a webhook that reads Secrets": creates(webhookOf("stolen")),
		"a token of a ServiceAccount":  func(ctx context.Context, c client.Client) error { return mint(ctx, c, tenant, "victim") },
		"a token in the manager's own": func(ctx context.Context, c client.Client) error { return mint(ctx, c, rbac.Namespace, "victim") },
		"a token of Kubernetes' own": func(ctx context.Context, c client.Client) error {
			return mint(ctx, c, "kube-system", "generic-garbage-collector")
		},
		"a Secret that becomes a token": func(ctx context.Context, c client.Client) error { return retype(ctx, c, existing) },
		"a StatefulSet with a token":    creates(statefulSet(func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = nil })),
		"a StatefulSet of another":      creates(statefulSet(func(s *corev1.PodSpec) { s.ServiceAccountName = "victim" })),
		"a StatefulSet with a projection": creates(statefulSet(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}}}}}}}
		})),
		"a StatefulSet that reads a Secret of others": creates(statefulSet(func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "victim-token"}}}}
		})),
	}
	for _, namespace := range []string{"kube-system", "kube-public", "default", tenant, rbac.Namespace, home} {
		out["a token Secret in "+namespace] = creates(token(namespace))
		out["a token Secret by an apply in "+namespace] = func(ctx context.Context, c client.Client) error {
			body := `{"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/service-account-token","metadata":{"name":"stolen","annotations":{"kubernetes.io/service-account.name":"victim"}}}`
			return c.Patch(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stolen"}},
				client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner("x"), client.DryRunAll)
		}
		owned := token(namespace)
		owned.OwnerReferences = ofCluster("c").OwnerReferences
		out["a token Secret with an owner in "+namespace] = creates(owned)
	}
	for _, namespace := range []string{"kube-system", "kube-node-lease"} {
		secret := ofCluster("c")
		secret.Namespace = namespace
		out["a Secret of a cluster in "+namespace] = creates(secret)
	}
	return out
}

func mint(ctx context.Context, c client.Client, namespace, name string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
}

func retype(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	body := `{"type":"kubernetes.io/service-account-token","metadata":{"annotations":{"kubernetes.io/service-account.name":"victim"}}}`
	return c.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)), client.DryRunAll)
}

func statefulSet(change func(*corev1.PodSpec)) *appsv1.StatefulSet {
	labels := map[string]string{"a": "a"}
	out := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "stolen"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "c", Image: "c"}},
		}},
	}}
	change(&out.Spec.Template.Spec)
	return out
}

func request(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:admin"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

func webhookOf(name string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// What no identity may do at all, as a review says: requests alone do not show it, because the names are those of objects.
// ofClusters reports whether a rule is about the signers of workload clusters alone: what they sign is worth nothing in this one.
func ofClusters(r rbacv1.PolicyRule) bool {
	return slices.Equal(r.Resources, []string{"signers"}) && slices.Equal(r.ResourceNames, []string{"clusters.slipway.dev/*"})
}

func TestIdentitiesHaveNoRightsOverOthers(t *testing.T) {
	for _, rights := range []rbac.Rights{{Separate: true}, {HostedInPods: true}, {PodNamespace: home}} {
		objects, err := rbac.Objects(rights)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if kind := o.GetKind(); kind != "ClusterRole" && kind != "Role" || strings.HasPrefix(o.GetName(), "slipway-cluster-operator") || o.GetName() == "slipway-credentials-requester" {
				continue
			}
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			for _, r := range role.Rules {
				for _, verb := range r.Verbs {
					if ofClusters(r) {
						continue
					}
					if slices.Contains([]string{"impersonate", "escalate", "bind", "approve", "sign", "attest", "*"}, verb) {
						t.Errorf("%s may %s %v", o.GetName(), verb, r.Resources)
					}
				}
				for _, resource := range r.Resources {
					if resource == "certificatesigningrequests" && !slices.Contains(r.Verbs, "create") { // others' requests, whose spec cannot be changed
						continue
					}
					if slices.Contains([]string{"serviceaccounts", "serviceaccounts/token", "certificatesigningrequests", "pods/exec", "pods/attach", "nodes/proxy"}, resource) {
						t.Errorf("%s has %v on %s", o.GetName(), r.Verbs, resource)
					}
				}
			}
		}
	}
}
