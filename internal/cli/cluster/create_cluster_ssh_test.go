package cluster

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

// The hosts that are missing are named before anything is created, to users who may read the inventory.
func TestMissingHosts(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"role": "cp"}}}
		h.Status.State = infrav1.SSHHostAvailable
		objects = append(objects, h)
	}
	inventory := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	forbidden := interceptor.NewClient(inventory, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "sshhosts"}, "", nil)
	}})
	labels := []clusterv1.ClusterVariable{{Name: hostLabels, Value: apiextensionsv1.JSON{Raw: []byte(`{"role":"worker"}`)}}}
	for name, tc := range map[string]struct {
		reason string
		flags  createClusterFlags
		reader client.Reader
		want   string
	}{
		"enough":      {"one host for each machine", createClusterFlags{hosts: true, controlPlanes: 1, workers: 2}, inventory, ""},
		"too few":     {"the number is named", createClusterFlags{hosts: true, controlPlanes: 3, workers: 2}, inventory, "2 SSHHosts are missing"},
		"labels":      {"the labels are named", createClusterFlags{hosts: true, workers: 1, variables: labels}, inventory, "1 SSHHost is missing for the workers (labels role=worker)"},
		"skipped":     {"the user wants it nevertheless", createClusterFlags{hosts: true, workers: 9, skipChecks: true}, inventory, ""},
		"containers":  {"the nodes need no hosts", createClusterFlags{workers: 9}, inventory, ""},
		"not allowed": {"the user cannot read the inventory", createClusterFlags{hosts: true, workers: 9}, forbidden, ""},
	} {
		tc.flags.ref.Name = "ssh-kubeadm"
		err := tc.flags.checkSSHHosts(t.Context(), tc.reader, "default")
		if (err == nil) != (tc.want == "") || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.want)) {
			t.Errorf("%s: %v, want %q (%s)", name, err, tc.want, tc.reason)
		}
	}
}
