package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"testing"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/upgradeplan"
)

// UP-02: the SDK accepts a plan exactly where the topology does: an author learns of a plan that would be refused before it is.
func TestPlansOfTheSDK(t *testing.T) {
	random := rand.New(rand.NewPCG(27, 4))
	version := func() string {
		return fmt.Sprintf("v1.%d.%d%s", 30+random.IntN(6), random.IntN(2), []string{"", "", "+a", "+b"}[random.IntN(4)])
	}
	rising := func(from, to int) (out []string) {
		for minor := from; minor <= to; minor++ {
			if random.IntN(12) > 0 {
				out = append(out, fmt.Sprintf("v1.%d.0", minor))
			}
		}
		return out
	}
	steps := func(texts []string) (out []hooksv1.UpgradeStep) {
		for _, v := range texts {
			out = append(out, hooksv1.UpgradeStep{Version: v})
		}
		return out
	}
	accepted := 0
	for n := range 20000 {
		from, to := 28+random.IntN(3), 30+random.IntN(5)
		j := PlanInput{ControlPlane: fmt.Sprintf("v1.%d.0", from), Target: fmt.Sprintf("v1.%d.0", to)}
		r := UpgradePlan{ControlPlane: rising(from+1, to)}
		if random.IntN(3) > 0 {
			j.Workers = fmt.Sprintf("v1.%d.0", from-random.IntN(3))
			r.Workers = rising(from+random.IntN(4), to)
		}
		if random.IntN(4) == 0 {
			r.ControlPlane = append(r.ControlPlane, version())
		}
		if random.IntN(8) == 0 {
			j.Target, r.Workers = version(), append(r.Workers, version())
		}
		if _, _, err := j.ends(); err != nil {
			continue // the topology says what is wrong with the versions, whatever the plan is
		}
		_, err := validatePlanResponse(j, "h.x", r)
		checked := upgradeplan.Check(&hooksv1.GenerateUpgradePlanRequest{
			FromControlPlaneKubernetesVersion: j.ControlPlane, FromWorkersKubernetesVersion: j.Workers, ToKubernetesVersion: j.Target,
		}, &hooksv1.GenerateUpgradePlanResponse{ControlPlaneUpgrades: steps(r.ControlPlane), WorkersUpgrades: steps(r.Workers)})
		if (err == nil) != (checked == nil) {
			t.Fatalf("plan %d, %+v for %+v:\nthe topology: %v\nthe SDK:      %v", n, r, j, err, checked)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d plans were good: the test proves little", accepted)
	}
}
