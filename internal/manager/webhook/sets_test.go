package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit"
)

// The golden file shows what belongs to each provider: its controllers, CRDs, flags, and the webhooks that follow from them.
func TestSets(t *testing.T) {
	var out strings.Builder
	out.WriteString("# What belongs to each provider. go test ./internal/manager/webhook -run TestSets -update\n")
	configured := 0
	for _, set := range providerset.All() {
		fmt.Fprintf(&out, "\n## %s\n\n", set.Name)
		for _, name := range sorted(set.Controllers) {
			fmt.Fprintf(&out, "controller %s: %d at once\n", name, set.Controllers[name])
		}
		for _, crd := range set.CRDs {
			fmt.Fprintf(&out, "CRD %s\n", crd)
		}
		for _, crd := range set.Watched {
			fmt.Fprintf(&out, "watches %s\n", crd)
		}
		for _, flag := range set.Flags {
			fmt.Fprintf(&out, "flag --%s\n", flag)
		}
		address := Address{URL: "https://127.0.0.1:1", MostReplicas: 10, Sets: []providerset.Set{set}}
		for _, o := range configurations(address, nil) {
			switch c := o.(type) {
			case *admissionregistrationv1.MutatingWebhookConfiguration:
				for _, w := range c.Webhooks {
					fmt.Fprintf(&out, "webhook %s of %s\n", w.Name, c.Name)
				}
			case *admissionregistrationv1.ValidatingWebhookConfiguration:
				configured += len(c.Webhooks)
				for _, w := range c.Webhooks {
					fmt.Fprintf(&out, "webhook %s of %s\n", w.Name, c.Name)
				}
			}
		}
	}
	testkit.CompareGolden(t, "testdata/sets.txt", out.String())
	scaled := 0
	for _, k := range kinds() {
		if k.scales {
			scaled++
		}
	}
	if want := len(kinds()) + scaled; configured != want {
		t.Errorf("%d kinds have rules, and %d webhooks are of a provider", want, configured)
	}
}

func sorted(of map[string]int) []string {
	return slices.Sorted(maps.Keys(of))
}
