package clusters

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/kstatus"
)

// What the controller reports is read here as the core reads it: through the contracts.

var then = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func seen(t *testing.T, o runtime.Object) contract.Object {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return contract.Object{Unstructured: &unstructured.Unstructured{Object: fields}, Contract: contract.V1Beta2}
}

func checkCommon(t *testing.T, o contract.Object) {
	t.Helper()
	c, ok := o.Ready().Get()
	if !ok || c.Status != metav1.ConditionTrue || c.Reason == "" || c.LastTransitionTime.IsZero() || c.ObservedGeneration != 7 {
		t.Errorf("CT-07: Ready is %+v, found %v", c, ok)
	}
	if f := o.Failure(); f != (contract.Failure{}) {
		t.Errorf("CT-08: there are no terminal failures; got %+v", f)
	}
}

func TestInfraClusterContract(t *testing.T) { // IC-01 to IC-05
	o := &infrav1.SSHCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Generation: 7}}
	o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	s := snapshot{Object: o, Cluster: &clusterv1.Cluster{}, FailureDomains: []string{"rack-1"}, Now: then}
	o.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.SSHClusterStatus)
	v := contract.InfraCluster(seen(t, o))
	checkCommon(t, v.Object)
	if e := v.ControlPlaneEndpoint.Or(contract.Endpoint{}); !v.Provisioned.Or(false) || e != (contract.Endpoint{Host: "192.0.2.1", Port: 6443}) {
		t.Errorf("got %+v, %+v", v.Provisioned, e)
	}
	if diff := cmp.Diff([]clusterv1.FailureDomain{{Name: "rack-1", ControlPlane: ptr.To(true)}}, v.FailureDomains.Or(nil)); diff != "" {
		t.Errorf("IC-03 (-want +got):\n%s", diff)
	}
	if got := kstatus.Compute(t, o); got != kstatus.Current {
		t.Errorf("tools that wait for objects of any kind: %s", got)
	}
}
