package contract

import (
	"encoding/base64"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue returns the label value for the name of an owner, for example in cluster.x-k8s.io/pool-name: the name
// itself if it is a valid label value, or else a hash. Core and providers must use the same function, because they find
// each other's objects by such labels.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := fnv.New32a()
	sum.Write([]byte(name)) // never fails
	return "hash_" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)) + "_z"
}
