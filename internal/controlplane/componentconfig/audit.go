package componentconfig

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/audit"
	auditinstall "k8s.io/apiserver/pkg/apis/audit/install"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// AuditPolicy returns the audit policy file of kube-apiserver, which defines the requests that are recorded. Package
// controlplane writes it before a management or workload cluster starts.
func AuditPolicy(a hostedv1.Audit) ([]byte, error) {
	policy := defaultAuditPolicy()
	if a.Policy != nil {
		policy = *a.Policy
	}
	return json.Marshal(struct {
		metav1.TypeMeta      `json:",inline"`
		hostedv1.AuditPolicy `json:",inline"`
	}{metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"}, policy})
}

// auditProblems validates the encoded audit policy, for [Problems].
func auditProblems(a hostedv1.Audit) field.ErrorList {
	text, err := AuditPolicy(a)
	policy := &audit.Policy{}
	if err == nil {
		err = decode(text, policy, auditinstall.Install)
	}
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath("rules"), err)}
	}
	return auditvalidation.ValidatePolicy(policy)
}

// defaultAuditPolicy records the metadata of requests and of reads of Secrets, without contents. It leaves
// out the reads of system components and the Events and Leases that these write continuously.
func defaultAuditPolicy() hostedv1.AuditPolicy {
	reads := []string{"get", "list", "watch"}
	return hostedv1.AuditPolicy{
		OmitStages: []hostedv1.AuditStage{"RequestReceived"},
		Rules: []hostedv1.AuditRule{
			{Level: "Metadata", Resources: []hostedv1.AuditResources{{Resources: []string{"secrets", "serviceaccounts/token"}}}},
			{Level: "None", Verbs: reads, Users: []string{"system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"}},
			{Level: "None", Verbs: reads, UserGroups: []string{"system:nodes", "system:serviceaccounts:kube-system"}},
			{Level: "None", NonResourceURLs: []string{"/healthz*", "/livez*", "/readyz*", "/version", "/openapi*", "/api", "/api/*", "/apis", "/apis/*"}},
			{Level: "None", Resources: []hostedv1.AuditResources{
				{Resources: []string{"events"}}, {Group: "events.k8s.io", Resources: []string{"events"}}, {Group: "coordination.k8s.io", Resources: []string{"leases"}},
			}},
			{Level: "Metadata"},
		},
	}
}
