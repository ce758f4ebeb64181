package store

import "strings"

// forgotten is up to where the history of keys is lost. It is kept for each folder of keys, so that who watches what changes seldom, as
// informers of Nodes do, can begin to watch again after a pause, as with bookmarks, and need not list.
type forgotten struct {
	// upTo is where nothing at all is known before.
	upTo int64
	// folders has the last revision that is lost of each.
	folders map[string]int64
}

// folder is the first two parts of a key: /registry/pods/ of all Pods.
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

func (f *forgotten) add(key string, revision int64) {
	if f.folders == nil {
		f.folders = map[string]int64{}
	}
	f.folders[folder(key)] = revision
}

// since reports whether a change of a range is lost that was made at a revision or later.
func (f *forgotten) since(start, end string, revision int64) bool {
	if revision <= f.upTo {
		return true
	}
	for folder, last := range f.folders {
		if last >= revision && (within(folder, start, end) || strings.HasPrefix(start, folder)) {
			return true
		}
	}
	return false
}
