package rbac

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// processClusterRole returns the role of the process that runs a provider. The process manages the CRDs and webhook
// configurations of the provider, by name, authorizes requests for diagnostics, and reads for the caches all objects
// that the provider's controllers read.
//
// The role lists the CRDs by name, because the conversion webhook of another CRD would see and could change all its
// objects. Creation by server-side apply includes the name, so RBAC can restrict it, too.
func (r Rights) processClusterRole(set providerset.Set, roles []*unstructured.Unstructured) (*rbacv1.ClusterRole, error) {
	role := &rbacv1.ClusterRole{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
		ObjectMeta: metav1.ObjectMeta{Name: processNameOf(set.Name)},
		Rules: []rbacv1.PolicyRule{
			rule(apiextensionsv1.GroupName, "customresourcedefinitions", nil, "get", "list", "watch"),
			rule(apiextensionsv1.GroupName, "customresourcedefinitions", set.CRDs, "create", "update", "patch"),
			rule(apiextensionsv1.GroupName, "customresourcedefinitions/status", set.CRDs, "patch"),
			rule(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations", []string{set.MutatingWebhookName()}, "get", "create", "update", "patch"),
			rule(admissionregistrationv1.GroupName, "validatingwebhookconfigurations", []string{set.ValidatingWebhookName()}, "get", "create", "update", "patch"),
			rule(authenticationv1.GroupName, "tokenreviews", nil, "create"),
			rule(authorizationv1.GroupName, "subjectaccessreviews", nil, "create"),
			rule(corev1.GroupName, "namespaces", []string{r.namespace()}, "get"),
		},
	}
	if set.ReferenceWebhookName != "" { // detects a running manager of the reference implementation before this one starts
		role.Rules = append(role.Rules, rule(admissionregistrationv1.GroupName, "validatingwebhookconfigurations", []string{set.ReferenceWebhookName}, "get"))
	}
	for _, object := range roles {
		of := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, of); err != nil {
			return nil, fmt.Errorf("reading ClusterRole %s: %w", object.GetName(), err)
		}
		for _, read := range of.Rules {
			if status := statusRule(read); len(status.Resources) > 0 {
				role.Rules = append(role.Rules, status)
			}
			read.Verbs = slices.DeleteFunc(slices.Clone(read.Verbs), func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
			if len(read.Verbs) > 0 {
				role.Rules = append(role.Rules, read)
			}
		}
	}
	return role, nil
}

// statusRule returns the part of a rule that lets the process report on the objects of a provider if the provider's own
// identity lacks its permissions: patching a status, and events.
func statusRule(of rbacv1.PolicyRule) rbacv1.PolicyRule {
	out := rbacv1.PolicyRule{APIGroups: of.APIGroups, Verbs: []string{"patch"}}
	for _, resource := range of.Resources {
		if strings.HasSuffix(resource, "/status") && slices.Contains(of.Verbs, "patch") {
			out.Resources = append(out.Resources, resource)
		}
		if resource == "events" && slices.Contains(of.Verbs, "create") {
			out.Resources, out.Verbs = []string{resource}, []string{"create", "patch"}
		}
	}
	return out
}

func rule(group, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
}

func processNameOf(set providerset.Name) string { return RoleOf(set) + "-process" }

// homeRole returns the role of a manager's process in its own namespace: leader election and the certificate of the
// webhooks. [Objects] contains it.
func (r Rights) homeRole() *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace(), Name: processRole},
		Rules: []rbacv1.PolicyRule{
			rule(coordinationv1.GroupName, "leases", nil, "get", "list", "watch", "create", "update", "patch", "delete"),
			rule(corev1.GroupName, "secrets", nil, "get", "create", "patch"),
			{APIGroups: []string{corev1.GroupName, eventsv1.GroupName}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		},
	}
}

// podControlPlanesRole returns the role of the provider control-plane-hosted in the namespace of its own Pods: it runs
// control planes there, as Pods without any permissions. No other provider can run workloads in the management cluster.
func (r Rights) podControlPlanesRole() *rbacv1.Role {
	all := []string{"get", "list", "watch", "create", "patch", "delete"}
	return &rbacv1.Role{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "Role"),
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace(), Name: planesRole},
		Rules: []rbacv1.PolicyRule{
			rule(appsv1.GroupName, "statefulsets", nil, all...),
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"services", "persistentvolumeclaims"}, Verbs: all},
			rule(networkingv1.GroupName, "networkpolicies", nil, "get", "create", "patch", "delete"),
			rule(corev1.GroupName, "secrets", nil, "get", "create", "patch", "delete"),
			rule(corev1.GroupName, "pods", nil, "get", "list", "watch"),
		},
	}
}

// runsPlanes reports whether control planes run as Pods in the namespace of the manager.
func (r Rights) runsPlanes() bool {
	return (r.PodNamespace != "" || r.HostedInPods) && providerset.Contains(r.sets(), providerset.ControlPlaneHosted)
}

// bindings returns the bindings of the roles to the identities that run the providers. [Objects] contains them.
func (r Rights) bindings() []runtime.Object {
	process := r.subjects(User)
	var out []runtime.Object
	for _, set := range r.sets() {
		own := r.subjects(r.UserOf(set.Name))
		withProcess := own
		if r.Separate {
			withProcess = slices.Concat(own, process)
		}
		if len(set.Controllers) > 0 {
			out = append(out, clusterBinding(RoleOf(set.Name), own))
		}
		if set.Name == providerset.Core { // the process reads all provider kinds for the caches
			out = append(out, clusterBinding(aggregated, withProcess))
		}
		if set.Name == providerset.ControlPlaneKubeadm { // likewise: it creates infrastructure machines of any kind
			out = append(out, clusterBinding(machinesOfProviders, withProcess))
		}
		name := processNameOf(set.Name)
		out = append(out, clusterBinding(name, process), r.binding(name, processRole, process))
	}
	if r.runsPlanes() {
		out = append(out, r.podControlPlanesRole(), r.binding(planesRole, planesRole, r.subjects(r.UserOf(providerset.ControlPlaneHosted))))
	}
	return out
}

// subjects returns the user, and the ServiceAccount of a manager with a single identity.
func (r Rights) subjects(user string) []rbacv1.Subject {
	var out []rbacv1.Subject
	if r.PodNamespace == "" {
		out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
	}
	if !r.Separate {
		out = append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: r.namespace(), Name: r.ServiceAccount()})
	}
	return out
}

// binding binds a role in the namespace of the manager.
func (r Rights) binding(name, role string, subjects []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "RoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace(), Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   subjects,
	}
}

func clusterBinding(role string, subjects []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   subjects,
	}
}
