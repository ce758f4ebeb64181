package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxAttempts is the maximum number of recorded objects, our choice to limit memory. When it is reached, all records
// are dropped, and each object is applied at most once more.
const maxAttempts = 8192

// Attempts records what the topology controller last applied to which state of an object. Some webhooks store another
// value than the one that was applied, so the object would always differ; applying the same again to the same state
// would change nothing. The controller has one Attempts, in memory only. The zero value is ready to use.
type Attempts struct {
	mu   sync.Mutex
	last map[types.UID]string
}

// Record records an apply. The controller calls it after each successful one.
func (a *Attempts) Record(live client.Object, want *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil || len(a.last) >= maxAttempts {
		a.last = map[types.UID]string{}
	}
	a.last[live.GetUID()] = Fingerprint(live, want)
}

// Of returns the recorded attempts for the given objects, by UID.
func (a *Attempts) Of(objects []client.Object) map[types.UID]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out map[types.UID]string
	for _, o := range objects {
		if last, ok := a.last[o.GetUID()]; ok {
			if out == nil {
				out = map[types.UID]string{}
			}
			out[o.GetUID()] = last
		}
	}
	return out
}

// Fingerprint identifies an apply by the applied content and the resourceVersion of the object. It is compared only
// within one process, so its form may change.
func Fingerprint(live client.Object, want *unstructured.Unstructured) string {
	data, err := json.Marshal(want.Object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return live.GetResourceVersion() + " " + hex.EncodeToString(sum[:])
}
