package kube

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/lru"
)

// fieldSets are the field sets of managed fields, and the keys that are written into them: most objects of a kind have the
// same. Those that were not asked for the longest are forgotten.
var fieldSets = texts{seed: maphash.MakeSeed(), known: lru.New(512)}

// texts are JSON texts with what they say.
type texts struct {
	seed  maphash.Seed
	known *lru.Cache // by the hash of the text
}

type text struct {
	raw   string
	value map[string]any
}

// object returns what a text says, which nobody may change; nil where that is not an object.
func (t *texts) object(raw []byte) map[string]any {
	hash := maphash.Bytes(t.seed, raw)
	if found, ok := t.known.Get(hash); ok && found.(text).raw == string(raw) {
		return found.(text).value
	}
	var value map[string]any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	t.known.Add(hash, text{string(raw), value})
	return value
}
