package encryptionkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestRewriteAll writes objects of every kind once more, and changes none of them; what is refused is named.
func TestRewriteAll(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, "Cluster")})
	api := kubernetes.NewForConfigOrDie(server.Config)
	objects, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	create := func(resource schema.GroupVersionResource, namespace string, o map[string]any) {
		t.Helper()
		if _, err := objects.Resource(resource).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	clusters := schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"}
	create(clusters, "default", map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "c"},
		"spec": map[string]any{"infrastructureRef": map[string]any{"apiGroup": "a.b", "kind": "Foo", "name": "foo"}}})
	for _, name := range []string{"s", "t"} {
		if _, err := api.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// A server that answers for a version of a group, and does not: what it stores is none of this API server's, and the other versions are.
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	create(services, "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v9.cluster.x-k8s.io"},
		"spec": map[string]any{"group": "cluster.x-k8s.io", "version": "v9", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"name": "nowhere", "namespace": "default", "port": int64(443)}}})

	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		resources, err := storedResources(ctx, server.Config)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(resources, func(r schema.GroupVersionResource) bool { return r.GroupResource() == clusters.GroupResource() }) {
			return false, errors.New("Clusters are not among what is stored: " + fmt.Sprint(resources))
		}
		service, err := objects.Resource(services).Get(ctx, "v9.cluster.x-k8s.io", metav1.GetOptions{})
		return err == nil && service.Object["status"] != nil, err // the API server has looked for it
	})
	if err != nil {
		t.Fatal(err)
	}
	version := func() string {
		c, err := objects.Resource(clusters).Namespace("default").Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c.GetResourceVersion()
	}
	before := version()
	n, err := RewriteAll(t.Context(), server.Config)
	if err != nil || n < 4 {
		t.Errorf("%d objects: %v", n, err)
	}
	if after := version(); after != before {
		t.Errorf("an object that is stored as it is to be was written: version %s, then %s", before, after)
	}

	refuse(t, api)
	_, err = RewriteAll(t.Context(), server.Config)
	if fault.As(err) == nil || fault.As(err).Reason != reasonNotRewritten || !strings.Contains(err.Error(), "* secrets default/t: ") || strings.Contains(err.Error(), "default/s:") {
		t.Errorf("an object that cannot be written: %v", err)
	}

	limited := rest.CopyConfig(server.Config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	if _, err := RewriteAll(t.Context(), limited); fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "the workload cluster fails") {
		t.Errorf("who may not: %v", err)
	}

	away := rest.CopyConfig(server.Config)
	away.Host = "https://127.0.0.1:1"
	if _, err := RewriteAll(t.Context(), away); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("nothing there: %v", err)
	}
}

// refuse has the API server refuse every change of Secret t.
func refuse(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "stays"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: `object.metadata.name != "t"`, Message: "it stays as it is"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "stays"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "stays", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	if _, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		s, err := api.CoreV1().Secrets("default").Get(ctx, "t", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		_, err = api.CoreV1().Secrets("default").Update(ctx, s, metav1.UpdateOptions{})
		return err != nil, nil // the policy takes effect a moment after it was created
	})
	if err != nil {
		t.Fatal(err)
	}
}
