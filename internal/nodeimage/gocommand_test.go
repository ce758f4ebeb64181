package nodeimage

import (
	"context"
	"strings"
	"testing"
)

// What a compiler complains about is not lost among the packages that it compiled afterwards.
func TestBuildFails(t *testing.T) {
	tools, err := NewToolchain(t.Context(), BuildCache{Dir: t.TempDir(), Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	main := "package main\n\nfunc main() { absent() }\n"
	_, err = tools.Build(context.Background(), GoProgram{Name: "p", Package: ".", Module: GoModule{Mod: "module p\n\ngo 1.26.0\n", Files: map[string]string{"main.go": main}}})
	if err == nil || !strings.Contains(err.Error(), "main.go:3:15: undefined: absent") {
		t.Errorf("%v", err)
	}
	said := "a/b\n# c/d\nfile.go:1:2: undefined: x\n" + strings.Repeat("e/f\n", 20)
	c := command{Args: []string{"sh", "-c", "printf '" + said + "' >&2; exit 1"}, Lines: func(int) {}}
	if _, err := c.Run(t.Context()); err == nil || err.Error() != "sh -c printf '"+said+"' >&2; exit 1: exit status 1\n# c/d\nfile.go:1:2: undefined: x" {
		t.Errorf("%v", err)
	}
}
