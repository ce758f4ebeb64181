package openapi

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
	"github.com/slipwayhq/slipway/test/testkit"
)

// published is the document of the hooks as extensions may have been made for it, without words. What is added to hooks is written with
// -update, which what breaks extensions is not: it needs a new version of the hook.
const published = "testdata/published.json"

// RT-25: no hook changes in a way that breaks extensions.
func TestNothingBreaks(t *testing.T) {
	now, err := openapi.Document(hooks.Default(), openapi.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range now.Paths {
		item.Post.Summary, item.Post.Description = "", ""
	}
	data, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	before := &openapi.Doc{}
	if err := json.Unmarshal(data, before); err != nil {
		t.Fatal(err)
	}
	if breaks := openapi.Breaking(before, now); len(breaks) > 0 {
		t.Fatalf("extensions that work would break; leave the version as it is and add a new one:\n%s", strings.Join(breaks, "\n"))
	}
	text, err := json.MarshalIndent(now, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, published, string(text)+"\n")
}
