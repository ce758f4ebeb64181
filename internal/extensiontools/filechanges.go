package extensiontools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FileChanges returns a channel that receives a value after files in dir have changed and then stayed unchanged from
// one tick to the next. `slipway extension run --watch` passes it to [RunSession], which restarts the extension for
// each value. Hidden files, recordings of calls (.jsonl) and programs are ignored, because builds and sessions write
// them. Changes that have not been received yet are merged. With ctx the checks end; the channel is never closed.
func FileChanges(ctx context.Context, dir string, tick <-chan time.Time) <-chan struct{} {
	changed := make(chan struct{}, 1)
	w := newWatched(dir)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			if w.poll() {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
	}()
	return changed
}

// watched is a folder with its state at the last reported change and at the last tick.
type watched struct {
	dir         string
	known, last map[string]string
}

func newWatched(dir string) *watched {
	now := stamps(dir)
	return &watched{dir, now, now}
}

// poll reports whether files have changed and an editor has probably finished writing them.
func (w *watched) poll() bool {
	now := stamps(w.dir)
	over := maps.Equal(now, w.last) && !maps.Equal(now, w.known)
	if w.last = now; over {
		w.known = now
	}
	return over
}

// stamps returns the sizes and modification times of the watched files by path. Unreadable files are skipped, because
// files may disappear during the walk.
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

// isText reports whether the first bytes of a file contain no NUL, unlike the first bytes of a compiled program.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, 512)
	n, err := io.ReadFull(f, begin)
	isRead := err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) // a file may be shorter
	return isRead && !bytes.Contains(begin[:n], []byte{0})
}
