package childproc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLast(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 999)+"\n", 200)
	tests := map[string]struct {
		reason, content string
		n               int
		want            string
	}{
		"some":          {"the last ones", "a\nb\nc\n", 2, "b\nc\n"},
		"more":          {"there are fewer", "a\nb\n", 9, "a\nb\n"},
		"all":           {"without a limit", "a\nb\n", -1, "a\nb\n"},
		"none":          {"only what comes", "a\nb\n", 0, ""},
		"unfinished":    {"a line that is being written is one", "a\nb\nc", 2, "b\nc"},
		"empty":         {"a new file", "", 3, ""},
		"across blocks": {"lines are found wherever they begin", long, 150, long[:150*1000]},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			if err := WriteLogLines(t.Context(), path, tc.n, false, &got); err != nil || got.String() != tc.want {
				t.Errorf("%s: %v, got %d bytes, want %d", tc.reason, err, got.Len(), len(tc.want))
			}
		})
	}
	if err := WriteLogLines(t.Context(), filepath.Join(t.TempDir(), "log"), 1, true, &strings.Builder{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// writer hands on what is written.
type writer chan string

func (w writer) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// A followed file may be turned over; nothing is lost, and the end of the context is no error.
func TestLastFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	put("one\n")
	ctx, cancel := context.WithCancel(t.Context())
	got, ended := make(writer, 10), make(chan error, 1)
	go func() { ended <- WriteLogLines(ctx, path, 1, true, got) }()
	var all string
	until := func(want string) {
		t.Helper()
		for !strings.HasSuffix(all, want) {
			select {
			case text := <-got:
				all += text
			case <-t.Context().Done():
				t.Fatalf("after %q no %q comes", all, want)
			}
		}
	}
	until("one\n")
	put("two\n")
	until("two\n")
	put("three\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	put("four\n")
	until("four\n")
	cancel()
	if err := <-ended; err != nil || all != "one\ntwo\nthree\nfour\n" {
		t.Errorf("%v, got %q", err, all)
	}
}
