package machinedeployment

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// A Cluster that does not exist is a warning, once, and not before a manifest had the time to create it.
func TestMissingClusterIsAnEvent(t *testing.T) { // DP-01
	warned := func(s snapshot) bool {
		for _, e := range report(s, decide(s), reconciler.Outcome{}).Events {
			if e.Type == "Warning" && e.Message == "Cluster c does not exist: create it, or delete MachineDeployment md" {
				return true
			}
		}
		return false
	}
	s := fresh(func(s *snapshot) {
		s.Cluster, s.Deployment.CreationTimestamp = nil, metav1.NewTime(s.Now.Add(-time.Second))
	})
	if recheck := decide(s).Recheck; warned(s) || recheck != templatesFollow-time.Second {
		t.Errorf("warned too early, or the next look is in %s", recheck)
	}
	s.Now = s.Now.Add(time.Minute)
	if !warned(s) {
		t.Error("no warning")
	}
	s.Deployment.Status = report(s, decide(s), reconciler.Outcome{}).Status.(clusterv1.MachineDeploymentStatus)
	if warned(s) {
		t.Error("warned again")
	}
}
