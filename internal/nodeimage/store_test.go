package nodeimage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKeyOf(t *testing.T) {
	seen := map[string]string{}
	for name, parts := range map[string][]string{
		"nothing": {}, "empty": {""}, "one": {"ab"}, "two": {"a", "b"}, "other order": {"b", "a"}, "moved": {"", "ab"}, "length inside": {"1:a1:b"},
	} {
		key := keyOf(parts...)
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
		if key != keyOf(parts...) {
			t.Errorf("%s has two keys", name)
		}
	}
}

func TestStoreRun(t *testing.T) {
	var progress bytes.Buffer
	s := BuildCache{Dir: t.TempDir(), Progress: &progress}
	made := 0
	st := func(key, content string, err error) BuildStep {
		return BuildStep{Name: "thing", Key: keyOf(key), Make: func(_ context.Context, file string) error {
			made++
			if e := os.WriteFile(file, []byte(content), 0o600); e != nil {
				return e
			}
			return err
		}}
	}
	broken := errors.New("no disk")
	if _, err := s.Run(t.Context(), st("a", "half", broken)); !errors.Is(err, broken) || !strings.Contains(err.Error(), "thing") {
		t.Fatalf("the error of a step is not passed on: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "*")); len(left) != 0 {
		t.Errorf("a failed step leaves %v", left)
	}
	var file string
	for _, c := range []struct {
		key, content string
		made         int
		reason       string
	}{
		{"a", "first", 2, "what failed is made again"},
		{"a", "never", 2, "what is there is not made again"},
		{"b", "second", 3, "another key is another result"},
		{"a", "never", 3, "and leaves the first alone"},
	} {
		var err error
		if file, err = s.Run(t.Context(), st(c.key, c.content, nil)); err != nil {
			t.Fatal(err)
		}
		if made != c.made {
			t.Errorf("made %d times, want %d: %s", made, c.made, c.reason)
		}
	}
	if text, _ := os.ReadFile(file); string(text) != "first" {
		t.Errorf("the result is %q", text)
	}
	if made, failed := strings.Count(progress.String(), " s\n"), strings.Count(progress.String(), " failed\n"); made != 2 || failed != 1 {
		t.Errorf("%d made and %d failed in the progress, want 2 and 1:\n%s", made, failed, progress.String())
	}
}

func TestStoreSweep(t *testing.T) {
	s := BuildCache{Dir: t.TempDir()}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, age := range map[string]time.Duration{"fresh": time.Hour, "old": cacheRetention + time.Hour, "lock": 10 * cacheRetention} {
		file := filepath.Join(s.Dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s.Sweep(now)
	left, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if strings.Join(left, " ") != "fresh lock" {
		t.Errorf("left: %v", left)
	}
}

// The image in the engine is up to date for months: the programs and Debian systems that it was built from stay for a bundle.
func TestStoreRetain(t *testing.T) {
	s := BuildCache{Dir: t.TempDir()}
	now := time.Now()
	tools := GoToolchain{Version: "go1.26", Store: s}
	p := plan{programs: []GoProgram{{Name: "kubelet", Package: "."}}, system: userland{name: "system.tar"}, network: userland{name: "network.tar"}}
	for _, st := range []BuildStep{
		{Name: "kubelet", Key: tools.Key(p.programs[0])}, {Name: "system.tar", Key: p.system.key()}, {Name: "network.tar", Key: p.network.key()}, {Name: "kubelet", Key: keyOf("previous")},
	} {
		if err := os.WriteFile(s.file(st), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		old := now.Add(-cacheRetention - time.Hour)
		if err := os.Chtimes(s.file(st), old, old); err != nil {
			t.Fatal(err)
		}
	}
	p.retain(tools)
	s.Sweep(now)
	for st, want := range map[string]bool{
		s.file(BuildStep{Name: "kubelet", Key: tools.Key(p.programs[0])}): true, s.file(BuildStep{Name: "system.tar", Key: p.system.key()}): true,
		s.file(BuildStep{Name: "network.tar", Key: p.network.key()}): true, s.file(BuildStep{Name: "kubelet", Key: keyOf("previous")}): false,
	} {
		if _, err := os.Stat(st); (err == nil) != want {
			t.Errorf("%s is retained: %t", filepath.Base(st), err == nil)
		}
	}
}

func TestProgramKey(t *testing.T) {
	base := func() (GoToolchain, GoProgram) {
		return GoToolchain{Version: "go1.26"}, GoProgram{Name: "x", Package: ".", Module: GoModule{Mod: "m", Files: map[string]string{"a.go": "a"}}, Stamp: []string{"v=1"}}
	}
	first := func() string { c, p := base(); return c.Key(p) }()
	for name, change := range map[string]func(*GoToolchain, *GoProgram){
		"compiler":     func(c *GoToolchain, _ *GoProgram) { c.Version = "go1.27" },
		"package":      func(_ *GoToolchain, p *GoProgram) { p.Package = "x/y" },
		"requirements": func(_ *GoToolchain, p *GoProgram) { p.Module.Mod = "n" },
		"source":       func(_ *GoToolchain, p *GoProgram) { p.Module.Files["a.go"] = "b" },
		"file name":    func(_ *GoToolchain, p *GoProgram) { p.Module.Files = map[string]string{"b.go": "a"} },
		"version":      func(_ *GoToolchain, p *GoProgram) { p.Stamp[0] = "v=2" },
	} {
		c, p := base()
		change(&c, &p)
		if c.Key(p) == first {
			t.Errorf("another %s, and the program is not built again", name)
		}
	}
	if c, p := base(); c.Key(p) != first {
		t.Error("the same program is built again")
	}
}
