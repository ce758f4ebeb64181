package contract

import (
	"encoding/base64"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue returns the value with which the name of an owner stands in a label, such as
// cluster.x-k8s.io/pool-name: the name itself where it is a valid label value, else a hash of it.
// Core and providers must agree on it, since they find each other's objects by such labels.
func LabelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := fnv.New32a()
	sum.Write([]byte(name)) // never fails
	return "hash_" + base64.RawURLEncoding.EncodeToString(sum.Sum(nil)) + "_z"
}
