package kube

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/lru"
)

// parsedFieldSets are the field sets of managed fields, and the keys within them, as they were decoded: most objects of a
// kind have the same. The least recently used ones are dropped. Nothing but speed depends on what is in it.
var parsedFieldSets = fieldSetCache{seed: maphash.MakeSeed(), known: lru.New(512)}

// fieldSetCache has decoded JSON objects by the hash of their text.
type fieldSetCache struct {
	seed  maphash.Seed
	known *lru.Cache
}

type parsedText struct {
	raw   string
	value map[string]any
}

// object returns a decoded object, which must not be changed; nil where the text is not one.
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
