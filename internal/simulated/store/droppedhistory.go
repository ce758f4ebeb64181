package store

import "strings"

// droppedHistory records up to which revision the history of a Keyspace was dropped; older watches have to list again.
// It is recorded per folder of keys, so that a client that watches rarely changing objects, such as an informer of
// Nodes, can resume its watch after a pause without listing, as with bookmarks.
type droppedHistory struct {
	// upTo is the revision up to which no history exists at all.
	upTo int64
	// folders maps each folder to its last dropped revision.
	folders map[string]int64
}

// folder returns the first two segments of a key, for example /registry/pods/ for all Pods.
func folder(key string) string {
	slash := 0
	for i := range key {
		if key[i] == '/' {
			if slash++; slash == 3 {
				return key[:i+1]
			}
		}
	}
	return key
}

// add records that the change of a key was dropped.
func (f *droppedHistory) add(key string, revision int64) {
	if f.folders == nil {
		f.folders = map[string]int64{}
	}
	f.folders[folder(key)] = revision
}

// since reports whether a change in a range at this revision or later was dropped. Such a watch ends as compacted.
func (f *droppedHistory) since(start, end string, revision int64) bool {
	if revision <= f.upTo {
		return true
	}
	for folder, last := range f.folders {
		if last >= revision && (isInRange(folder, start, end) || strings.HasPrefix(start, folder)) {
			return true
		}
	}
	return false
}
