package controlplane

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// nodeLabel on a namespace permits its Pods and Services on the management node. Only administrators can
	// write namespaces.
	nodeLabel = "slipway.dev/management-node"
	nodeAllow = "allowed"

	// Labels that provider installers set on the namespaces that they create.
	providerLabel  = "cluster.x-k8s.io/provider"
	installedLabel = "clusterctl.cluster.x-k8s.io"
	coreLabel      = "clusterctl.cluster.x-k8s.io/core" // of cert-manager

	// Names of the policies. Management clusters of earlier starts contain them, and restrictNode finds them by name.
	tenantWorkloads  = "slipway-management-node"
	systemPriorities = "slipway-system-priorities"
)

// restrictNode writes the policies that exclude tenants from the management node, or deletes them if there is no node.
// It is called at each start of the management cluster. The node is reserved for providers, because its Pods share a
// network and a kernel with them, and its kube-proxy serves all Services of the cluster. The method admit
// (management.go) calls it.
func restrictNode(ctx context.Context, root *rest.Config, node bool) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range nodePolicies() {
		if node {
			errs = append(errs, applyPolicy(ctx, client, p))
		} else {
			errs = append(errs, deletePolicy(ctx, client, p.Name))
		}
	}
	return errors.Join(errs...)
}

func nodePolicies() []*admissionregistrationv1.ValidatingAdmissionPolicy {
	return []*admissionregistrationv1.ValidatingAdmissionPolicy{workloadsPolicy(), prioritiesPolicy()}
}

// workloadsPolicy denies Pods, workloads and Services in namespaces without a label. It denies workloads in
// addition to their Pods, so that their author gets the message.
func workloadsPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	absent := func(key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
	}
	p := denyPolicy(tenantWorkloads, []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}},
		{Key: nodeLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{nodeAllow}},
		absent(providerLabel), absent(installedLabel), absent(coreLabel),
	}, []admissionregistrationv1.NamedRuleWithOperations{
		written("", "pods", "replicationcontrollers", "services"),
		written("apps", "daemonsets", "deployments", "replicasets", "statefulsets"),
		written("batch", "cronjobs", "jobs"),
	})
	p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{
		// The Service of kube-apiserver.
		{Name: "not-kubernetes", Expression: `!(request.resource.resource == "services" && request.namespace == "default" && request.name == "kubernetes")`},
		// Existing objects continue to work and can be deleted, which includes updates that remove
		// finalizers.
		{Name: "new", Expression: `request.operation == "CREATE" || object.spec != oldObject.spec`},
	}
	p.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "false", Reason: new(metav1.StatusReasonForbidden),
		MessageExpression: `"namespace " + request.namespace + " may not use the node of the management cluster, which is for providers: ` +
			`an administrator can allow it with \"kubectl label namespace " + request.namespace + " ` + nodeLabel + `=` + nodeAllow + `\""`,
	}}
	return p
}

// prioritiesPolicy reserves system priorities, which evict other Pods, for Kubernetes and providers.
func prioritiesPolicy() *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := denyPolicy(systemPriorities, []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{metav1.NamespaceSystem}},
		{Key: providerLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
	}, []admissionregistrationv1.NamedRuleWithOperations{written("", "pods")})
	p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{
		{Name: "new", Expression: `request.operation == "CREATE"`},
		{Name: "system-priority", Expression: `object.spec.?priorityClassName.orValue("").startsWith("system-")`},
	}
	p.Spec.Validations = []admissionregistrationv1.Validation{{
		Expression: "false", Reason: new(metav1.StatusReasonForbidden),
		MessageExpression: `"priority class " + object.spec.priorityClassName + " is for kube-system and providers: use another one"`,
	}}
	return p
}

func denyPolicy(
	name string, namespaces []metav1.LabelSelectorRequirement, rules []admissionregistrationv1.NamedRuleWithOperations,
) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy:       new(admissionregistrationv1.Equivalent),
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: namespaces},
				ObjectSelector:    &metav1.LabelSelector{},
				ResourceRules:     rules,
			},
		},
	}
}

func written(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources, Scope: new(admissionregistrationv1.AllScopes),
		},
	}}
}

func applyPolicy(ctx context.Context, client kubernetes.Interface, want *admissionregistrationv1.ValidatingAdmissionPolicy) error {
	policies, bindings := client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		live, getErr := policies.Get(ctx, want.Name, metav1.GetOptions{})
		if err = getErr; err == nil && !equality.Semantic.DeepEqual(live.Spec, want.Spec) {
			live.Spec = want.Spec // an earlier version wrote a different spec
			_, err = policies.Update(ctx, live, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("write ValidatingAdmissionPolicy %s: %w", want.Name, err)
	}
	_, err = bindings.Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: want.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: want.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ValidatingAdmissionPolicyBinding %s: %w", want.Name, err)
	}
	return nil
}

func deletePolicy(ctx context.Context, client kubernetes.Interface, name string) error {
	err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		err = client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
