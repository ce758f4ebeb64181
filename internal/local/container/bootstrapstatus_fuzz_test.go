package container

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/redact"
)

// FuzzParse: whatever a node prints is refused with a short error, or becomes texts that a condition takes: bounded, valid, without control
// characters, without the secret at the end of them, that of the kubelet on one line, and none where nothing failed.
func FuzzParse(f *testing.F) {
	for _, out := range []string{
		"", "none\n", "running\n" + works + wrongFlag, "succeeded\nx\n" + logMark + "\nline\n", "interrupted", "failed 1\n" + wrongFlag + "\n" + logMark + "\nkubeadm join --token abcdef.0123456789abcdef\n",
		"failed 1\n" + logMark + "\n-----BEGIN RSA PRIVATE KEY-----\nAAAA", "sh: not found\n", strings.Repeat("x", 1<<16),
		"failed 1\n" + logMark + "\n\u009b2Jcleared\n",
		`running` + "\n" + `E1126 13:41:25.2 1 run.go:72] "command failed" err="a\nb\x1b[31m\u0085\u202e \xff token=abc ` + strings.Repeat("ü", 400) + `"` + "\n",
	} {
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, out string) {
		got, err := parseStatus(out)
		if err != nil {
			if !cmp.Equal(got, backend.Progress{}) || len(err.Error()) > 4*kubeletBytes {
				t.Errorf("refused with %+v and an error of %d bytes", got, len(err.Error()))
			}
			return
		}
		if len(got.Log) > maxStatusLogBytes || utf8.RuneCountInString(got.Kubelet) > kubeletBytes {
			t.Errorf("a log of %d bytes, and %d characters of the kubelet", len(got.Log), utf8.RuneCountInString(got.Kubelet))
		}
		for text, allowed := range map[string]string{got.Log: "\n\t", got.Kubelet: ""} {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) }) {
				t.Errorf("no condition takes %q", text)
			}
		}
		if got.Phase != backend.Failed && got.Log != "" || got.Phase != backend.Failed && got.Phase != backend.InProgress && got.Kubelet != "" {
			t.Errorf("a problem where nothing failed: %+v", got)
		}
		const token = "abcdef.0123456789abcdef"
		within := strings.Contains(redact.Tail(out, maxStatusLogBytes), token) // of a longer word
		if shown, err := parseStatus("failed 1\n" + out + "\n" + logMark + "\n" + out + "\n" + token + "\n"); err != nil || !within && strings.Contains(shown.Log, token) {
			t.Errorf("a token at the end of the log is shown: %v", err)
		}
	})
}
