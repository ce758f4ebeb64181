package contract_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestLabelValue(t *testing.T) { // IP2-03
	if got := contract.LabelValue("pool-1"); got != "pool-1" {
		t.Errorf("a short name stays: %q", got)
	}
	long := strings.Repeat("pool.", 20)
	got := contract.LabelValue(long + "a")
	if len(validation.IsValidLabelValue(got)) > 0 || got == contract.LabelValue(long+"b") {
		t.Errorf("a long name becomes a valid value of its own: %q", got)
	}
}
