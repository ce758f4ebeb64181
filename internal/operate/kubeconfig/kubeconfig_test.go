package kubeconfig_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/kubeconfig"
)

func secret(data map[string][]byte) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo-kubeconfig"}, Type: clusterv1.ClusterSecretType, Data: data}
}

func cluster(conditions ...metav1.Condition) client.Object {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "demo"}, Status: clusterv1.ClusterStatus{Conditions: conditions}}
}

// CX-08, SE-01
func TestRead(t *testing.T) {
	waiting := metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionFalse,
		Reason: "NotInitialized", Message: "Control plane not yet initialized"}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    string
		kind    fault.Kind
		err     string
	}{
		"exec": {"kubectl would run it", []client.Object{cluster(), secret(map[string][]byte{"value": []byte("users: [{name: u, user: {exec: {command: sh}}}]")})},
			"", fault.Invalid, `not passed on: the kubeconfig asks to run a command`},
		"there":      {"the content is passed on as it is", []client.Object{cluster(), secret(map[string][]byte{"value": []byte("preferences: {}")})}, "preferences: {}", 0, ""},
		"no cluster": {"the name is what is wrong", nil, "", fault.Gone, "there is no cluster"},
		"not yet":    {"the control plane's own words say what it waits for", []client.Object{cluster(waiting)}, "", fault.Gone, "Control plane not yet initialized"},
		"silent":     {"a control plane that reports nothing", []client.Object{cluster()}, "", fault.Gone, "has not written it yet"},
		"empty":      {"a Secret without the key is somebody's mistake", []client.Object{cluster(), secret(map[string][]byte{"other": []byte("x")})}, "", fault.Invalid, "delete it"},
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			got, err := kubeconfig.ReadKubeconfig(context.Background(), c, client.ObjectKey{Namespace: "team", Name: "demo"})
			if tc.err == "" {
				if err != nil || string(got) != tc.want {
					t.Errorf("%s: got %q, %v", tc.reason, got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.err) || fault.KindOf(err) != tc.kind {
				t.Errorf("%s: got %v, want a %v fault with %q", tc.reason, err, tc.kind, tc.err)
			}
		})
	}
}
