package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// A KubeadmControlPlane that nothing reconciles is said, and one that another provider reconciles is not.
func TestUnsupportedControlPlane(t *testing.T) {
	const says = "Nothing has reconciled KubeadmControlPlane p: run the provider control-plane-kubeadm, or another provider of KubeadmControlPlanes"
	const kubeadm = "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: KubeadmControlPlane\n"
	for name, tc := range map[string]struct {
		reason, text string
		age, recheck time.Duration
		said         bool
	}{
		"nothing reconciles it": {"no finalizer, no status", kubeadm + "metadata: {name: p}", time.Minute, 0, true},
		"as old as the grace":   {"the grace is over when it is over", kubeadm + "metadata: {name: p}", 10 * time.Second, 0, true},
		"an empty status":       {"says as little as none", kubeadm + "metadata: {name: p}\nstatus: {}", time.Minute, 0, true},
		"young":                 {"another provider has a moment to find it", kubeadm + "metadata: {name: p}", 4 * time.Second, 6 * time.Second, false},
		"finalizer":             {"a controller has it in its hands", kubeadm + "metadata: {name: p, finalizers: [kubeadm.controlplane.cluster.x-k8s.io]}", time.Minute, 0, false},
		"status":                {"a controller has told something", kubeadm + "metadata: {name: p}\nstatus: {observedGeneration: 1}", time.Minute, 0, false},
		"conditions":            {"also while it is paused", kubeadm + "metadata: {name: p}\nstatus: {conditions: [{type: Paused, status: 'True'}]}", time.Minute, 0, false},
		"another kind":          {"of a provider that may come later", "apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: OtherControlPlane\nmetadata: {name: p}", time.Minute, 0, false},
		"the kind of another":   {"of another group", "apiVersion: example.org/v1\nkind: KubeadmControlPlane\nmetadata: {name: p}", time.Minute, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(func(s *snapshot) {
				v := contract.ControlPlane(object(tc.text, contract.V1Beta2))
				v.SetCreationTimestamp(metav1.NewTime(ago(tc.age)))
				s.Infra, s.ControlPlane = infra(readyInfra), v
			})
			p := decide(s)
			if p.Recheck != tc.recheck {
				t.Errorf("%s: looked at again in %s, want %s", tc.reason, p.Recheck, tc.recheck)
			}
			set := condition.Set(status(s, reconciler.Outcome{}).Conditions)
			for _, conditionType := range []string{"ControlPlaneInitialized", "ControlPlaneAvailable"} {
				c := set.Get(conditionType)
				if said := c.Status == metav1.ConditionFalse && c.Reason == noController && c.Message == says; said != tc.said {
					t.Errorf("%s: %+v", tc.reason, c)
				}
			}
		})
	}
	s := settled(func(s *snapshot) {
		v := contract.ControlPlane(object(kubeadm+"metadata: {name: p}", contract.V1Beta2))
		s.ControlPlane = v
	})
	if c := condition.Set(status(s, reconciler.Outcome{}).Conditions).Get("ControlPlaneInitialized"); c.Status != metav1.ConditionTrue {
		t.Errorf("a control plane that runs, restored without its status: %+v", c)
	}
}
