package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/test/testkit"
)

// docs/cli.md is what the command says of itself; `go generate ./internal/cli` writes it again.
func TestDocument(t *testing.T) {
	e := term.Env{Getenv: func(string) string { return "" }, In: strings.NewReader("")}
	// A test binary is not stamped with the version of Kubernetes that it is linked with.
	got := strings.ReplaceAll(cli.Document(cli.Root(e)), buildinfo.Kubernetes(), "v1.36.3")
	testkit.CompareGolden(t, "../../docs/cli.md", got)
	if home, err := os.UserHomeDir(); err == nil && strings.Contains(got, home+"/") {
		t.Errorf("the document names %s, a folder of this machine", home)
	}
}

// What is in back quotes in the description of a flag is the name of its value, and one word.
func TestValuesOfFlags(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.Contains(name, " ") {
				t.Errorf("%s --%s: %q is the name of its value", cmd.CommandPath(), f.Name, name)
			}
			if f.Name == "version" && !f.Hidden {
				t.Errorf("%s shows --version, which the libraries of Kubernetes add", cmd.CommandPath())
			}
		})
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(cli.Root(term.Env{Getenv: func(string) string { return "" }, In: strings.NewReader("")}))
}

// Links between the pages of this repository lead somewhere.
func TestLinksOfDocuments(t *testing.T) {
	root := "../.."
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(root + "/docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	code := regexp.MustCompile("(?s)\n```.*?\n```")
	found := 0
	for _, page := range append(append(pages, more...), root+"/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			found++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no link was found in any page")
	}
}
