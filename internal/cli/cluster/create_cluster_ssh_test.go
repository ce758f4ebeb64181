package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		err := tc.flags.checkSSHHosts(t.Context(), tc.reader, "default", func(names []string) error { return fmt.Errorf("waits for %v", names) })
		if (err == nil) != (tc.want == "") || err != nil && (fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.want)) {
			t.Errorf("%s: %v, want %q (%s)", name, err, tc.want, tc.reason)
		}
	}
}

// Hosts that were just added are not missing: the command waits for their first check.
func TestUncheckedHosts(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	h := &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(h).WithObjects(h).Build()
	f := createClusterFlags{hosts: true, workers: 1}
	f.ref.Name = "ssh"
	waits := 0
	if err := f.checkSSHHosts(t.Context(), c, "default", func(names []string) error {
		waits++
		h.Status.State = infrav1.SSHHostAvailable
		return c.Status().Update(t.Context(), h)
	}); err != nil || waits != 1 {
		t.Errorf("%v after %d waits", err, waits)
	}
	h.Status.State = ""
	if err := c.Status().Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	waits = 0
	err := f.checkSSHHosts(t.Context(), c, "default", func([]string) error { waits++; return nil })
	if f := fault.As(err); f == nil || f.Reason != "HostsMissing" || waits != hostCheckAttempts {
		t.Errorf("%v after %d waits", err, waits)
	}
}

// A denied endpoint is an error before the Cluster exists. Other errors of the dry run are not.
func TestDeniedEndpoint(t *testing.T) {
	const denial = "admission webhook \"w\" denied the request: spec.virtualIP: Forbidden: Virtual IP address 192.0.2.9 is not allowed"
	resource := schema.GroupResource{Group: infrav1.GroupVersion.Group, Resource: "sshclusters"}
	for name, tc := range map[string]struct {
		reason string
		flags  createClusterFlags
		err    error
		want   string
	}{
		"allowed":   {"", createClusterFlags{hosts: true}, nil, ""},
		"denied":    {"the message of the webhook", createClusterFlags{hosts: true}, apierrors.NewForbidden(resource, "c", errors.New(denial)), "the control plane endpoint is not allowed; nothing was created: spec.virtualIP"},
		"no rights": {"a tenant may create Clusters only", createClusterFlags{hosts: true}, apierrors.NewForbidden(resource, "c", errors.New("no rights")), ""},
		"skipped":   {"", createClusterFlags{hosts: true, skipChecks: true}, apierrors.NewForbidden(resource, "c", errors.New(denial)), ""},
		"no hosts":  {"", createClusterFlags{}, apierrors.NewForbidden(resource, "c", errors.New(denial)), ""},
	} {
		var applied map[string]any
		c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
			applied, _, _ = unstructured.NestedMap(o.(*unstructured.Unstructured).Object, "spec")
			return tc.err
		}})
		tc.flags.ref.Name, tc.flags.variables = "ssh-kubeadm", []clusterv1.ClusterVariable{{Name: "virtualIP", Value: apiextensionsv1.JSON{Raw: []byte(`"192.0.2.9"`)}}}
		err := tc.flags.checkEndpoint(t.Context(), c, "default", "c")
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(fault.UserMessage(err), tc.want) {
			t.Errorf("%s: %v, want %q (%s)", name, err, tc.want, tc.reason)
		}
		if want := tc.flags.hosts && !tc.flags.skipChecks; (applied["virtualIP"] == "192.0.2.9") != want {
			t.Errorf("%s: the dry run has %v", name, applied)
		}
	}
}
