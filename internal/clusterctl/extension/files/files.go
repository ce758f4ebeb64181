// Package files notices when the files of a project change.
//
// Does: compares the files below a folder at every tick, and reports a change once it is over: when nothing changed for
// another tick. Files and folders whose names begin with a dot are left out, and so are recordings (.jsonl) and what is no text,
// such as a program that the project is built to.
//
// Never: reads more than the beginning of a file.
//
// Read first: [Changes].
package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Changes sends a value after files below dir changed. Changes that nothing has received yet are one. It ends with ctx.
func Changes(ctx context.Context, dir string, tick <-chan time.Time) <-chan struct{} {
	changed := make(chan struct{}, 1)
	w := newWatched(dir)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if w.look() {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return changed
}

// watched is a folder, as it was when a change was last reported and when it was last looked at.
type watched struct {
	dir         string
	known, last map[string]string
}

func newWatched(dir string) *watched {
	now := stamps(dir)
	return &watched{dir, now, now}
}

// look reports whether there is a change that is over.
func (w *watched) look() bool {
	now := stamps(w.dir)
	over := maps.Equal(now, w.last) && !maps.Equal(now, w.known)
	if w.last = now; over {
		w.known = now
	}
	return over
}

// stamps are sizes and times of the files by their paths. What cannot be read is not there: it may come and go while we look.
func stamps(dir string) map[string]string {
	out := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || strings.HasSuffix(path, ".jsonl"):
			return nil
		}
		if info, err := d.Info(); err == nil && isText(path) {
			out[path] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return out
}

// isText reports whether a file begins with text.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, 512)
	n, err := io.ReadFull(f, begin)
	return (err == nil || n < len(begin)) && !bytes.Contains(begin[:n], []byte{0})
}
