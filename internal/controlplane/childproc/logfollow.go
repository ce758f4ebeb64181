package childproc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/uidisolation"
)

// followInterval is the interval between checks of a followed file.
const followInterval = 250 * time.Millisecond

// lastBytes limits how far back WriteLogLines searches for lines.
const lastBytes = 16 << 20

// WriteLogLines writes the last n lines of the file at path, or the whole file if n < 0, for `slipway logs`. It returns
// fs.ErrNotExist for a missing file. With follow, it continues with new content, also after a rotation, and returns nil
// when ctx ends.
func WriteLogLines(ctx context.Context, path string, n int, follow bool, w io.Writer) error {
	f, err := uidisolation.Open(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // the file that is open at the end
	if n >= 0 {
		if err := seekLines(f, n, lastBytes); err != nil {
			return err
		}
	}
	if _, err := io.Copy(w, f); err != nil || !follow {
		return err
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if f, err = copyNewContent(f, path, w); err != nil {
			return err
		}
	}
}

// copyNewContent writes what was appended to f, and returns the new file after a rotation.
func copyNewContent(f *os.File, path string, w io.Writer) (*os.File, error) {
	if _, err := io.Copy(w, f); err != nil {
		return f, err
	}
	was, err := f.Stat()
	if err != nil {
		return f, err
	}
	is, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(was, is) { // deleted, or being rotated
		return f, nil
	}
	if err != nil {
		return f, err
	}
	other, err := uidisolation.Open(path, os.O_RDONLY)
	if err != nil {
		return f, err
	}
	_, err = io.Copy(w, f) // content between the last two checks
	_ = f.Close()
	if err != nil {
		return other, err
	}
	_, err = io.Copy(w, other)
	return other, err
}

// seekLines seeks to the last n lines of f, within its last most bytes.
func seekLines(f *os.File, n int, most int64) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	least := max(0, end-most)
	start, block, found := end, make([]byte, 64<<10), 0
	for start > least {
		size := min(int64(len(block)), start-least)
		if _, err := f.ReadAt(block[:size], start-size); err != nil {
			return err
		}
		for part := block[:size]; ; {
			i := bytes.LastIndexByte(part, '\n')
			if i < 0 {
				break
			}
			if at := start - size + int64(i) + 1; at != end {
				found++
				if found == n {
					_, err := f.Seek(at, io.SeekStart)
					return err
				}
			} else if n == 0 {
				_, err := f.Seek(end, io.SeekStart)
				return err
			}
			part = part[:i]
		}
		start -= size
	}
	_, err = f.Seek(start, io.SeekStart)
	return err
}
