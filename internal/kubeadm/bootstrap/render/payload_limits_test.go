package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What a tenant writes into a template or refers to many times costs no more than a small multiple of what a Secret holds.
func TestHostileFiles(t *testing.T) { // KB-15, KB-16
	file := func(content string) []bootstrapv1.File {
		return []bootstrapv1.File{{Path: "/f", ContentFormat: bootstrapv1.FileContentFormatTemplate, Content: content}}
	}
	var nested strings.Builder
	for i := range 60 {
		fmt.Fprintf(&nested, `{{define "a%d"}}{{template "a%d"}}{{template "a%d"}}{{end}}`, i, i+1, i+1)
	}
	doubling := `{{$x := "0123456789"}}` + strings.Repeat(`{{$x = printf "%s%s" $x $x}}`, 40)
	many := make([]bootstrapv1.File, 5000)
	for i := range many {
		many[i] = secretFile(fmt.Sprintf("/f%d", i), "s", "k")
	}
	const bound = 16 << 20
	for name, tc := range map[string]struct {
		files []bootstrapv1.File
		says  string
	}{
		"wide numbers":   {file(strings.Repeat(`{{printf "%999999d" 1}}`, 5000)), `uses "printf"`},
		"nested":         {file(nested.String() + `{{define "a60"}}{{end}}{{template "a0"}}`), `uses "template"`},
		"endless":        {file(`{{range 9000000000000000000}}{{end}}`), `uses "range"`},
		"in a condition": {file(`{{if not (eq (len (print 1)) 1)}}{{else}}x{{end}}`), `uses "print"`},
		"in an else":     {file(`{{with .controlPlane}}{{else}}{{range 9000000000000000000}}{{end}}{{end}}`), `uses "range"`},
		"doubling":       {file(doubling), `uses "printf"`},
		"long":           {file(strings.Repeat("x", maxTemplate+1)), "more than 256 KiB"},
		"many":           {many, "exceeds 1024 KiB"},
		"definitions":    {file(`{{define "x"}}{{end}}`), ""},
	} {
		var err error
		in := Input{Spec: bootstrapv1.KubeadmConfigSpec{Files: tc.files}, ControlPlaneVersion: "v1.36.3",
			Secrets: Secrets{"s": {"k": make([]byte, 1<<20-1)}}}
		took := allocated(func() { _, err = in.files() })
		if tc.says == "" && err != nil || tc.says != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
		if took > bound {
			t.Errorf("%s: %d bytes were allocated, at most %d", name, took, bound)
		}
	}
	in := Input{Spec: bootstrapv1.KubeadmConfigSpec{Files: file(`{{if eq (slice .controlPlane.version 0 5) "v1.36"}}new {{.controlPlane.version}}{{else}}old{{end}}`)},
		ControlPlaneVersion: "v1.36.3"}
	if got, err := in.files(); err != nil || string(got[0].Content) != "new v1.36.3" {
		t.Errorf("what templates are for: %v, %v", got, err)
	}
}
