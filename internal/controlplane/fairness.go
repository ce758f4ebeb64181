package controlplane

import (
	"context"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// flowSchema is the FlowSchema of the manager and of administrators.
const flowSchema = "slipway"

// collections is the FlowSchema and the priority level of requests that read whole collections.
const collections = "slipway-collections"

// Values of the FlowSchemas and the priority level. A FlowSchema with a lower precedence matches first.
const (
	beforeDefaults   = 10   // after the exemptions of Kubernetes (1 and 2), before all its other FlowSchemas
	beforeTenants    = 8000 // after nodes, kube-controller-manager and kube-system, before ServiceAccounts and other users
	sharesOfDefaults = 245  // the sum of the shares of the priority levels that kube-apiserver creates
	// A LIST may take seats up to 15 % of its level, and half of the level at most (handSize).
	handSize = 2
)

// fairness configures API Priority and Fairness.
type fairness struct {
	client kubernetes.Interface
	memory int64 // of the host, in bytes
}

// applyFairness configures API Priority and Fairness of the management cluster; [StartManagement] calls it before it
// grants access to users. Requests of the manager and of administrators do not wait. Requests of other users that read
// whole collections only wait for each other, because they have a separate priority level without borrowing.
func applyFairness(ctx context.Context, root *rest.Config, memory int64) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return err
	}
	f := fairness{client: client, memory: memory}
	if err := f.applySchema(ctx, exempt()); err != nil {
		return err
	}
	if err := f.applyLevel(ctx, f.collectionsLevel()); err != nil {
		return err
	}
	return f.applySchema(ctx, collectionsSchema())
}

// exempt exempts the manager and administrators from queues. Other users share the capacity by user.
func exempt() *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: flowSchema},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
			MatchingPrecedence:         beforeDefaults,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: managerUser}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: managerGroup}},
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: adminGroup}},
				},
				ResourceRules: everyResource(flowcontrolv1.VerbAll),
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{
					Verbs: []string{flowcontrolv1.VerbAll}, NonResourceURLs: []string{flowcontrolv1.NonResourceAll},
				}},
			}},
		},
	}
}

// collectionsSchema matches lists of all users, and distinguishes flows by user.
func collectionsSchema() *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: collections},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: collections},
			MatchingPrecedence:         beforeTenants,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{
					{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: user.AllAuthenticated}},
				},
				ResourceRules: everyResource("list", "deletecollection"),
			}},
		},
	}
}

func everyResource(verbs ...string) []flowcontrolv1.ResourcePolicyRule {
	return []flowcontrolv1.ResourcePolicyRule{{
		Verbs: verbs, APIGroups: []string{flowcontrolv1.APIGroupAll},
		Resources: []string{flowcontrolv1.ResourceAll}, ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
	}}
}

// collectionsLevel has one seat for each GiB of memory, from 7 to 20. This allows as many concurrent small
// lists, or about five large ones.
func (f fairness) collectionsLevel() *flowcontrolv1.PriorityLevelConfiguration {
	all := int64(inFlight(f.memory))
	seats := min(max(f.memory>>30, 7), 20)
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: collections},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(seats * sharesOfDefaults / (all - seats))),
				BorrowingLimitPercent:    new(int32(0)),
				LendablePercent:          new(int32(0)),
				LimitResponse: flowcontrolv1.LimitResponse{
					Type:    flowcontrolv1.LimitResponseTypeQueue,
					Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: handSize, QueueLengthLimit: 50},
				},
			},
		},
	}
}

func (f fairness) applySchema(ctx context.Context, want *flowcontrolv1.FlowSchema) error {
	schemas := f.client.FlowcontrolV1().FlowSchemas()
	_, err := schemas.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return ignoreAlreadyExists("FlowSchema "+want.Name, err)
	}
	live, err := schemas.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || equality.Semantic.DeepEqual(live.Spec, want.Spec) {
		return err
	}
	live.Spec = want.Spec // an earlier version wrote a different spec
	_, err = schemas.Update(ctx, live, metav1.UpdateOptions{})
	return err
}

func (f fairness) applyLevel(ctx context.Context, want *flowcontrolv1.PriorityLevelConfiguration) error {
	levels := f.client.FlowcontrolV1().PriorityLevelConfigurations()
	_, err := levels.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return ignoreAlreadyExists("PriorityLevelConfiguration "+want.Name, err)
	}
	live, err := levels.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || equality.Semantic.DeepEqual(live.Spec, want.Spec) {
		return err
	}
	live.Spec = want.Spec // the memory of the host or the version of Slipway has changed
	_, err = levels.Update(ctx, live, metav1.UpdateOptions{})
	return err
}

// Limits of concurrent reads of one tenant. An informer retries rejected requests. The manager of another
// provider starts about twenty informers.
const (
	tenantLists   = 2
	tenantWaiting = 64
	tenantWatches = 300
)

// tenantLimits returns the limits for each user, and for all ServiceAccounts of a namespace together, because an editor
// can create further ServiceAccounts. The method tune (tenantlimits.go) applies them in the API server of the
// management cluster. [StartManagement] calls it.
func tenantLimits() requestLimits {
	return requestLimits{Of: tenant, Lists: tenantLists, Waiting: tenantWaiting, Watches: tenantWatches}
}

// tenant returns the key by which a user's requests are limited. It is empty for Slipway, administrators and
// components of Kubernetes.
func tenant(u user.Info) string {
	for _, group := range u.GetGroups() {
		switch group {
		case user.SystemPrivilegedGroup, adminGroup, managerGroup:
			return ""
		}
	}
	if u.GetName() == managerUser {
		return ""
	}
	if namespace, _, err := serviceaccount.SplitUsername(u.GetName()); err == nil {
		if namespace == metav1.NamespaceSystem {
			return ""
		}
		return serviceaccount.MakeNamespaceGroupName(namespace)
	}
	if strings.HasPrefix(u.GetName(), "system:") && u.GetName() != user.Anonymous {
		return ""
	}
	return u.GetName()
}
