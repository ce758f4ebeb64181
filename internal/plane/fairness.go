package plane

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// flowSchema is the name of the FlowSchema of the manager and the administrators.
const flowSchema = "slipway"

// exempt lets the manager and administrators through when requests have to wait. Everybody else shares what there is by
// user, with the priority level that kube-apiserver makes by default.
func exempt(ctx context.Context, root *rest.Config) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return err
	}
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: flowSchema},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
			MatchingPrecedence:         10, // before the defaults
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: ManagerUser}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: managerGroup}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: AdminGroup}},
				},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
					Verbs: []string{flowcontrolv1.VerbAll}, APIGroups: []string{flowcontrolv1.APIGroupAll},
					Resources: []string{flowcontrolv1.ResourceAll}, ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
				}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{
					Verbs: []string{flowcontrolv1.VerbAll}, NonResourceURLs: []string{flowcontrolv1.NonResourceAll},
				}},
			}},
		},
	}
	schemas := client.FlowcontrolV1().FlowSchemas()
	_, err = schemas.Create(ctx, schema, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return unlessThere("FlowSchema "+flowSchema, err)
	}
	live, err := schemas.Get(ctx, flowSchema, metav1.GetOptions{})
	if err != nil || equality.Semantic.DeepEqual(live.Spec, schema.Spec) {
		return err
	}
	live.Spec = schema.Spec // an earlier version wrote another one
	_, err = schemas.Update(ctx, live, metav1.UpdateOptions{})
	return err
}
