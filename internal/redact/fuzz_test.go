package redact

import (
	"strings"
	"testing"
	"unicode"
)

// FuzzTail: whatever a script prints, the end of it is bounded, one that an API accepts, without control characters, and has no secret that it names.
func FuzzTail(f *testing.F) {
	for _, log := range []string{"", "password=hunter2", "a\nb\nc", "-----BEGIN PRIVATE KEY-----\nabc", "\xff\x00", "token: abc", "abcdef.0123456789abcdef", "\u009b31ma", "a\u00a0b\u2028c", "+ a=b c", "password: ***hunter2"} {
		f.Add(log, 100)
	}
	f.Fuzz(func(t *testing.T, log string, most int) {
		if most < 0 || most > 1<<16 {
			return
		}
		out := Tail(log, most)
		isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		if len(out) > most || out != strings.ToValidUTF8(out, "") || strings.ContainsFunc(out, isControl) {
			t.Errorf("%q becomes %q", log, out)
		}
		if shown := Public(log, most); len(shown) > most || shown != strings.ToValidUTF8(shown, "") || strings.ContainsFunc(shown, isControl) {
			t.Errorf("%q is shown as %q", log, shown)
		}
		if masked, _ := Mask(log); masked != log && strings.ContainsFunc(masked, isControl) {
			t.Errorf("%q is masked as %q", log, masked)
		}
		const token = "abcdef.0123456789abcdef"
		if strings.HasSuffix(Tail(log+"\n"+token+"\n", 1<<16), token) { // the log may have it within a longer word
			t.Errorf("a token at the end of %q is shown", log)
		}
	})
}
