package extensiontools

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// RT-23: a change is reported once it is over, once, and for what an author writes only.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", "package main")
	w := newWatched(dir)
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"a file changes", func() { write("main.go", "package main // 2") }, true},
		{"it stays", func() {}, false},
		{"a file in a new folder", func() { write("a/b.go", "package a") }, true},
		{"an empty file", func() { write("a/empty.yaml", "") }, true},
		{"a hidden file", func() { write(".swp", "1") }, false},
		{"a hidden folder", func() { write(".git/index", "1") }, false},
		{"a recording", func() { write("calls.jsonl", "{}") }, false},
		{"a program", func() { write("extension", "\x7fELF\x00") }, false},
		{"a file goes", func() { _ = os.Remove(filepath.Join(dir, "a", "b.go")) }, true},
		{"a change that is taken back before it is over", func() {
			write("c.go", "1")
			w.poll()
			_ = os.Remove(filepath.Join(dir, "c.go"))
		}, false},
	} {
		step.do()
		seen, over, after := w.poll(), w.poll(), w.poll()
		if seen || over != step.want || after {
			t.Errorf("%s: reported when it is seen: %v, when it is over: %v, and after that: %v", step.name, seen, over, after)
		}
	}
}

// Changes that nothing has received yet are one.
func TestChangesPileUp(t *testing.T) {
	dir := t.TempDir()
	ticks := make(chan time.Time)
	changed := FileChanges(t.Context(), dir, ticks)
	for _, text := range []string{"1", "22", "333"} {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ticks <- time.Time{}
		}
	}
	<-changed
	select {
	case <-changed:
		t.Error("the same change twice")
	default:
	}
}
