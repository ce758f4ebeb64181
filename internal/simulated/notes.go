package simulated

import (
	"strings"

	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// notePrefix is the prefix of the keys of notes, which existing state files contain. Objects have another prefix.
const notePrefix = "/notes/"

// Notes are small named texts, stored with the objects of a cluster in the same file. The simulated etcd and the
// backend of simulated Machines (internal/local/simulated) persist their state in them.
type Notes struct{ keys *store.Keyspace }

// Get returns a note, or nil if there is none.
func (n *Notes) Get(name string) []byte {
	value, _ := n.keys.Get(notePrefix + name)
	return value
}

// Set writes a note.
func (n *Notes) Set(name string, value []byte) error { return n.keys.Put(notePrefix+name, value) }

// Delete removes a note. It succeeds if the note does not exist.
func (n *Notes) Delete(name string) error { return n.keys.Delete(notePrefix + name) }

// Names returns the names of all notes, sorted. The backend of simulated Machines finds with it whether a control plane
// Machine remains.
func (n *Notes) Names() []string {
	var out []string
	for _, key := range n.keys.Keys(notePrefix) {
		out = append(out, strings.TrimPrefix(key, notePrefix))
	}
	return out
}
