package rbac

import (
	"fmt"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// identityPolicies returns the policies that limit the use of permissions that RBAC grants for all objects of a kind.
// RBAC cannot distinguish Secrets by type, and Kubernetes fills a new Secret of type
// kubernetes.io/service-account-token with the token of the ServiceAccount that it names. Without the policies, create
// and get on Secrets would amount to the permissions of every controller. The policies are part of [Objects].
func (r Rights) identityPolicies() ([]*unstructured.Unstructured, error) {
	policies := []*admissionregistrationv1.ValidatingAdmissionPolicy{r.secretsPolicy(), r.configMapsPolicy()}
	if r.runsPlanes() {
		policies = append(policies, r.planesPolicy())
	}
	var out []*unstructured.Unstructured
	for _, p := range policies {
		for _, o := range []runtime.Object{p, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   typeMeta(admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicyBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: p.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}} {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, fmt.Errorf("preparing policies: %w", err)
			}
			unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
			unstructured.RemoveNestedField(content, "status")
			out = append(out, &unstructured.Unstructured{Object: content})
		}
	}
	return out, nil
}

// secretsPolicy allows the identities to write only Secrets of Cluster API with a Cluster API owner, outside the
// namespaces of Kubernetes. Controllers with an identity of their own cannot write to the namespace of the manager,
// where the process stores the certificate of its webhooks.
func (r Rights) secretsPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	types := []string{strconv.Quote(string(clusterv1.ClusterSecretType)), strconv.Quote(string(corev1.SecretTypeTLS))}
	if !r.Separate { // read by the Pods of hosted control planes
		types = append(types, strconv.Quote(string(corev1.SecretTypeOpaque)))
	}
	home := "request.namespace == " + strconv.Quote(r.namespace())
	p := r.policy("secrets", rule("", "secrets", nil), admissionregistrationv1.Create, admissionregistrationv1.Update)
	p.Spec.Validations = []admissionregistrationv1.Validation{
		outsideKubernetes(), r.outsideHome(),
		{
			Expression: `request.operation != "CREATE" || object.type == ` + strconv.Quote(string(clusterv1.ClusterSecretType)) +
				` || ` + home + ` && object.type in [` + strings.Join(types, ", ") + `]`,
			Reason:            new(metav1.StatusReasonForbidden),
			MessageExpression: `"Controllers of Slipway create no Secrets of type " + object.type`,
		},
		{
			Expression: `request.operation != "UPDATE" || !(oldObject.type in [` + strconv.Quote(string(corev1.SecretTypeServiceAccountToken)) + `, ` +
				strconv.Quote(string(corev1.SecretTypeBootstrapToken)) + `])`,
			Reason:            new(metav1.StatusReasonForbidden),
			MessageExpression: `"Controllers of Slipway change no Secrets of type " + oldObject.type`,
		},
		{
			Expression: `request.operation != "CREATE" || ` + home + ` || has(object.metadata.ownerReferences) && ` +
				`object.metadata.ownerReferences.exists(o, o.apiVersion.matches("^([a-z]+[.])*(cluster[.]x-k8s[.]io|slipway[.]dev)/"))`,
			Reason:  new(metav1.StatusReasonForbidden),
			Message: "Controllers of Slipway create only Secrets that an object of Cluster API owns",
		},
	}
	return p
}

// configMapsPolicy allows the identities to create and delete only the locks of control planes that are being
// initialized.
func (r Rights) configMapsPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := r.policy("configmaps", rule("", "configmaps", nil), admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)
	p.Spec.Validations = []admissionregistrationv1.Validation{
		outsideKubernetes(), r.outsideHome(),
		{
			Expression: `request.operation == "UPDATE" || request.name.endsWith("-lock")`, Reason: new(metav1.StatusReasonForbidden),
			Message: "Controllers of Slipway create and delete no ConfigMaps but CLUSTER-lock",
		},
	}
	return p
}

// planesPolicy prevents the Pods of hosted control planes, which run in the namespace of the managers, from using
// ServiceAccount tokens and the Secrets of others.
func (r Rights) planesPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := r.policy("control-planes", rule("apps", "statefulsets", nil), admissionregistrationv1.Create, admissionregistrationv1.Update)
	const pod = "object.spec.template.spec"
	p.Spec.Validations = []admissionregistrationv1.Validation{
		{
			Expression: `has(` + pod + `.automountServiceAccountToken) && !` + pod + `.automountServiceAccountToken && ` +
				`(!has(` + pod + `.serviceAccountName) || ` + pod + `.serviceAccountName in ["", "default"])`,
			Reason: new(metav1.StatusReasonForbidden), Message: "Pods of hosted control planes have no ServiceAccount",
		},
		{
			Expression: `!has(` + pod + `.volumes) || ` + pod + `.volumes.all(v, !has(v.projected) && ` +
				`(!has(v.secret) || has(v.secret.secretName) && v.secret.secretName == object.metadata.name))`,
			Reason: new(metav1.StatusReasonForbidden), Message: "Pods of hosted control planes read the Secret of their own name alone",
		},
	}
	return p
}

// policy returns a policy for requests of the identities of these Rights.
func (r Rights) policy(
	about string, of rbacv1.PolicyRule, operations ...admissionregistrationv1.OperationType,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	name := "slipway-identities-" + about
	user := `request.userInfo.username == "` + User + `" || request.userInfo.username.startsWith("` + User + `:") || ` +
		`request.userInfo.username.startsWith("system:serviceaccount:` + r.namespace() + `:slipway-")`
	if r.PodNamespace != "" { // each provider's components have a policy of their own, so that they can be installed and removed separately
		name = r.ServiceAccount() + "-" + about
		user = `request.userInfo.username == "system:serviceaccount:` + r.namespace() + `:` + r.ServiceAccount() + `"`
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta:   typeMeta(admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicy"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: new(admissionregistrationv1.Equivalent),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule:       admissionregistrationv1.Rule{APIGroups: of.APIGroups, APIVersions: []string{"v1"}, Resources: of.Resources},
				}}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "an-identity-of-slipway", Expression: user}},
		},
	}
}

func outsideKubernetes() admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: `!request.namespace.startsWith("kube-")`, Reason: new(metav1.StatusReasonForbidden),
		MessageExpression: `"Controllers of Slipway write nothing in namespace " + request.namespace`,
	}
}

// outsideHome excludes the manager's namespace for the identities of single providers. The identity of the process, and
// a ServiceAccount that is both, can write there.
func (r Rights) outsideHome() admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{
		Expression: `request.namespace != ` + strconv.Quote(r.namespace()) + ` || !request.userInfo.username.startsWith("` + User + `:")`,
		Reason:     new(metav1.StatusReasonForbidden), Message: "Controllers of a provider write nothing in namespace " + r.namespace(),
	}
}
