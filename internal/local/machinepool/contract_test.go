package machinepool

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestInfraMachinePoolContract(t *testing.T) { // IP2-01 to IP2-08, CT-07, CT-08
	yes, one := true, int32(1)
	m := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	m.Spec.ProviderID = backend.ProviderID("n")
	m.Status.Initialization.Provisioned = &yes
	m.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}}
	o := &infrav1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Generation: 7}}
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: infrav1.GroupVersion.String(), Kind: "LocalMachinePool", Name: "p", UID: "u"}}
	o.Spec.ProviderID, o.Spec.ProviderIDList = "slipway:///ns/p", []string{"slipway:///n"}
	pool := &clusterv1.MachinePool{}
	pool.Spec.Replicas, o.Status.Replicas = &one, &one
	s := snapshot{Object: o, Pool: pool, Members: []poolMember{{Local: m}}, Live: true, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	plan := decide(s)
	if !plan.Idle() {
		t.Fatalf("the list is right and nothing is to be done; got %v", plan)
	}
	o.Status = report(s, plan, reconciler.Outcome{}).Status.(infrav1.LocalMachinePoolStatus)
	v := contract.InfraMachinePool(testkit.ProviderObject(t, o))
	if !v.Provisioned.Or(false) || v.Replicas.Or(0) != 1 || v.MachineKind.Or("") != "LocalMachine" || len(v.ProviderIDList.Or(nil)) != 1 {
		t.Errorf("got %+v", v)
	}
	older := v.Object
	older.Contract = contract.V1Beta1
	if !contract.InfraMachinePool(older).Provisioned.Or(false) {
		t.Error("IP2-06: the field that the reference implementation reads is set too")
	}
}
