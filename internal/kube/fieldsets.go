package kube

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/lru"
)

// parsedFieldSets is an LRU cache of decoded field sets from managed fields, and of the keys within them. The
// comparisons of [Writer] with a live object read it. Most objects of a kind have the same field sets. It only affects
// speed.
var parsedFieldSets = fieldSetCache{seed: maphash.MakeSeed(), known: lru.New(512)}

// fieldSetCache caches decoded JSON objects by the hash of their text.
type fieldSetCache struct {
	seed  maphash.Seed
	known *lru.Cache
}

type parsedText struct {
	raw   string
	value map[string]any
}

// object returns the decoded object, or nil if the text is not a JSON object. The result must not be changed.
func (c *fieldSetCache) object(raw []byte) map[string]any {
	hash := maphash.Bytes(c.seed, raw)
	if found, ok := c.known.Get(hash); ok && found.(parsedText).raw == string(raw) {
		return found.(parsedText).value
	}
	var value map[string]any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	c.known.Add(hash, parsedText{string(raw), value})
	return value
}
