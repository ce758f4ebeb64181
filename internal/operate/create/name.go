package create

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/internal/fault"
)

// maxName is the maximum length of a name. It reserves space for the suffixes of derived names, within the 63
// characters of a label value.
const maxName = 50

// CheckName checks whether a new cluster of `slipway create cluster` can have the name. Clusters of other clients may
// have longer names.
func CheckName(name string) error {
	problems := validation.IsDNS1123Label(name)
	if len(name) > maxName {
		problems = slices.DeleteFunc(problems, func(p string) bool { return p == validation.MaxLenError(validation.DNS1123LabelMaxLength) })
		problems = append(problems, fmt.Sprintf("must have at most %d characters, so that the names made from it fit into labels", maxName))
	}
	if len(problems) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "InvalidClusterName", "%q cannot be the name of a cluster: %s", name, strings.Join(problems, "; "))
}
